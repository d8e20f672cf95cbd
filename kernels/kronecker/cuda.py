"""Strategies for Kronecker-sparse products on a GPU: batched GEMMs on views, a Triton kernel, the usual baselines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..cuda.cost_model import CudaCostModel
from ..cuda.dtypes import itemsize
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Parameters, Proposal, Source, Stage
from ..request import Layout, Request
from .baselines import PRODUCTS
from .cuda_executor import STRIDED, TILED, TensorKroneckerExecutor
from .pattern import Pattern
from .requests import structure_of
from .rewrites import DENSE, WIDENED, rewritten_patterns
from .structure import KroneckerSparse
from .tensors import TILES

FAMILY = "kronecker"

TILED_SHARE = 0.42
"""The part of the vendor's float32 rate that the Triton kernel reaches on batch-first operands, d of 4 to 64. Measured
on an H200 with a prototype of the same tile and four warps: 16.8 to 23 Tflop/s of 51."""

TILED_TRAFFIC = 0.5
"""The part of the copy rate at which the kernel is assumed to read and write batch-first operands; not measured yet."""

SECTOR = 32
"""Bytes that memory is read in at least: fewer neighbouring diagonals waste the rest."""


@dataclass(frozen=True)
class CudaKronecker:
    """One way to multiply by Kronecker-sparse factors on a GPU; factors run one after the other, batch-last between.

    - strided: min(a, d) batched GEMMs on views; a batch-first end with d > 1 is transposed once.
    - tiled: our Triton kernel, for any strides; made for batch-first operands with d > 1.
    - widened: strided by (a, bd, cd, 1): d times the multiplications, nothing is transposed.
    - dense: the whole matrix, within `max_extra_bytes`.
    - bmm: copies that gather blocks, a batched GEMM, copies back: the baseline; einsum and csr likewise.
    """

    name: str
    baseline: bool = False
    family: str = FAMILY
    version: int = 1
    device: str = "cuda"

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`."""
        if structure_of(request) is None:
            return []
        candidate = Candidate(FAMILY, self.name)
        if self.baseline or self.can_run(candidate, request, machine):
            return [Proposal(0.0, candidate)]
        seconds = [stage.seconds for stage in self.predict(candidate, request, machine)]
        return [Proposal(sum(math.nan if one is None else one for one in seconds) * (1 - 1e-9), candidate)]

    def candidates_of(self, source: Source) -> Iterable[Candidate]:
        """See `Strategy.candidates_of`: none."""
        return ()

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        """See `Strategy.restore`."""
        return None if key else Candidate(FAMILY, self.name, None, parameters)

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `Strategy.can_run`."""
        structure = structure_of(request)
        if structure is None:
            return "no operand is Kronecker-sparse"
        if request.batch:
            return "Kronecker-sparse products take one matrix X; join the leading sizes of a batch"
        if Layout.SCATTERED in request.layouts:
            return "X must be stored with contiguous rows or columns; pass X.contiguous()"
        if request.dtype not in TILES:
            return f"{request.dtype} is not multiplied by Kronecker-sparse factors on a GPU; convert to float32"
        if self.name == WIDENED and all(one.d == 1 for one in structure.patterns):
            return "d = 1: it is the same as strided"
        if (
            self.name == DENSE
            and (extra := structure.extra_elements * itemsize(request.dtype)) > request.max_extra_bytes
        ):
            return f"the dense matrix takes {extra} bytes more than the factors; allow it with max_extra_bytes"
        return None

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""
        if 0 in (*request.shape, *request.batch):
            return []
        assert isinstance(machine.costs, CudaCostModel)
        structure = _structure(request)
        patterns = structure.patterns
        if self.name in (WIDENED, DENSE):
            patterns = rewritten_patterns(patterns, self.name)
        stages = []
        for place in reversed(range(len(patterns))):
            first = place == len(patterns) - 1 and request.layouts[1] is Layout.COLUMNS
            last = place == 0 and request.layouts[2] is Layout.COLUMNS
            stages += self._factor_stages(patterns[place], request, machine.costs, first, last)
        if self.name in PRODUCTS and not self.baseline:
            return [Stage(one.name, one.flops, one.bytes, None, one.product) for one in stages]
        return stages

    def _factor_stages(
        self, pattern: Pattern, request: Request, costs: CudaCostModel, first: bool, last: bool
    ) -> list[Stage]:
        """The stages of one factor; `first` and `last`: its input and its result are batch-first."""
        item, n, dtype = itemsize(request.dtype), request.n, request.dtype
        a, b, c, d = pattern.sizes
        moved = ((pattern.rows + pattern.cols) * n + pattern.nonzeros) * item
        flops = 2.0 * pattern.nonzeros * n
        name = f"{a * d} blocks {b}x{c}"
        if self.name == TILED:
            return [Stage(name, flops, moved, _tiled_seconds(pattern, request, costs, moved, flops, first or last))]
        calls = 1 if self.baseline else min(a, d)
        seconds = calls * float(costs.gemm(dtype, b, c, n, a * d // calls, "batched"))
        found = [Stage(name, flops, moved, _known(seconds), (b, c, n))]
        if self.baseline:
            turned = pattern.rows + pattern.cols if max(a, d) > 1 else 0
        else:
            turned = (pattern.cols * first + pattern.rows * last) if d > 1 else 0
        if turned:
            copied = 2 * turned * n * item
            found.append(Stage("transposed copies", 0, copied, _known(float(costs.combine(copied)))))
        return found

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: an upper bound of what torch's allocator holds."""
        structure, item = _structure(request), itemsize(request.dtype)
        widest = max(max(one.rows, one.cols) for one in structure.patterns)
        held = 2 * widest * request.n if len(structure.patterns) > 1 or self.name in (*PRODUCTS, STRIDED) else 0
        if self.name in (WIDENED, DENSE):
            held += sum(one.nonzeros for one in rewritten_patterns(structure.patterns, self.name))
        return held * item

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        rewrite = self.name if self.name in (WIDENED, DENSE) else None
        product = STRIDED if rewrite else self.name
        held = self.workspace(candidate, request, machine)
        return TensorKroneckerExecutor(request, _structure(request), product, rewrite, held)


def _tiled_seconds(
    pattern: Pattern, request: Request, costs: CudaCostModel, moved: float, flops: float, strided: bool
) -> float | None:
    """Traffic, of whole sectors where diagonals are neighbours, or arithmetic, whichever takes longer."""
    width = min(pattern.d, TILES[request.dtype].j) * itemsize(request.dtype)
    waste = SECTOR / min(width, SECTOR) if strided else 1.0
    memory = float(costs.combine(moved * waste)) / TILED_TRAFFIC
    rate = TILED_SHARE * costs.best_rate(request.dtype)
    return _known(max(memory, flops / rate, float(costs.overhead(1))))


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds


def _structure(request: Request) -> KroneckerSparse:
    structure = structure_of(request)
    assert structure is not None  # asked before, in can_run
    return structure
