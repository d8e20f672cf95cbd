"""The executor of Kronecker-sparse products of arrays: checks, rewritten factors, `out`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ..cpu.executor import StagedCore
from ..cpu.workspace import Pool, empty_aligned, shared_pool
from ..out import check_out
from ..prepared_operand import PreparedOperand
from ..request import Layout, Request, layout_of
from .chain import KroneckerSparse
from .rewrites import prepared_factors

Matrix = npt.NDArray[Any]
Factors = Sequence[Matrix]


class KroneckerExecutor:
    """Runs a core on the factors of W and on X (cols, batch). Thread-safe and deterministic.

    `core` is None if the request is empty. With `rewrite` the core multiplies by the rewritten factors, which
    `prepare` computes once, and `run` at every call with the original factors.
    """

    def __init__(
        self,
        request: Request,
        structure: KroneckerSparse,
        core: StagedCore | None,
        pool: Pool | None,
        threads: int,
        rewrite: str | None = None,
        workspace: int = 0,
    ) -> None:
        self.request, self.structure, self.threads, self.workspace = request, structure, threads, workspace
        self._core, self._rewrite = core, rewrite
        self._pool = shared_pool if pool is None else pool

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the core's format, to pass to `run` instead of `a`; a must not be modified."""
        self._check_factors(a)
        return prepared_factors(a, self.structure.patterns, self._rewrite)

    def run(self, a: Factors | PreparedOperand, b: Matrix, out: Matrix | None = None) -> Matrix:
        """Compute W X in `out` (rows, batch), or in a new array of the request's layout. See `Executor.run`.

        Raises:
            PlanError: the operands do not match the request.
        """
        request = self.request
        if not isinstance(a, PreparedOperand):
            self._check_factors(a)
        self._check_matrix("x", b, (request.k, request.n), request.layouts[1])
        if out is None:
            out = _empty(request)
        else:
            check_out(out, (request.m, request.n), request.storage)
            self._check_matrix("out", out, (request.m, request.n), request.layouts[2])
        if self._core is None:
            out[...] = 0
            return out
        factors = (a if isinstance(a, PreparedOperand) else self.prepare(a)).sums
        target = _empty(request) if np.may_share_memory(out, b) else out
        with self._pool.take(self._core.workspace(self.threads)) as arena:
            self._core.run(factors, b, target, arena, self.threads)
        if target is not out:
            out[...] = target
        return out

    def _check_factors(self, factors: Factors) -> None:
        patterns = self.structure.patterns
        if isinstance(factors, np.ndarray) or len(factors) != len(patterns):
            raise PlanError(f"{self.structure.name} needs a list of {len(patterns)} factors, left-most first")
        for place, (weights, pattern) in enumerate(zip(factors, patterns, strict=True), 1):
            if weights.shape != pattern.parameter_shape or weights.dtype != self.request.storage:
                raise PlanError(
                    f"factor {place} is {weights.dtype} of shape {weights.shape}; {pattern} in "
                    f"{self.request.dtype} needs (a, d, b, c) = {pattern.parameter_shape}"
                )

    def _check_matrix(self, label: str, matrix: Matrix, shape: tuple[int, int], layout: Layout) -> None:
        request = self.request
        if matrix.shape != shape or matrix.dtype != request.storage:
            raise PlanError(
                f"{label} is {matrix.dtype} of shape {matrix.shape}; the plan is for {request.dtype} of shape {shape}"
            )
        found = layout_of(matrix)
        single = 1 in shape and found is not Layout.SCATTERED  # a single row or column has either layout
        if 0 not in shape and found is not layout and not single:
            raise PlanError(f"{label} is stored by {found}; the plan is for {layout}: plan again")


def _empty(request: Request) -> Matrix:
    if request.layouts[2] is Layout.COLUMNS:
        return empty_aligned((request.n, request.m), request.result).T
    return empty_aligned((request.m, request.n), request.result)
