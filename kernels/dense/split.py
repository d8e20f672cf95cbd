"""The strategy that multiplies float32 by three products of float16 halves on a GPU, with or without a scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import PlanError
from ...schemes_db.program import Program
from ..cuda.cost_model import CudaCostModel
from ..cuda.flat_program import flat_program, reason_against
from ..cuda.float16_pairs import TILE, pitch_of
from ..cuda.float16_pairs_level import PairsProduct, pairs_arithmetic, pairs_by_level
from ..cuda.packed_product import PackedArithmetic
from ..measured import measured
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Parameters, Proposal, Stage
from ..precision import ACCURATE
from ..request import Request
from .arrangements import SchemeStrategy
from .chains import Chain
from .packed import FAMILY, PackedStrategy
from .pool import pool_for
from .scheme_costs import STAGES

NAME = "split"

PRICES = measured("dense.split")

MAX_GRID, PRICED = 4, 8
"""Maximum side of the grid of all levels together, past which errors are those of float32; number of proposed grids."""

_Sizes = tuple[Any, Any, Any]


@dataclass(frozen=True)
class CudaSplit(SchemeStrategy, PackedStrategy):
    """Scale, check and split A and B, then one kernel for the three products of halves.

    With levels of a scheme the sums of blocks are split, and their products combined in float32.
    """

    name: str = NAME
    precision, subject = ACCURATE, "halves are"

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`: only if the request asks for this precision."""
        plain = Candidate(FAMILY, NAME)
        if not self.is_for(request) or self.can_run(plain, request, machine):
            return []
        found = [self.proposal(plain, request, machine)]
        (chains, costs), model = pool_for(machine).chains, CudaCostModel.of(machine)
        grids = costs.m, costs.k, costs.n
        prices = sum(seconds for _, _, _, seconds in _stages(grids, costs.rank, request, model))
        prices = np.where(np.maximum(np.maximum(costs.m, costs.k), costs.n) > MAX_GRID, np.inf, prices)
        seen: set[tuple[float, ...]] = set()
        for i in np.argsort(prices, kind="stable").tolist():
            grid = tuple(float(x[i]) for x in (costs.m, costs.k, costs.n))
            if prices[i] >= found[0].bound or len(seen) == PRICED:
                break
            candidate = self.candidate(Chain(chains[i], known=costs[i]))
            if grid not in seen and self.can_run(candidate, request, machine) is None:
                seen.add(grid)
                found.append(Proposal(float(prices[i]) * (1 - 1e-9), candidate))
        return found

    def restore(self, key: str, parameters: Parameters, request: Request) -> Candidate | None:
        return super().restore(key, parameters, request) if key else self.candidate()

    def can_run(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        program = candidate.program
        reason = self.reason(request) or (None if program is None else _reason_against(program))
        return reason or super().can_run(candidate, request, machine)

    def arithmetic(self, candidate: Candidate) -> PackedArithmetic:
        return pairs_arithmetic(_level(candidate))

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        m, k, n = request.shape
        costs = CudaCostModel.of(machine)
        program = candidate.program
        if program is not None:
            flat = flat_program(program)
            stages = _stages(flat.program.target.shape, flat.rank, request, costs)
            return [Stage(name, float(flops), float(moved), float(seconds)) for name, flops, moved, seconds in stages]
        moved = 4 * PRICES.read * (m * k + k * n)
        streamed = 4 * (m * k + k * n + m * n)
        seconds = float(_product_seconds(m, k, n, 1, costs, PRICES.rate))
        return [
            Stage("split", 0, moved, float(costs.combine(moved)) + PRICES.started, None),
            Stage(f"3 products {m}x{k}x{n} of halves", 3 * request.flops, streamed, seconds, request.shape),
        ]

    def workspace(self, candidate: Candidate, request: Request, machine: Machine) -> int:
        """See `Strategy.workspace`: halves of both operands and sums for the check, without the scales.

        If levels would lose too much accuracy for the operands they are not used: this covers both cases.
        """
        m, k, n = request.shape
        level = _level(candidate)
        plain = 4 * (m * pitch_of(k) + k * pitch_of(n)) + 4 * (m * k + k * n) // 16
        return plain if level is None else max(plain, level.workspace(m, k, n))


def _level(candidate: Candidate) -> PairsProduct | None:
    program = candidate.program
    return None if program is None else pairs_by_level(program)


def _reason_against(program: Program) -> str | None:
    """Return the reason why a program is not run above products of pairs, or None."""
    if reason := reason_against(program, "float32"):
        return reason
    try:
        pairs_by_level(program)
    except PlanError as error:
        return str(error)
    return None


def _product_seconds(m: Any, k: Any, n: Any, count: Any, costs: CudaCostModel, rate: float) -> Any:
    """Return the seconds of so many products by halves: whole waves of tiles."""
    tiles = count * np.ceil(m / TILE.m) * np.ceil(n / TILE.n)
    return 2 * np.ceil(tiles / costs.units) * costs.units * TILE.m * TILE.n * k / rate


def _stages(grid: _Sizes, rank: Any, request: Request, costs: CudaCostModel) -> list[tuple[str, Any, Any, Any]]:
    """Return (name, operations, bytes, seconds) of every stage of levels of this grid and rank: numbers or arrays."""
    m, k, n = request.shape
    bm, bk, bn = (np.ceil(size / parts) for size, parts in zip((m, k, n), grid, strict=True))
    stages = []
    for name, moved, started in (
        (STAGES[0], 4.0 * (PRICES.checked * m * k + rank * bm * bk), PRICES.level_started),
        (STAGES[1], 4.0 * (PRICES.checked * k * n + rank * bk * bn), 0.0),
    ):
        stages.append((name, 0.0, moved, costs.combine(moved) + started))
    streamed = 4.0 * rank * (bm * bk + bk * bn + bm * bn)
    seconds = _product_seconds(bm, bk, bn, rank, costs, PRICES.level_rate)
    stages.append(("3 products of halves", 6.0 * rank * bm * bk * bn, streamed, seconds))
    merged = 4.0 * (rank * bm * bn + m * n)
    return [*stages, (STAGES[2], 0.0, merged, costs.combine(merged))]
