"""Strategies for exact products on the CPU, a leaf and levels of a scheme above it, their operands and machine."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db.catalog_file import catalogue_state
from ..arrays import Matrix
from ..cpu.bench import BUSY_SHARE, CpuLoadMonitor, best_seconds
from ..cpu.cost_model import CpuCostModel
from ..cpu.executor import ArrayOperands, Core
from ..cpu.machine import cpu_machine
from ..cpu.strategy import CpuStrategy
from ..cpu.threads import parallel_tasks
from ..cpu.workspace import shared_pool
from ..measured import measured
from ..out import check_out
from ..overflow import largest_magnitude, require_within
from ..planning.machine import Machine
from ..planning.profile import GemmRate, keep_profile
from ..planning.strategy import Candidate, Stage
from ..request import BITS, WIDE, Request
from .bits import BitMatrix
from .gf2 import BitLeaf, Bits, best_kernel, bit_core
from .integers import IntegerCore, empty_integers
from .level import ExactLevel, block_sizes
from .schemes import ExactChain, LevelOf, grid_of, known_levels
from .strategy import ExactStrategy, chain_of, max_abs_of

CUBES = (256, 512, 1024, 2048, 4096, 8192)
"""Sizes whose rates over GF(2) are measured, in a few hundredths of a second each, the last in two tenths."""


def exact_machine(request: Request, measure: bool = True) -> Machine:
    """Return this machine for an exact request; `measure` permits to measure missing rates for a second or two."""
    machine = cpu_machine("float64")
    if request.dtype != BITS or not measure or machine.profile.rates(BITS) is not None:
        return machine
    profile = replace(machine.profile, gemm=machine.profile.gemm + measured_rates(machine.threads))
    return replace(machine, profile=profile, costs=CpuCostModel(profile, machine.threads))


@lru_cache(maxsize=4)
def measured_rates(threads: int) -> tuple[GemmRate, ...]:
    """Return rates of products over GF(2), counted as 2 m k n; stored beside the machine's profile unless disturbed."""
    monitor = CpuLoadMonitor()
    found: list[GemmRate] = []
    kernel = best_kernel()
    for size in CUBES:
        for mode in ("whole", "tasks") if threads > 1 else ("whole",):
            rate = _rate(size, threads, kernel, mode)
            found.append(GemmRate(BITS, size, size, size, rate, mode, kernel))
    rows = tuple(found)
    profile = cpu_machine().profile
    if monitor.share() <= BUSY_SHARE and profile.source == "measured":
        with contextlib.suppress(OSError):  # an unwritable home costs one measurement per process
            keep_profile(replace(profile, gemm=tuple(r for r in profile.gemm if r.dtype != BITS) + rows))
    return rows


def _rate(size: int, threads: int, kernel: str, mode: str) -> float:
    """Return the operations per second of one product by all threads, or of one product per thread."""
    a, b = (BitMatrix.random(size, size, seed=seed).words for seed in (0, 1))
    core = BitLeaf((size, size, size), kernel)
    count = threads if mode == "tasks" else 1
    outs = [np.empty_like(a) for _ in range(count)]
    core.compile()
    with shared_pool.take(count * core.workspace(threads) + 64 * count) as arena:
        arenas = arena.split(count, core.workspace(threads))

        def one(i: int = 0, _: int = 0) -> None:
            core.run(a, b, outs[i], arenas[i].rest(), 1 if mode == "tasks" else threads)

        seconds = best_seconds(partial(parallel_tasks, one, count, threads) if mode == "tasks" else one)
    return 2.0 * count * size**3 / seconds


class ExactOperands(ArrayOperands):
    """`BitMatrix` over GF(2), else arrays of integers; the two words of a result of int128 are its last axis."""

    def checked(self, request: Request, a: Any, b: Any, out: Any) -> tuple[Matrix, Matrix]:
        _check(request, "a", a, (*request.batch_a, request.m, request.k))
        _check(request, "b", b, (*request.batch_b, request.k, request.n))
        if out is not None:
            _check_out(request, out, (*request.batch, request.m, request.n))
        return _rows(self.written(a)), _rows(self.written(b))

    def empty(self, request: Request) -> Any:
        shape = *request.batch, request.m, request.n
        return BitMatrix.zeros(*shape) if request.dtype == BITS else empty_integers(shape, request.out_dtype)

    def written(self, out: Any) -> Matrix:
        return out.words if isinstance(out, BitMatrix) else out

    def is_late(self, request: Request, a: Matrix, b: Matrix, out: Matrix) -> bool:
        shared = np.may_share_memory(out, a) or np.may_share_memory(out, b)
        return shared or (request.dtype == BITS and out.strides[-1] != out.itemsize)


def _check(request: Request, label: str, matrix: Any, shape: tuple[int, ...]) -> None:
    if request.dtype == BITS:
        if not isinstance(matrix, BitMatrix):
            raise PlanError(f"{label} must be a BitMatrix; make one with BitMatrix.from_array")
    elif not isinstance(matrix, np.ndarray) or matrix.dtype != request.storage:
        found = getattr(matrix, "dtype", type(matrix).__name__)
        raise PlanError(f"{label} is {found}; the plan is for arrays of {request.storage}: convert with .astype")
    if matrix.shape != shape:
        raise PlanError(f"{label} is of shape {matrix.shape}; the plan is for {shape}: plan again")
    if request.max_abs is not None and matrix.size:
        require_within(label, largest_magnitude(matrix), request.max_abs)


def _check_out(request: Request, out: Any, shape: tuple[int, ...]) -> None:
    if request.dtype == BITS:
        if not isinstance(out, BitMatrix) or out.shape != shape:
            raise PlanError(f"out must be a BitMatrix of shape {shape}")
        check_out(out.words, out.words.shape, request.result)
        return
    check_out(out, (*shape, 2) if request.out_dtype == WIDE else shape, request.result)


def _rows(matrix: Matrix) -> Matrix:
    """Return the matrix with contiguous rows, as the kernels require."""
    good = matrix.strides[-1] == matrix.itemsize and matrix.flags.aligned and matrix.strides[-2] >= 0
    return matrix if good else np.ascontiguousarray(matrix)


LEAST_BLOCK, LEAST_BITS = 128, 512
"""Smallest sides of a block of integers and of bits that `auto` considers."""

MOST_LEVELS = 3

KEPT, KEPT_SHORT = 8, 32
"""Chains of each depth that are proposed and extended by a further level; the second number if memory is short."""

PRICES = measured("exact.cpu")

LARGEST = CUBES[-1]
"""Larger products over GF(2) run at the rate of this side, up to 16384 as measured."""


@dataclass(frozen=True)
class CpuExact(ExactStrategy, CpuStrategy):
    """A strategy for exact products on a processor.

    - leaf: one product without a scheme: over GF(2) by words, else by BLAS on limbs. The baseline.
    - scheme: levels of schemes that are valid over the ring, products by the leaf, one product per thread at a time.
    """

    operands = ExactOperands()

    device: str = "cpu"

    def chains(self, request: Request, machine: Machine) -> Iterator[ExactChain]:
        """See `ExactStrategy.chains`: the best of every depth by an estimate, extended level by level."""
        assert request.ring is not None
        least = LEAST_BITS if request.dtype == BITS else LEAST_BLOCK
        known = known_levels(request.ring, catalogue_state())
        limit = min(machine.kept_bytes, math.inf if request.max_workspace is None else request.max_workspace)
        best: list[tuple[LevelOf, ...]] = [()]
        for _ in range(MOST_LEVELS):
            longer: list[tuple[float, int, float, tuple[LevelOf, ...]]] = []
            for chain in best:
                for level in known:
                    extended = (*chain, level)
                    if min(block_sizes(request.shape, grid_of(extended))) >= least:
                        seconds, held = _estimate(request, machine, extended)
                        longer.append((seconds, len(longer), held, extended))
            ranked = [(held, extended) for _, _, held, extended in sorted(longer)]
            chosen = ranked[:KEPT]
            if any(held > limit for held, _ in chosen):
                # If memory is short, a first level of few products may be followed by a better second one.
                chosen = [one for one in ranked if one[0] <= limit][:KEPT_SHORT] or chosen
            best = [extended for _, extended in chosen]
            for levels in best:
                yield ExactChain(levels, request.ring)

    def core(self, candidate: Candidate, request: Request, machine: Machine) -> Core:
        unlimited = request if request.max_workspace is None else replace(request, max_workspace=None)
        return exact_core(unlimited, chain_of(candidate))

    def priced(self, core: Core, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `ExactStrategy.priced`: by the machine's rates."""
        costs, bits = machine.costs, request.dtype == BITS
        leveled = isinstance(core, ExactLevel) or (isinstance(core, IntegerCore) and bool(core.levels))
        mode = "tasks" if leveled else "whole"
        dtype = core.dtype.name if isinstance(core, IntegerCore) else BITS
        if not costs.knows(dtype):
            dtype = "float64"  # float32 was not measured: an upper bound
        found = []
        for stage in core.stages(request.items):
            if stage.product is None:
                loaded = PRICES.loaded_term * stage.flops / 8 if bits else 0.0
                seconds = float(costs.combine(stage.bytes + loaded))
            else:
                count = stage.flops / (2.0 * math.prod(stage.product))
                calls = count * PRICES.call / (machine.threads if leveled else 1)
                sides = stage.product
                if bits:  # the leaf divides larger products into such ones
                    sides = min(sides[0], LARGEST), min(sides[1], LARGEST), min(sides[2], LARGEST)
                parts = math.prod(stage.product) / math.prod(sides)
                seconds = float(costs.gemm(dtype, *sides, count=parts * count, mode=mode)) + calls
                if leveled and bits:  # rates are for operands in caches, but sums are in memory
                    seconds += float(costs.combine(stage.bytes))
            found.append(replace(stage, seconds=seconds))
        return found


@lru_cache(maxsize=512)
def exact_core(request: Request, chain: ExactChain | None) -> Core:
    """Return the core of a request, which predicting, sizing and building share.

    Raises:
        PlanError: a result or a sum of blocks exceeds its dtype, or a scheme is not valid over the ring.
    """
    assert request.ring is not None
    levels, most = () if chain is None else chain.maps, max_abs_of(request)
    if request.dtype == BITS:
        return bit_core(levels, request.shape, partial(BitLeaf, kernel=best_kernel()), Bits())
    return IntegerCore(request.shape, request.ring, (most, most), levels, request.out_dtype)


def _estimate(request: Request, machine: Machine, levels: Sequence[LevelOf]) -> tuple[float, float]:
    """Estimate the seconds of the products and of the traffic of the sums, and bytes, without building the maps.

    The bytes are those of the sums and products of one matrix, and of its operands and result as floats. Levels below
    the first use the buffers of a thread, for one product at a time.
    """
    costs, sizes, count, seconds = machine.costs, request.shape, float(request.items), 0.0
    item = 1 / 8 if request.dtype == BITS else 8
    (m, k, n), buffers = sizes, 1
    held = 0 if request.dtype == BITS else m * k + k * n + m * n
    for level in levels:
        m, k, n = block_sizes(sizes, level.grid)
        held, buffers = held + buffers * level.rank * (m * k + k * n + m * n), machine.threads
        gm, gk, gn = level.grid
        sizes_of = m * k, k * n, m * n
        counts = gm * gk, gk * gn, gm * gn
        blocks = float(sum((parts + level.rank) * x for parts, x in zip(counts, sizes_of, strict=True)))
        if request.dtype == BITS:
            blocks += PRICES.loaded_term * sum(terms * x for terms, x in zip(level.nonzeros, sizes_of, strict=True))
        seconds += float(costs.combine(count * item * blocks))
        sizes, count = (m, k, n), count * level.rank
    dtype = request.dtype if request.dtype == BITS else "float64"
    seconds = seconds + float(costs.gemm(dtype, *sizes, count=count, mode="tasks")) + count * PRICES.call
    return seconds, item * held


STRATEGIES = CpuExact("leaf", baseline=True), CpuExact("scheme")
