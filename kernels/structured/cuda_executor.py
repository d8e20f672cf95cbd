"""The executor of Kronecker-sparse products of tensors: checks, rewritten factors, factor after factor, `out`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...errors import PlanError
from ..cuda.requests import layout_of
from ..out import check_out, shares_storage
from ..prepared_operand import PreparedOperand
from ..request import Layout, Request
from .blocks import empty_result, is_batch_first
from .chain import KroneckerSparse
from .gather import multiply_gathered
from .pattern import Pattern
from .permuted import BMM, by_bmm
from .rewrites import BY_HALVES, prepared_factors, rewritten_patterns
from .split import multiply_split
from .tensors import multiply_strided, multiply_tiled
from .tiles import tile_of

Tensor = Any
Factors = Sequence[Tensor]

STRIDED, TILED, GATHER, FUSED, TRANSPOSED = "strided", "tiled", "gather", "fused", "transposed"


class WholeProduct(Protocol):
    """Runs all factors of a request."""

    def run(self, factors: Factors, x: Tensor, out: Tensor) -> None:
        """Compute out (rows, n) = K1 ... KL x (cols, n)."""


class TensorKroneckerExecutor:
    """Runs the factors of W on X (cols, n) one after the other. Thread-safe and deterministic.

    `strategy` is STRIDED, TILED, GATHER, BY_HALVES or BMM; if given, `product` runs all factors instead.
    Results between factors are batch-last. `tile` is the choice of the kernel's tile. With `rewrite` the factors are
    rewritten first; `prepare` does so once.
    """

    def __init__(
        self,
        request: Request,
        structure: KroneckerSparse,
        strategy: str,
        rewrite: str | None,
        workspace: int,
        tile: int = 0,
        product: WholeProduct | None = None,
    ) -> None:
        self.request, self.structure, self.workspace = request, structure, workspace
        self._strategy, self._rewrite, self._tile, self._product = strategy, rewrite, tile, product

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the executed format, to pass to `run` instead of `a`; a must not be modified."""
        return prepared_factors(a, self.structure.patterns, self._rewrite)

    def run(self, a: Factors | PreparedOperand, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Compute W X in `out` (rows, n), or in a new tensor of the request's layout. See `Executor.run`.

        Raises:
            PlanError: the operands do not match the request.
        """
        request, patterns = self.request, self.structure.patterns
        if out is not None:
            check_out(out, (request.m, request.n), b.dtype, b.device)
        self._check(a.b if isinstance(a, PreparedOperand) else a, b, out)
        last = request.layouts[2] is Layout.COLUMNS
        target = empty_result(b, request.m, last) if out is None or shares_storage(out, b) else out
        if 0 in (request.m, request.n):
            return target if out is None else out
        factors = (a if isinstance(a, PreparedOperand) else self.prepare(a)).sums
        if self._rewrite is not None:
            patterns = rewritten_patterns(patterns, self._rewrite)
        x = b
        if self._product is not None:
            self._product.run(factors, x, target)
            return target if out is None or target is out else out.copy_(target)
        for place in reversed(range(len(patterns))):
            x = self._factor(factors[place], patterns[place], x, target if place == 0 else None)
        if x is not target:
            target.copy_(x)
        return target if out is None or target is out else out.copy_(target)

    def again(self, a: Factors, b: Tensor) -> Tensor:
        """Compute W X as `run` does, without its checks: the operands have the sizes, strides and dtypes of a run."""
        if self._rewrite is not None or self._product is not None or len(self.structure.patterns) > 1:
            return self.run(a, b)
        target = empty_result(b, self.request.m, self.request.layouts[2] is Layout.COLUMNS)
        return self._factor(a[0], self.structure.patterns[0], b, target)

    def _factor(self, weights: Tensor, pattern: Pattern, x: Tensor, out: Tensor | None) -> Tensor:
        """Compute K x, in `out` if it can be written there."""
        if self._strategy == BMM:
            out = empty_result(x, pattern.rows, is_batch_first(x)) if out is None else out
            by_bmm(weights, pattern, x, out)
            return out
        out = empty_result(x, pattern.rows, first=False) if out is None else out
        if self._strategy == TILED:
            dtype = self.request.dtype
            multiply_tiled(weights, pattern, x, out, dtype, tile_of(dtype, pattern, self._tile))
        elif self._strategy == GATHER:
            multiply_gathered(weights, pattern, x, out)
        elif self._strategy == BY_HALVES:
            multiply_split(weights, pattern, x, out)
        else:
            multiply_strided(weights, pattern, x, out)
        return out

    def _check(self, factors: Factors, x: Tensor, out: Tensor | None) -> None:
        request, patterns = self.request, self.structure.patterns
        if len(factors) != len(patterns):
            raise PlanError(f"{self.structure.name} needs a list of {len(patterns)} factors, left-most first")
        for place, (weights, pattern) in enumerate(zip(factors, patterns, strict=True), 1):
            if tuple(weights.shape) != pattern.parameter_shape or weights.dtype != x.dtype:
                raise PlanError(
                    f"factor {place} is {weights.dtype} of shape {list(weights.shape)}; {pattern} with x of {x.dtype} "
                    f"needs (a, d, b, c) = {list(pattern.parameter_shape)}"
                )
            if not weights.is_contiguous():
                raise PlanError(f"factor {place} is not contiguous; pass weights.contiguous()")
        for label, matrix, shape, layout in (
            ("x", x, (request.k, request.n), request.layouts[1]),
            ("out", out, (request.m, request.n), request.layouts[2]),
        ):
            if matrix is None:
                continue
            if tuple(matrix.shape) != shape or matrix.dtype != x.dtype:
                raise PlanError(f"{label} is {matrix.dtype} of shape {list(matrix.shape)}; the plan is for {shape}")
            if not {0, 1} & {*shape} and layout_of(matrix) is not layout:
                raise PlanError(f"{label} is stored by {layout_of(matrix)}; the plan is for {layout}: plan again")
