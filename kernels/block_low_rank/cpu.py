"""Strategies for block low-rank products on the CPU: GEMMs of numpy's library on strided views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.reasons import basic_reason
from ..cpu.workspace import Pool, empty_aligned, shared_pool
from ..planning.machine import Machine
from ..planning.strategy import Candidate, Executor, Stage
from ..request import Layout, Request, layout_of
from .executor import BlockLowRankExecutor, Factors
from .naive import dense_matrix
from .quantization import dequantize, quantize
from .steps import Step, by_rank, views
from .strategy import DENSE, QUANTIZED, BlockLowRankStrategy, known, moved_elements, padded, structure_in
from .structure import BlockLowRank

Matrix = npt.NDArray[Any]

CALL_SECONDS = 3e-6
"""Overhead in seconds of one GEMM of a batch in numpy's loop over the batch; the value of Kronecker products."""

ROUNDING_PASSES = 12
"""Passes of numpy over an intermediate result, reading or writing, in which it is rounded: counted, not measured."""

ROUNDED = 1 << 17
"""Elements of an intermediate result that are rounded at once."""


@dataclass(frozen=True)
class CpuBlockLowRank(BlockLowRankStrategy):
    """A strategy for block low-rank products on the CPU.

    - strided: two or three batched GEMMs on views, the batch last between them; nothing is permuted. The baseline.
    - dense: the whole matrix, within `max_extra_bytes`.
    - quantized: strided, and intermediate results rounded in place to the `intermediate` of the request: the errors of
      a GPU, but no fewer bytes.
    """

    device: str = "cpu"

    def device_reason(self, structure: BlockLowRank, request: Request, machine: Machine) -> str | None:
        """See `BlockLowRankStrategy`."""
        if request.dtype not in ("float32", "float64"):
            return f"{request.dtype} is not multiplied by block low-rank factors here; convert to float32"
        return basic_reason(None, request)

    def step_seconds(self, step: Step, request: Request, machine: Machine) -> float:
        """See `BlockLowRankStrategy`: bound by arithmetic or by memory, plus the overhead of a call for every block."""
        costs = machine.costs
        seconds = float(costs.gemm(request.dtype, step.m, step.k, request.n, count=step.count, mode="whole"))
        moved = float(costs.combine(moved_elements(step, request.n) * request.itemsize))
        return max(moved, seconds + (step.count - 1) * CALL_SECONDS) if seconds == seconds else seconds

    def predict(self, candidate: Candidate, request: Request, machine: Machine) -> list[Stage]:
        """See `Strategy.predict`; to round takes `ROUNDING_PASSES` over the intermediate results."""
        stages = super().predict(candidate, request, machine)
        if self.name == QUANTIZED and stages:
            size = sum(structure_in(request).intermediates()) * request.n * request.itemsize
            seconds = known(float(machine.costs.combine(ROUNDING_PASSES * size)))
            stages.insert(-1, Stage(f"rounding to {request.intermediate}", 0, ROUNDING_PASSES * size, seconds))
        return stages

    def build(self, candidate: Candidate, request: Request, machine: Machine) -> Executor:
        """See `Strategy.build`."""
        structure = structure_in(request)
        pool = shared_pool if machine.pool is None else machine.pool
        product = _dense if self.name == DENSE else _strided
        rewrite = partial(_expanded, structure) if self.name == DENSE else None
        held = self.workspace(candidate, request, machine)
        run = partial(product, structure, pool)
        if self.name == QUANTIZED:
            run = partial(run, intermediate=request.intermediate)
        return BlockLowRankExecutor(request, structure, run, _empty, layout_of, np.may_share_memory, held, rewrite)


def _strided(
    structure: BlockLowRank,
    pool: Pool,
    factors: Factors,
    x: Matrix,
    out: Matrix,
    intermediate: str | None = None,
) -> None:
    n, width = x.shape[1], padded(x.shape[1])
    sizes = structure.intermediates()
    with pool.take(sum(-(-size * width * x.itemsize // 64) * 64 for size in sizes)) as arena:
        buffers = [arena.array((size, width), x.dtype)[:, :n] for size in sizes]
        between = by_rank(structure, buffers)
        for step, (weights, source, target) in enumerate(views(structure, factors, x, buffers, out)):
            np.matmul(weights, source, out=target)
            if intermediate is not None and step < len(between):
                _round(between[step], intermediate)


def _round(values: Matrix, form: str) -> None:
    """Round values (..., rank, n) in place, so many columns at a time that temporary arrays stay in the cache."""
    n = values.shape[-1]
    step = max(1, ROUNDED * n // values.size)
    for start in range(0, n, step):
        some = values[..., start : start + step]
        some[...] = dequantize(*quantize(some, form), form)


def _dense(structure: BlockLowRank, pool: Pool, factors: Factors, x: Matrix, out: Matrix) -> None:
    np.matmul(factors[0], x, out=out)


def _expanded(structure: BlockLowRank, factors: Factors) -> Factors:
    return (dense_matrix(structure, factors),)


def _empty(request: Request, like: Matrix) -> Matrix:
    if request.layouts[2] is Layout.COLUMNS:
        return empty_aligned((request.n, request.m), request.result).T
    return empty_aligned((request.m, request.n), request.result)
