"""Strategies for block low-rank products on the CPU: GEMMs of numpy's library on strided views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.reasons import basic_reason
from ..cpu.workspace import Pool, shared_pool
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor
from ..request import Request
from .block_low_rank import BlockLowRank
from .executor import Factors, StructuredExecutor
from .rewrites import DENSE
from .steps import FactorStep, views
from .steps_strategy import BlockLowRankStrategy, moved_elements, padded, structure_in

Matrix = npt.NDArray[Any]

CALL_SECONDS = 3e-6
"""Overhead in seconds of one GEMM of a batch in numpy's loop over the batch; the value of Kronecker products."""


@dataclass(frozen=True)
class CpuBlockLowRank(BlockLowRankStrategy):
    """A strategy for block low-rank products on the CPU.

    - strided: two or three batched GEMMs on views, the batch last between them; nothing is permuted. The baseline.
    - dense: the whole matrix, within `max_extra_bytes`.
    """

    device: str = "cpu"

    def device_reason(self, candidate: Candidate, request: Request, machine: Machine) -> str | None:
        """See `StructuredStrategy`."""
        return basic_reason(None, request)

    def step_seconds(self, step: FactorStep, request: Request, machine: Machine) -> float:
        """See `BlockLowRankStrategy`: bound by arithmetic or by memory, plus the overhead of a call for every block."""
        costs = machine.costs
        seconds = float(costs.gemm(request.dtype, step.m, step.k, request.n, count=step.count, mode="whole"))
        moved = float(costs.combine(moved_elements(step, request.n) * request.itemsize))
        return max(moved, seconds + (step.count - 1) * CALL_SECONDS) if seconds == seconds else seconds

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure = structure_in(request)
        pool = shared_pool if machine.pool is None else machine.pool
        product = _dense if self.name == DENSE else _strided
        rewrite = partial(_expanded, structure) if self.name == DENSE else None
        run = partial(product, structure, pool)
        return StructuredExecutor(request, structure, run, self.workspace(candidate, request, machine), rewrite)


def _strided(structure: BlockLowRank, pool: Pool, factors: Factors, x: Matrix, out: Matrix) -> None:
    n, width = x.shape[1], padded(x.shape[1])
    sizes = structure.intermediates()
    with pool.take(sum(-(-size * width * x.itemsize // 64) * 64 for size in sizes)) as arena:
        buffers = [arena.array((size, width), x.dtype)[:, :n] for size in sizes]
        for weights, source, target in views(structure, factors, x, buffers, out):
            np.matmul(weights, source, out=target)


def _dense(structure: BlockLowRank, pool: Pool, factors: Factors, x: Matrix, out: Matrix) -> None:
    np.matmul(factors[0], x, out=out)


def _expanded(structure: BlockLowRank, factors: Factors) -> Factors:
    return (structure.dense(factors),)
