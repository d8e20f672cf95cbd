"""The strategies of triangular products: strips, halves, and the levels of a structured scheme."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from ...schemes_db.algebra import naive
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.straightline import program_of
from ...schemes_db.symmetry import Triangle, triangle_of
from ..cpu.executor import MatrixExecutor, StagedCore, copy_bytes, is_empty
from ..cpu.half import HalfProduct
from ..cpu.level import Level, core_of
from ..cpu.partition import Method
from ..cpu.reasons import basic_reason
from ..cpu.strips import strip_count
from ..cpu.threads import thread_count
from ..cpu.timing import timed
from ..cpu.workspace import Pool
from ..planning.profile import Profile
from ..planning.strategy import Executor, Stage
from ..request import Layout, Request

DENSE_ABOVE = 4096
"""Triangles of more rows have their full product worked by the dense scheme, where there is one."""

STOP_HALVING = 256
"""Rows of a triangle that all threads together work as one product."""


@lru_cache(maxsize=32)
def strips_program(triangle: Triangle) -> Program:
    """The program of one half product."""
    return program_of(naive(triangle.target(1, 1, 1)))


@lru_cache(maxsize=64)
def halves_program(triangle: Triangle, dense: Program | None = None) -> Program:
    """The program of two triangles and the full product between them, worked by `dense` where it is given."""
    grid = {"out": (2, 1, 2), "left": (2, 2, 1), "right": (1, 2, 2)}[triangle.side]
    program = program_of(naive(triangle.target(*grid)))
    return program.nested({ProductKind.FULL: dense}) if dense is not None else program


def _by_columns(request: Request) -> tuple[bool, bool, bool]:
    first, second, third = (layout is Layout.COLUMNS for layout in request.layouts)
    return first, second, third


def _strips(program: Program, request: Request) -> HalfProduct:
    triangle = _triangle(program)
    size = request.n if triangle.side == "right" else request.m
    return HalfProduct(triangle, request.shape, request.dtype, strip_count(size))


def _halving(program: Program, request: Request) -> HalfProduct:
    dense = dict(program.inner).get(ProductKind.FULL)
    return HalfProduct(
        _triangle(program),
        request.shape,
        request.dtype,
        base=STOP_HALVING,
        dense=None if dense is None else partial(Level, dense),
        dense_above=DENSE_ABOVE,
        by_columns=_by_columns(request),
    )


def _joined(program: Program, request: Request) -> Level:
    return core_of(program, request, Method(grouped=True))


def _triangle(program: Program) -> Triangle:
    found = triangle_of(program.target)
    assert found is not None  # asked before, in can_run
    return found


def _half_reason(program: Program) -> str | None:
    return None if program.rank == 1 else "strips work one half product, not a scheme"


def _halves_reason(program: Program) -> str | None:
    return None if program.rank == 3 else "halving works two triangles and one product, not a scheme"


def _scheme_reason(program: Program) -> str | None:
    return None if program.rank > 3 else "there is no scheme to work"


@dataclass(frozen=True)
class TriangularStrategy:
    """One way to work a triangular product.

    - strips: row strips of one GEMM each, the honest baseline.
    - halving: two triangles of half the size and a full product, which a dense scheme may work.
    - joined: a level of a structured scheme, its grouped products handed to the threads.
    """

    name: str
    reason: Callable[[Program], str | None]
    make: Callable[[Program, Request], StagedCore]
    mode: str = "whole"
    version: int = 1

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if triangle_of(program.target) is None:
            return f"{program.target} is not a triangular product"
        return self.reason(program) or basic_reason(program, request)

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`."""
        if is_empty(request):
            return []
        stages = self._core(program, request).stages(math.prod(request.batch))
        return timed(stages, request.dtype, profile, self.mode)

    def workspace(self, program: Program, request: Request) -> int:
        """See `Strategy.workspace`; exact."""
        if is_empty(request):
            return 0
        return self._core(program, request).workspace(thread_count()) + sum(copy_bytes(request))

    def build(self, program: Program, request: Request, pool: Pool | None = None) -> Executor:
        """See `Strategy.build`."""
        if is_empty(request):
            return MatrixExecutor(request, None, pool)
        core = self._core(program, request)
        core.compile()
        return MatrixExecutor(request, core, pool, thread_count())

    def _core(self, program: Program, request: Request) -> StagedCore:
        return _core(self, program, request)


@lru_cache(maxsize=64)
def _core(strategy: TriangularStrategy, program: Program, request: Request) -> StagedCore:
    """Predicting, sizing and building take the same one."""
    return strategy.make(program, request)


STRIPS = TriangularStrategy("strips", _half_reason, _strips)
HALVING = TriangularStrategy("halving", _halves_reason, _halving)
JOINED = TriangularStrategy("joined", _scheme_reason, _joined, mode="tasks")
STRATEGIES = (STRIPS, HALVING, JOINED)
