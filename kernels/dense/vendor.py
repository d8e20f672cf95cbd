"""Strategy "gemm": the library's own product, what every other is measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...schemes_db.program import Program
from ..cpu.executor import MatrixExecutor, copy_bytes, is_empty
from ..cpu.int8 import Int8Leaf
from ..cpu.leaf import Leaf
from ..cpu.library import library_for
from ..cpu.reasons import basic_reason
from ..cpu.timing import timed
from ..cpu.workspace import Pool
from ..dtypes import dtype_of
from ..planning.profile import Profile
from ..planning.strategy import Executor, Stage
from ..request import Request


@dataclass(frozen=True)
class GemmStrategy:
    """Runs the program of one product, the classical 1x1x1, and nothing else."""

    name: str = "gemm"
    version: int = 1

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if reason := basic_reason(program, request):
            return reason
        if program.target.shape != (1, 1, 1) or not program.target.is_general or program.rank != 1:
            return "the library's product has no levels"
        return None

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`."""
        if is_empty(request):
            return []
        m, k, n = request.shape
        count = math.prod(request.batch)
        flops = request.flops * (1 if request.exact else dtype_of(request.dtype).parts ** 2)
        moved = count * ((m * k + k * n) * request.itemsize + m * n * request.result.itemsize)
        stage = Stage(f"{count} products {m}x{k}x{n}", flops, moved, product=request.shape)
        return timed([stage], request.dtype, profile, "whole")

    def workspace(self, program: Program, request: Request) -> int:
        """See `Strategy.workspace`; exact."""
        if is_empty(request):
            return 0
        return sum(copy_bytes(request)) + _core(request).workspace(1)

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Executor:
        """See `Strategy.build`."""
        if is_empty(request):
            return MatrixExecutor(request, None, pool)
        return MatrixExecutor(request, _core(request), pool)


def _core(request: Request) -> Leaf | Int8Leaf:
    if request.dtype == "int8":
        return Int8Leaf(request.shape)
    return Leaf(request.shape, request.dtype, library_for(request))
