"""The executor of products by factored matrices, of arrays and of tensors: checks, rewritten factors, `out`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import PlanError
from ..cpu.workspace import empty_aligned
from ..cuda.requests import layout_of as tensor_layout
from ..out import check_out, shares_storage
from ..planning.strategy import PreparedOperand
from ..request import Layout, Request, layout_of
from .blocks import Array, Factors
from .chain import FactorChain

Product = Callable[[Factors, Array, Array], None]
"""product(factors, x, out): out (rows, n) = W x for x (cols, n), neither empty; they do not overlap."""

Rewrite = Callable[[Factors], Factors]
"""rewrite(factors): the factors in the format of a product, newly allocated; each has `nbytes`."""


class StructuredExecutor:
    """Runs one product on the factors of W and on X (cols, n). Thread-safe and deterministic.

    With `rewrite` the product multiplies by the rewritten factors: `prepare` computes them once, `run` at every call
    with the original factors.
    """

    def __init__(
        self, request: Request, structure: FactorChain, product: Product, workspace: int, rewrite: Rewrite | None = None
    ) -> None:
        self.request, self.structure, self.workspace = request, structure, workspace
        self._product, self._rewrite = product, rewrite
        self._transposed = request.layouts[2] is Layout.COLUMNS
        self._size = (request.n, request.m) if self._transposed else (request.m, request.n)
        self._strides = (1, request.m) if self._transposed else (request.n, 1)  # of a new tensor, which needs no view

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the product's format, to pass to `run` instead of `a`; a must not be modified."""
        self._check_factors(a)
        sums = tuple(a if self._rewrite is None else self._rewrite(a))
        return PreparedOperand(a, sums, 0 if self._rewrite is None else sum(one.nbytes for one in sums))

    def run(self, a: Factors | PreparedOperand, b: Array, out: Array | None = None) -> Array:
        """Compute W X in `out` (rows, n), or in a new array of the request's layout. See `Executor.run`.

        Raises:
            PlanError: the operands do not match the request.
        """
        request = self.request
        if not isinstance(a, PreparedOperand):
            self._check_factors(a)
        wanted = request.storage if isinstance(b, np.ndarray) else b.dtype
        for place, weights in enumerate(a.b if isinstance(a, PreparedOperand) else a, 1):
            if weights.dtype != wanted:
                raise PlanError(f"factor {place} is {weights.dtype} in a product of {wanted}; convert one")
        if b.dtype != wanted:
            raise PlanError(f"x is {b.dtype}; the plan is for {wanted}")
        self._check_matrix("x", b, (request.k, request.n), request.layouts[1], b.dtype)
        if out is not None:
            check_out(out, (request.m, request.n), b.dtype, None if isinstance(b, np.ndarray) else b.device)
            self._check_matrix("out", out, (request.m, request.n), request.layouts[2], b.dtype)
        overlap = np.may_share_memory if isinstance(b, np.ndarray) else shares_storage
        target = self._empty(b) if out is None or overlap(out, b) else out
        if 0 not in request.shape:
            if isinstance(a, PreparedOperand):
                self._product(a.sums, b, target)
            else:
                self._product(a if self._rewrite is None else self._rewrite(a), b, target)
        if out is None or target is out:
            return target
        out[...] = target
        return out

    def again(self, a: Factors, b: Array) -> Array:
        """Compute W X as `run` does, without its checks: the operands have the sizes, strides and dtypes of a run."""
        target = self._empty(b)
        self._product(a if self._rewrite is None else self._rewrite(a), b, target)
        return target

    def _empty(self, like: Array) -> Array:
        """Allocate a result (rows, n) of the request's layout, of the kind of X."""
        if not isinstance(like, np.ndarray):
            return like.new_empty_strided((self.request.m, self.request.n), self._strides)
        found: Array = empty_aligned(self._size, self.request.result)
        return found.T if self._transposed else found

    def _check_factors(self, factors: Factors) -> None:
        self.structure.check_factors(factors)
        for place, weights in enumerate(factors, 1):
            if not isinstance(weights, np.ndarray) and not weights.is_contiguous():
                raise PlanError(f"factor {place} is not contiguous; pass weights.contiguous()")

    def _check_matrix(self, label: str, matrix: Array, shape: tuple[int, int], layout: Layout, dtype: Any) -> None:
        if tuple(matrix.shape) != shape or matrix.dtype != dtype:
            raise PlanError(
                f"{label} is {matrix.dtype} of shape {tuple(matrix.shape)}; the plan is for {dtype} of shape {shape}"
            )
        found = layout_of(matrix) if isinstance(matrix, np.ndarray) else tensor_layout(matrix)
        single = 1 in shape and found is not Layout.SCATTERED  # a single row or column has either layout
        if 0 not in shape and found is not layout and not single:
            raise PlanError(f"{label} is stored by {found}; the plan is for {layout}: plan again")
