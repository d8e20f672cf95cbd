"""The strategy that multiplies float32 by halves of float16 on a GPU, for requests of tf32x3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ..cuda.cost_model import CudaCostModel
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage
from ..request import Request
from .cuda_costs import STREAM_SHARE, TRANSPOSITION_SHARES, host_seconds
from .executor import StructuredExecutor
from .factor_products import product_of
from .pattern import Pattern
from .rewrites import BY_HALVES, rewritten, rewritten_bytes
from .split import TILES, split_reason, split_seconds
from .strategy import FAMILY, StructuredStrategy, chain_in

LAUNCHES = 4
"""Kernels of a factor: the largest entries of columns, the halves, the product, the result."""


@dataclass(frozen=True)
class CudaSplitKronecker(StructuredStrategy):
    """Factor by factor: X is split into halves of gathered blocks, and one kernel multiplies all blocks.

    Prices were not measured: they are those of the dense product by halves, and of our transpositions.
    """

    name: str = BY_HALVES
    baseline: bool = False
    family: str = FAMILY
    version: int = 1
    device: str = "cuda"

    def candidates(self, request: Request) -> Iterator[Candidate]:
        """See `StructuredStrategy`: one."""
        yield Candidate(FAMILY, self.name)

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `StructuredStrategy`."""
        return split_reason(chain_in(request).patterns, request.n, request.dtype)

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`."""
        if 0 in (*request.shape, *request.batch):
            return []
        assert isinstance(machine.costs, CudaCostModel)
        patterns = chain_in(request).patterns
        stages = [stage for one in reversed(patterns) for stage in _factor_stages(one, request.n, machine.costs)]
        host = host_seconds(self.name, len(patterns), LAUNCHES * len(patterns))
        shown = host - sum(stage.seconds or 0.0 for stage in stages)
        return [*stages, Stage("launches", 0, 0, shown)] if shown > 0 else stages

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: X in halves, the product, and results between factors."""
        patterns = chain_in(request).patterns
        elements = max(one.rows + one.cols for one in patterns)
        elements += sum(one.rows for one in patterns[1:])
        return 4 * (elements * request.n + 8 * elements) + rewritten_bytes(self.name, patterns, 4)

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        held = self.workspace(candidate, request, machine)
        structure = chain_in(request)
        product = product_of(BY_HALVES, structure.patterns, request.dtype)
        rewrite = partial(rewritten, patterns=structure.patterns, rewrite=BY_HALVES)
        return StructuredExecutor(request, structure, product, held, rewrite)


def _factor_stages(pattern: Pattern, n: int, costs: CudaCostModel) -> list[Stage]:
    a, b, c, d = pattern.sizes
    given, wanted = 4 * pattern.cols * n, 4 * pattern.rows * n
    turned = float(costs.combine(3 * given) + costs.combine(2 * wanted)) / TRANSPOSITION_SHARES[4]
    multiplied = min(split_seconds(pattern, n, *known) for known in TILES)
    streamed = float(costs.combine(given + wanted)) / STREAM_SHARE
    flops = 2.0 * pattern.nonzeros * n
    return [
        Stage("halves and scales", 0, 3 * given + 2 * wanted, turned),
        Stage(f"{a * d} blocks {b}x{c}", flops, given + wanted, max(multiplied, streamed), (b, c, n)),
    ]
