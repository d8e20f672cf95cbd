"""The strategies that run levels of a program by generated sums and BLAS products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ...errors import PlanError
from ...schemes_db.program import Program
from ..codegen.maps import maps_of
from ..cpu.blas import NUMPY
from ..cpu.executor import MatrixExecutor, copy_bytes, is_empty
from ..cpu.int8 import Int8Level
from ..cpu.level import Level, core_of
from ..cpu.library import library_for
from ..cpu.partition import Method
from ..cpu.reasons import basic_reason
from ..cpu.threads import blas_is_limited, thread_count
from ..cpu.timing import timed
from ..cpu.workspace import Pool
from ..identity import Same
from ..planning.profile import Profile
from ..planning.strategy import Executor, Stage
from ..request import Request

ALL_LEVELS = 8
"""More than a program has."""


@dataclass(frozen=True)
class LevelStrategy:
    """One way to run levels. `tasks` and `loops` are those of `Method`.

    - batch: all sums of a level, then its products one by one on all threads. Fastest on one
      thread; needs the memory of all sums and products of a level, and that of one product below.
    - tasks: the same, but each product is worked by one thread alone; what does not go round evenly
      is shared by all. Sums below the first level overlap with products of other threads.
    - loop: one product of the first level after the other, in buffers of one block each.
    - depth-first: so on every level; the least memory of all.
    """

    name: str
    tasks: bool = False
    loops: int = 0
    version: int = 2

    def can_run(self, program: Program, request: Request, profile: Profile) -> str | None:
        """See `Strategy.can_run`."""
        if reason := basic_reason(program, request):
            return reason
        if request.dtype == "int8" and self.loops < (ALL_LEVELS if program.inner else 1):
            return "int8 products are made one at a time on every level"
        if self.tasks and thread_count() == 1:
            return "there is one thread: the same as batch"
        if self.tasks and (not blas_is_limited() or library_for(request) is not NUMPY):
            return "the library of the products has no thread limit that could be set for each task"
        if self.loops > 1 and not program.inner:
            return "there is one level: the same as loop"
        try:
            _check_levels(program)
        except PlanError as error:
            return str(error)
        return None

    def predict(self, program: Program, request: Request, profile: Profile) -> list[Stage]:
        """See `Strategy.predict`."""
        if is_empty(request):
            return []
        prepared = request.static == "B" and not self.loops
        stages = self._core(program, request).stages(math.prod(request.batch), prepared)
        return timed(stages, request.dtype, profile, "tasks" if self.tasks else "whole", bool(self.loops))

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

    def _core(self, program: Program, request: Request) -> Level | Int8Level:
        return _core(Same(program), request, Method(self.tasks, self.loops, library_for(request)))


@lru_cache(maxsize=64)
def _core(program: Same, request: Request, way: Method) -> Level | Int8Level:
    """Predicting, sizing and building take the same one."""
    if request.dtype == "int8":
        return Int8Level(program.held, request.shape)
    return core_of(program.held, request, way)


def _check_levels(program: Program) -> None:
    maps_of(program)
    for _, inner in program.inner:
        _check_levels(inner)
