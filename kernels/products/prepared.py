"""A static right operand: its sums are computed once, for all products with it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.display import line
from ...schemes_db.operands import array_of
from ..arrays import Matrix
from ..codegen.certified import SchemeLike
from ..cpu.threads import thread_count
from ..dense.chains import BATCHED, LOOP, TASKS
from ..planning.planner import baseline_plans
from ..planning.strategy import Plan, PreparedOperand
from ..plans.decisions import AUTO, plan_for
from ..plans.families import strategies
from ..request import Layout, Request, layout_of

KEPT_LEVELS = 64
"""Maximum number of cached executors and predictions, by rows of A."""


class Prepared:
    """B (K, N) with its right sums, for products A B with `rows` or more rows of A.

    `a @ prepared` and `lcma.matmul(a, prepared)` multiply. Products for which the scheme is not
    predicted to be faster use the library. `nbytes` is the memory of the sums. B is copied: changing
    the array afterwards has no effect.

    Raises:
        PlanError: B is not a matrix of a supported dtype, or the scheme cannot run such products or is for others.
    """

    __array_ufunc__ = None  # so that numpy leaves `a @ prepared` to this class
    __lcma_prepared__ = True

    def __init__(self, b: npt.ArrayLike, rows: int, scheme: SchemeLike | Any = AUTO, levels: int | None = None) -> None:
        need(INTEGER, least=0, rows=rows)
        need(INTEGER | None, levels=levels)
        array = array_of("b", b)
        if array.ndim != 2:
            raise PlanError(f"a prepared operand is one matrix; this has {array.ndim} dimensions")
        self._b = np.array(array, order="C" if layout_of(array) is Layout.SCATTERED else "K")
        self.rows = rows
        k, n = self._b.shape
        layouts = (Layout.ROWS, layout_of(self._b), Layout.ROWS)
        request = Request(rows, k, n, self._b.dtype.name, layouts=layouts, static="B")
        self.plan = plan_for(request, scheme, levels)
        if self.plan.candidate.method == LOOP:  # it stores no sums
            self.plan = plan_for(request, scheme, levels, strategy=f"scheme:{BATCHED}")
        program = self.plan.candidate.program
        if program is not None and not program.target.is_general:
            raise PlanError(f"the scheme is for {program.target}; a prepared operand is multiplied by general matrices")
        self._executor, self._pays = lru_cache(KEPT_LEVELS)(self._built), lru_cache(KEPT_LEVELS)(self._gains)
        self._operand: PreparedOperand | None = None
        if self.plan.candidate.method in (BATCHED, TASKS) and 0 not in request.shape:
            self._operand = self._executor(rows, False, thread_count()).prepare(self._b)

    def __repr__(self) -> str:
        k, n = self._b.shape
        return line(f"prepared {k}x{n} {self._b.dtype.name} by {self.plan.candidate}, {self.nbytes} bytes of sums")

    @property
    def nbytes(self) -> int:
        """Bytes of the stored sums."""
        return 0 if self._operand is None else self._operand.nbytes

    def _built(self, rows: int, by_columns: bool, threads: int) -> Any:
        """Return the executor for a number of rows of A."""
        layouts = (Layout.COLUMNS if by_columns else Layout.ROWS, self.plan.request.layouts[1], Layout.ROWS)
        request = replace(self.plan.request, m=rows, layouts=layouts)
        return replace(self.plan, request=request, machine=replace(self.plan.machine, threads=threads)).build()

    def _gains(self, rows: int) -> bool:
        """Return whether the scheme is predicted to beat the library for so many rows, or the times are unknown."""
        request = replace(self.plan.request, m=rows)
        ours = Plan.of(self.plan.strategy, self.plan.candidate, request, self.plan.machine, 0).seconds
        theirs = baseline_plans(request, self.plan.machine, strategies("cpu"))[0].seconds
        return ours is None or theirs is None or ours < theirs

    def multiply(self, a: Matrix, out: Matrix | None = None) -> Matrix:
        """Compute C = A B for A (..., M, K).

        Raises:
            PlanError: A or `out` does not fit.
        """
        request = Request.of(a, self._b, out)
        leading, rows = request.batch, request.m
        if leading and out is None and a.flags.c_contiguous:
            # One product of all rows: B is the same for every matrix of the batch.
            return self.multiply(a.reshape(-1, request.k)).reshape(*leading, rows, request.n)
        unusual = leading or Layout.SCATTERED in request.layouts or request.layouts[2] is Layout.COLUMNS
        if self._operand is None or unusual or not self._pays(rows):
            return np.matmul(a, self._b, out=out)
        executor = self._executor(rows, request.layouts[0] is Layout.COLUMNS, thread_count())
        return cast(Matrix, executor.run(a, self._operand, out))

    def __rmatmul__(self, a: npt.ArrayLike) -> Matrix:
        return self.multiply(array_of("a", a))
