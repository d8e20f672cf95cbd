"""A right operand that stays: its sums are made once, for all products with it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ..api import AUTO, KEPT_PLANS, SchemeLike, plan_for
from ..cpu.executor import MatrixExecutor
from ..cpu.level import core_of
from ..cpu.library import library_for
from ..cpu.partition import Method
from ..cpu.threads import thread_count
from ..cpu.workspace import Pool, shared_pool
from ..prepared_operand import PreparedOperand
from ..request import Layout, Request, layout_of

Matrix = npt.NDArray[Any]


class Prepared:
    """B (K, N) with its right sums, for products A B with `rows` rows or more of A.

    `a @ prepared` and `lcma.matmul(a, prepared)` multiply. Products with fewer rows than half of
    `rows`, and all where no scheme pays, are the library's own. `nbytes` is the memory of the sums.
    B is copied: changing the array afterwards changes nothing.

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
        self._executors: dict[tuple[int, bool, int], MatrixExecutor] = {}
        self._operand: PreparedOperand | None = None
        if self.plan.candidate.strategy in ("batch", "tasks") and 0 not in request.shape:
            self._operand = self._executor(rows, False).prepare(self._b)

    @property
    def nbytes(self) -> int:
        """Bytes of the sums that are kept."""
        return 0 if self._operand is None else self._operand.nbytes

    def _executor(self, rows: int, by_columns: bool) -> MatrixExecutor:
        """The executor for so many rows of A; the last few are kept."""
        key = rows, by_columns, thread_count()
        with self._lock:
            if key not in self._executors:
                first = Layout.COLUMNS if by_columns else Layout.ROWS
                layouts = (first, self.plan.request.layouts[1], Layout.ROWS)
                request = replace(self.plan.request, m=rows, layouts=layouts)
                way = Method(self.plan.candidate.strategy == "tasks", 0, library_for(self.plan.request))
                level = core_of(self.plan.candidate.program, request, way)
                level.compile()
                if len(self._executors) >= KEPT_PLANS:
                    self._executors.clear()
                self._executors[key] = MatrixExecutor(request, level, self._pool, thread_count())
            return self._executors[key]

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
        if self._operand is None or unusual or 2 * rows < self.rows:
            return np.matmul(a, self._b, out=out)
        return self._executor(rows, request.layouts[0] is Layout.COLUMNS).run(a, self._operand, out)

    def __rmatmul__(self, a: npt.ArrayLike) -> Matrix:
        return self.multiply(np.asarray(a))
