"""A static right operand: its sums are computed once, for all products with it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ..codegen.certified import SchemeLike
from ..cpu.level import Level, Right
from ..cpu.library import library_for
from ..cpu.partition import Way
from ..cpu.threads import thread_count
from ..cpu.workspace import Pool, shared_pool
from ..families import strategies
from ..planning.planner import baseline_plan
from ..plans import AUTO, plan_for
from ..request import Layout, Request, layout_of
from .chains import BATCHED, TASKS

Matrix = npt.NDArray[Any]

KEPT_LEVELS = 64
"""Executors by rows of A that are kept."""


class Prepared:
    """B (K, N) with its right sums, for products A B with `rows` rows or more of A.

    `a @ prepared` and `lcma.matmul(a, prepared)` multiply. Products for which the scheme is not
    predicted to be faster are the library's own. `nbytes` is the memory of the sums. B is copied: changing
    the array afterwards changes nothing.

    Raises:
        PlanError: B is no matrix of a supported dtype, or the scheme cannot run such products.
    """

    __array_ufunc__ = None  # so that numpy leaves `a @ prepared` to us
    __lcma_prepared__ = True

    def __init__(self, b: npt.ArrayLike, rows: int, scheme: SchemeLike | Any = AUTO, levels: int | None = None) -> None:
        array = np.asarray(b)
        if array.ndim != 2:
            raise PlanError(f"a prepared operand is one matrix; this has {array.ndim} dimensions")
        self._b = np.array(array, order="C" if layout_of(array) is Layout.SCATTERED else "K")
        self.rows = rows
        k, n = self._b.shape
        layouts = (Layout.ROWS, layout_of(self._b), Layout.ROWS)
        request = Request(rows, k, n, self._b.dtype.name, layouts=layouts, static="B")
        self.plan = plan_for(request, scheme, levels)
        self._pool: Pool = shared_pool
        self._lock = threading.Lock()
        self._levels: dict[tuple[int, bool, int], Level] = {}
        self._gains: dict[int, bool] = {}
        self._right: Right | None = None
        if self.plan.candidate.method in (BATCHED, TASKS) and 0 not in request.shape:
            self._right = self._level(rows, False).prepare(self._b, thread_count())

    @property
    def nbytes(self) -> int:
        """Bytes of the sums that are kept."""
        return 0 if self._right is None else self._right.nbytes

    def _level(self, rows: int, by_columns: bool) -> Level:
        """The core for so many rows of A; the last few are kept."""
        key = rows, by_columns, thread_count()
        with self._lock:
            if key not in self._levels:
                k, n = self._b.shape
                blas = library_for(self.plan.request, self.plan.machine.profile)
                way = Way(self.plan.candidate.method == TASKS, 0, blas)
                columns = (by_columns, layout_of(self._b) is Layout.COLUMNS, False)
                program = self.plan.candidate.program
                assert program is not None  # a scheme has a source
                level = Level(program, (rows, k, n), self.plan.request.dtype, columns, way)
                level.compile()
                if len(self._levels) >= KEPT_LEVELS:
                    self._levels.clear()
                self._levels[key] = level
            return self._levels[key]

    def _pays(self, rows: int) -> bool:
        """Whether the scheme is predicted to beat the library's product for so many rows, or nothing is known."""
        if rows not in self._gains:
            request = replace(self.plan.request, m=rows)
            machine, strategies_of = self.plan.machine, strategies("cpu")
            stages = tuple(self.plan.strategy.predict(self.plan.candidate, request, machine))
            plan = replace(self.plan, request=request, stages=stages)
            baseline = baseline_plan(request, machine, strategies_of)
            if len(self._gains) >= KEPT_LEVELS:
                self._gains.clear()
            self._gains[rows] = plan.seconds is None or baseline.seconds is None or plan.seconds < baseline.seconds
        return self._gains[rows]

    def multiply(self, a: Matrix, out: Matrix | None = None) -> Matrix:
        """C = A B for A (..., M, K).

        Raises:
            PlanError: A or `out` does not fit.
        """
        request = Request.of(a, self._b, out)
        leading, rows = request.batch, request.m
        if leading and out is None and a.flags.c_contiguous:
            # One product of all rows: B is the same for every matrix of the batch.
            return self.multiply(a.reshape(-1, request.k)).reshape(*leading, rows, request.n)
        unusual = leading or Layout.SCATTERED in request.layouts or request.layouts[2] is Layout.COLUMNS
        if self._right is None or unusual or not self._pays(rows):
            return np.matmul(a, self._b, out=out)
        level, threads = self._level(rows, request.layouts[0] is Layout.COLUMNS), thread_count()
        result = np.empty((rows, request.n), a.dtype) if out is None else out
        with self._pool.take(level.workspace(threads)) as arena:
            level.run(a, self._b, result, arena, threads, self._right)
        return result

    def __rmatmul__(self, a: npt.ArrayLike) -> Matrix:
        return self.multiply(np.asarray(a))
