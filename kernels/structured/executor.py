"""The executor of block low-rank products, of arrays and of tensors: checks, dense matrices, `out`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import PlanError
from ..out import check_out
from ..prepared_operand import PreparedOperand
from ..request import Layout, Request
from .block_low_rank import BlockLowRank

Array = Any
"""A numpy array or a torch tensor."""

Factors = Sequence[Array]

Product = Callable[[Factors, Array, Array], None]
"""product(factors, x, out): out (rows, n) = W x for x (cols, n), neither empty; they do not overlap."""


class BlockLowRankExecutor:
    """Runs one product on the factors of W and on X (cols, n). Thread-safe and deterministic.

    `rewrite` converts the factors to the product's format: `prepare` does so once, `run` at every call with the
    original factors.
    """

    def __init__(
        self,
        request: Request,
        structure: BlockLowRank,
        product: Product,
        empty: Callable[[Request, Array], Array],
        layout_of: Callable[[Array], Layout],
        overlap: Callable[[Array, Array], bool],
        workspace: int,
        rewrite: Callable[[Factors], Factors] | None = None,
    ) -> None:
        self.request, self.structure, self.workspace = request, structure, workspace
        self._product, self._empty, self._layout_of = product, empty, layout_of
        self._overlap, self._rewrite = overlap, rewrite

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the product's format, to pass to `run` instead of `a`; a must not be modified."""
        self._check_factors(a)
        sums = tuple(a) if self._rewrite is None else tuple(self._rewrite(a))
        return PreparedOperand(a, sums, 0 if self._rewrite is None else sum(x.nbytes for x in sums))

    def run(self, a: Factors | PreparedOperand, b: Array, out: Array | None = None) -> Array:
        """Compute W X in `out` (rows, n), or in a new array of the request's layout. See `Executor.run`.

        Raises:
            PlanError: the operands do not match the request.
        """
        request = self.request
        if not isinstance(a, PreparedOperand):
            self._check_factors(a)
            if a[0].dtype != b.dtype:
                raise PlanError(f"the factors are {a[0].dtype} and x is {b.dtype}; convert one")
        self._check_matrix("x", b, (request.k, request.n), request.layouts[1], b.dtype)
        if out is not None:
            check_out(out, (request.m, request.n), b.dtype, None if isinstance(b, np.ndarray) else b.device)
            self._check_matrix("out", out, (request.m, request.n), request.layouts[2], b.dtype)
        target = self._empty(request, b) if out is None or self._overlap(out, b) else out
        if 0 not in request.shape:
            factors = a.sums if isinstance(a, PreparedOperand) else a
            if self._rewrite is not None and not isinstance(a, PreparedOperand):
                factors = self._rewrite(factors)
            self._product(factors, b, target)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target

    def again(self, a: Factors, b: Array) -> Array:
        """Compute W X as `run` does, without its checks: the operands have the sizes, strides and dtypes of a run."""
        target = self._empty(self.request, b)
        self._product(a if self._rewrite is None else self._rewrite(a), b, target)
        return target

    def _check_factors(self, factors: Factors) -> None:
        shapes = self.structure.factor_shapes
        if not isinstance(factors, list | tuple) or len(factors) != len(shapes):
            raise PlanError(f"{self.structure.name} needs a list of {len(shapes)} factors, left-most first")
        for place, (weights, shape) in enumerate(zip(factors, shapes, strict=True), 1):
            if tuple(weights.shape) != shape or weights.dtype != factors[0].dtype:
                raise PlanError(
                    f"factor {place} is {weights.dtype} of shape {list(weights.shape)}; {self.structure.name} needs "
                    f"{factors[0].dtype} of shape {list(shape)}"
                )

    def _check_matrix(self, label: str, matrix: Array, shape: tuple[int, int], layout: Layout, dtype: Any) -> None:
        if tuple(matrix.shape) != shape or matrix.dtype != dtype:
            raise PlanError(
                f"{label} is {matrix.dtype} of shape {list(matrix.shape)}; the plan is for {list(shape)} of {dtype}"
            )
        found = self._layout_of(matrix)
        if not {0, 1} & {*shape} and found is not layout:
            raise PlanError(f"{label} is stored by {found}; the plan is for {layout}: plan again")
