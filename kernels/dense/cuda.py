"""Strategies for dense products on a GPU: the vendor's product, padded or not, and schemes of one to three levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cuda.cost_model import UNALIGNED, CudaCostModel, instant_reason, missing_rates, row_multiple
from ..cuda.executor import VendorExecutor
from ..cuda.flat_program import reason_against
from ..cuda.int8 import BY_VENDOR, BY_VENDOR_IN_PLACE
from ..cuda.launch import on_current_gpu
from ..cuda.level import CudaLevel, CudaMethod, PaddedProduct, cuda_level, padded_product
from ..cuda.level_product import level_executor, level_workspace, pieces_of
from ..cuda.packed_product import packed_executor
from ..cuda.shape import MAX_PIECES, SEGMENT, block_sizes, blocks_of
from ..cuda.stack import DTYPES as STACKED
from ..cuda.stack import TILE, fits_stack, missing_accelerator
from ..measured import measured
from ..overflow import range_reason
from ..planning.limits import margin
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Proposal, Source, Stage, Strategy
from ..precision import ACCURATE, FP8, TF32
from ..request import INT8, Request
from .arrangements import GivenProgram, SchemeStrategy, is_classical
from .chains import Chain
from .packed import FAMILY, CudaFp8, CudaInt8, CudaScaledHalf, copies_b, vendor_stages, vendor_workspace
from .pool import pool_for
from .scheme_costs import STAGES, SchemeCosts
from .split import CudaSplit

PADDED_PRICES = measured("dense.padded")


@dataclass(frozen=True)
class CudaPadded(Strategy):
    """The vendor's product with k and n rounded up to whole segments of 16 bytes, if they are not."""

    name: str = "padded"
    family: str = FAMILY

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        candidate = self.candidate()
        if self.can_run(candidate, request, machine):
            return []
        costs = CudaCostModel.of(machine)
        vendor = float(costs.gemm(request.arithmetic, *request.shape, request.items))
        return instant_reason(request, vendor) or [self.proposal(candidate, request, machine)]

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        if request.arithmetic not in UNALIGNED:
            return f"the vendor's {request.arithmetic} products take any sizes at their full rate"
        if PaddedProduct.padded(request.k, request.n, request.itemsize) == (request.k, request.n):
            return f"k and n are whole segments of {SEGMENT} bytes: there is nothing to pad"
        if pieces_of(request, padded_product()) is None:
            return f"the padded operands need more than the {request.max_workspace} bytes of workspace allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. A static B is padded once, which is not counted."""
        return _padded_stages(request, CudaCostModel.of(machine))

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound, the bytes of all three copies."""
        return level_workspace(request, padded_product())

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`, and `level_executor` for what it raises."""
        return level_executor(request, padded_product())


def padded_seconds(request: Request, costs: CudaCostModel) -> float:
    """Return the predicted seconds; infinite if no padding is needed."""
    whole = row_multiple(request.arithmetic, request.k, request.n) == SEGMENT
    if whole or request.arithmetic not in UNALIGNED or request.is_empty:
        return math.inf
    return sum(math.inf if stage.seconds is None else stage.seconds for stage in _padded_stages(request, costs))


def _padded_stages(request: Request, costs: CudaCostModel) -> list[Stage]:
    item = request.itemsize
    if request.is_empty:
        return []
    m, k, n = request.shape
    bk, bn = PaddedProduct.padded(k, n, item)
    copies = (
        ("Pad A", k != bk, request.items_a, m * (k + bk)),
        ("Pad B", (k, n) != (bk, bn) and request.static != "B", request.items_b, k * n + bk * bn),
        ("Copy C", n != bn, request.items, m * (n + bn)),
    )
    stages = []
    for name, needed, count, each in copies:
        if needed:
            moved = float(count * each * item)
            stages.append(Stage(name, 0, moved, costs.combine(moved) / PADDED_PRICES.copy_shares[item]))
    seconds = costs.gemm(request.arithmetic, m, bk, bn, request.items)
    moved = request.items * (m * bk + bk * bn + m * bn) * item
    product = Stage(f"{request.items} products {m}x{bk}x{bn}", request.flops, moved, seconds, (m, bk, bn))
    stages.insert(len(stages) - (n != bn), product)
    return stages


PRICED = 40
"""Number of combinations of grid and rank, least bounds first, that are priced. Chains of equal grid and rank cost the
same in any order of their levels, so that they are priced together.
"""

COARSE, MAX_GRID = 2.0**-11, 5
"""Dtypes with at least this unit roundoff use grids of at most this side: three levels of Strassen lose too much
(measured: error 2.3e-2 in bfloat16, where the plain product has 1.7e-3).
"""


@dataclass(frozen=True)
class CudaVendor(Strategy):
    """torch.matmul, which calls cuBLAS, and for int8 torch._int_mm: the baseline."""

    name: str = "vendor"
    family: str = FAMILY
    baseline: bool = True

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        if is_classical(source.program):
            yield Candidate(FAMILY, self.name)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        return range_reason(None, request)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        if request.dtype == INT8:
            return vendor_stages(request, CudaCostModel.of(machine))
        m, k, n = request.shape
        moved = request.items * (m * k + k * n + m * n) * request.itemsize
        # Of other precisions the vendor has no products.
        arithmetic = request.arithmetic if request.precision in (None, TF32) else request.dtype
        seconds = machine.costs.gemm(arithmetic, m, k, n, request.items)
        return [Stage(f"{request.items} products {m}x{k}x{n}", request.flops, moved, seconds, request.shape)]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: for int8 the copies that torch needs."""
        if request.dtype != INT8 or request.is_empty:
            return 0
        return vendor_workspace(request, CudaCostModel.of(machine))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        if request.dtype == INT8:
            method = BY_VENDOR if copies_b(request, CudaCostModel.of(machine)) else BY_VENDOR_IN_PLACE
            return packed_executor(request, method, self.workspace(candidate, request, machine))
        return VendorExecutor.of(request)


@dataclass(frozen=True)
class CudaScheme(SchemeStrategy, Strategy):
    """Combine A, Combine B, the products, Combine H: all levels of a scheme in one pass. The method is a parameter.

    If `max_workspace` requires it, rows (or matrices of a batch) are executed in pieces, each with
    its own sums and products; the sums of B are computed once. Memory is allocated by torch.
    """

    name: str = "scheme"
    family: str = FAMILY
    methods = tuple(one.value for one in CudaMethod)

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: the best chains by a lower bound for every method and padding.

        If the vendor's product of padded operands is faster than that of the operands, a chain must gain the margin
        over it: the chain is less accurate.
        """
        if request.dtype == INT8 or request.precision == FP8:
            return []
        costs = CudaCostModel.of(machine)
        if reason := missing_rates(machine, request.arithmetic):
            return reason
        vendor = float(costs.gemm(request.arithmetic, *request.shape, request.items))
        if reason := instant_reason(request, vendor):
            return reason
        padded = margin(FAMILY, request, ()) * padded_seconds(request, costs)
        chains, known = pool_for(machine).chains
        bounds = _bounds(known, request, costs)
        order = [i for i in np.argsort(bounds, kind="stable").tolist() if bounds[i] < min(vendor, padded)]
        chosen = _first_formats(order, known)
        if request.max_workspace is not None:  # chains that need no pieces may be far down the list
            fitting = _stacks(known, request) <= request.max_workspace
            chosen += [i for i in _first_formats([i for i in order if fitting[i]], known) if i not in chosen]
        if not chosen:
            return "nothing is predicted to be faster than the vendor's product by its margin"
        some = known[np.array(chosen)]
        found = []
        for method in self.methods:
            if _method_reason(method, request):
                continue
            prices = sum(seconds for _, _, _, seconds, _ in _parts(some, request, costs, method))
            for i, price in zip(chosen, np.asarray(prices).tolist(), strict=True):
                if price < padded:
                    candidate = self.candidate(Chain(chains[i], known=known[i]), method)
                    found.append(Proposal(price * (1 - 1e-9), candidate))
        return found

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        program = candidate.own_program
        if request.precision == ACCURATE:
            return f"products in {ACCURATE} are of the strategy split"
        if request.precision == FP8:
            return "products in e4m3 are of the strategy fp8-vendor, without a scheme"
        if request.dtype == INT8:
            return "products of int8 are of the strategies int8 and vendor, without a scheme"
        if program.inner and not program.target.is_general:
            return f"the levels of {program.target} cannot be executed in one pass: blocks of it are absent"
        if reason := reason_against(program, request.arithmetic) or _method_reason(candidate.method, request):
            return reason
        if candidate.method == CudaMethod.STACK and (reason := _stack_reason(_core(candidate), request)):
            return reason
        if _pieces(candidate, request) is None:
            least = level_workspace(request, _core(candidate))
            return f"needs {least} bytes of workspace, more than the {request.max_workspace} allowed"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`. With a static B its sums are not counted: they are computed once."""
        assert isinstance(candidate.source, Chain | GivenProgram)
        costs = candidate.source.flat_costs or _costs_of_core(_core(candidate))
        pieces = _pieces(candidate, request) or MAX_PIECES
        parts = _in_pieces(costs, request, CudaCostModel.of(machine), candidate.method, pieces)
        return [Stage(name, float(flops), float(moved), *others) for name, flops, moved, *others in parts]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`, and `level_workspace`."""
        return level_workspace(request, _core(candidate))

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`, and `level_executor` for what it raises."""
        return level_executor(request, _core(candidate))


Part = tuple[str, Any, Any, Any, tuple[int, int, int] | None]


def _parts(costs: SchemeCosts, request: Request, model: CudaCostModel, method: str) -> list[Part]:
    """Return (name, operations, bytes, seconds, product) of every stage; numbers or arrays like the costs.

    Source: FalconGEMM (arXiv:2605.06057), Table II, with combinations bound by memory.
    """
    item = request.itemsize
    m, k, n = block_sizes(request.shape, (costs.m, costs.k, costs.n), item)
    rank, items = costs.rank, request.items
    (nu, nv, nw), dtype = costs.nnz, request.arithmetic
    sums = (
        (STAGES[0], request.items_a, nu - rank, m * k, rank, request.m * request.k),
        (STAGES[1], request.items_b, nv - rank, k * n, rank, request.k * request.n),
        (STAGES[2], items, nw - costs.m * costs.n, m * n, rank, request.m * request.n),
    )
    stages: list[Part] = []
    for name, count, additions, block, slabs, size in sums:
        if name == STAGES[1] and request.static == "B":
            continue
        moved = count * (size + slabs * block) * item
        stages.append((name, count * additions * block, moved, model.combine(moved), None))
    count = items * rank
    seconds = model.gemm(dtype, m, k, n, count, method)
    moved = count * (m * k + k * n + m * n) * item
    flops = 2.0 * count * m * k * n
    single = np.ndim(m) == 0
    product = (int(m), int(k), int(n)) if single else None
    name = f"{int(count)} products {int(m)}x{int(k)}x{int(n)}" if single else "products"
    before = sum(stage[0] in STAGES[:2] for stage in stages)
    stages.insert(before, (name, flops, moved, seconds, product))
    return stages


def _in_pieces(costs: SchemeCosts, request: Request, model: CudaCostModel, method: str, pieces: int) -> list[Part]:
    """Return `_parts` of a run in pieces: groups of matrices, or ranges of rows; the sums of B are computed once."""
    if pieces == 1:
        return _parts(costs, request, model, method)
    groups = min(pieces, request.items)
    rows = -(-request.m // max(1, pieces // request.items))
    batch = () if request.items == 1 else (-(-request.items // groups),)
    left, right = (batch if items > 1 else () for items in (request.items_a, request.items_b))
    piece = replace(request, m=rows, batch_a=left, batch_b=right, max_workspace=None)
    one = _parts(costs, piece, model, method)
    once = {STAGES[1]} if request.items_b == 1 else set()
    times = [1 if name in once else pieces for name, *_ in one]
    return [
        (name, count * flops, count * moved, count * seconds, product)
        for count, (name, flops, moved, seconds, product) in zip(times, one, strict=True)
    ]


def _first_formats(order: list[int], costs: SchemeCosts) -> list[int]:
    """Return the chains with the first PRICED distinct formats and ranks."""
    places: dict[tuple[float, ...], list[int]] = {}
    for i in order:
        alike = tuple(float(x[i]) for x in (costs.m, costs.k, costs.n, costs.rank))
        if alike not in places and len(places) == PRICED:
            break
        places.setdefault(alike, []).append(i)
    return [i for group in places.values() for i in sorted(group)]


def _stacks(costs: SchemeCosts, request: Request) -> npt.NDArray[np.float64]:
    """Return an upper bound of the bytes of all sums and products, without padding."""
    left = request.items_a * request.m * request.k / (costs.m * costs.k)
    right = request.items_b * request.k * request.n / (costs.k * costs.n)
    product = request.items * request.m * request.n / (costs.m * costs.n)
    return np.asarray(costs.rank * (left + right + product) * request.itemsize, dtype=float)


def _bounds(costs: SchemeCosts, request: Request, model: CudaCostModel) -> npt.NDArray[np.float64]:
    """Return a lower bound of each chain's seconds: without padding, its products at the best rate of all."""
    item = request.itemsize
    m, k, n, rank = costs.m, costs.k, costs.n, costs.rank
    size = request.m * request.k, request.k * request.n, request.m * request.n
    moved = request.items_a * size[0] * (1 + costs.made[0] / (m * k)) + request.items * size[2] * (1 + rank / (m * n))
    if request.static != "B":
        moved = moved + request.items_b * size[1] * (1 + costs.made[1] / (k * n))
    seconds = moved * item / (model.profile.combine_rate or np.inf)
    seconds = seconds + request.flops * rank / (m * k * n) / model.best_rate(request.arithmetic)
    if request.unit >= COARSE:
        seconds = np.where(np.maximum(np.maximum(m, k), n) > MAX_GRID, np.inf, seconds)
    return np.asarray(seconds, dtype=float)


def _costs_of_core(core: CudaLevel) -> SchemeCosts:
    """Return the costs of a program with absent blocks, from its maps."""
    m, k, n = core.target.shape
    (left, right, merge), rank = (one.form.map for one in (core.left, core.right, core.merge)), core.rank
    nnz = left.additions + rank, right.additions + rank, merge.additions + m * n
    return SchemeCosts(m, k, n, rank, nnz, (rank, rank), (rank, rank), 1.0)


def _method_reason(method: str, request: Request) -> str | None:
    """Return the reason why products of this dtype are not executed by a method, or None."""
    if method == CudaMethod.STACK and request.dtype not in STACKED:
        return f"stacks are multiplied in {' and '.join(STACKED)}, not in {request.arithmetic}"
    return None


def _stack_reason(core: CudaLevel, request: Request) -> str | None:
    m, k, _ = blocks_of(request.shape, request.itemsize, core.target)
    if not request.is_empty and not fits_stack(core.rank * request.items, m, k, request.dtype):
        return f"blocks of {m}x{k} are no whole tiles of {TILE.m}x{TILE.k}"
    return on_current_gpu(missing_accelerator)


def _core(candidate: Candidate) -> CudaLevel:
    return cuda_level(candidate.own_program, CudaMethod(candidate.method))


def _pieces(candidate: Candidate, request: Request) -> int | None:
    return 1 if request.max_workspace is None else pieces_of(request, _core(candidate))


STRATEGIES = CudaVendor(), CudaPadded(), CudaScaledHalf(), CudaSplit(), CudaFp8(), CudaInt8(), CudaScheme()
