"""The operators `lcma::kronecker_mm` and `lcma::kronecker_outer`: products by one Kronecker-sparse factor.

Matrices X (cols, n) may have any strides: a batch-first one is the transpose of a tensor (n, cols). Nothing is copied
to bring it into another layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import PlanError
from ..cuda.dtypes import PRECISIONS, check_precision, name_of, vendor_precision
from ..cuda.requests import layout_of as tensor_layout
from ..factored import extra_bytes_for, request_of
from ..planning.strategy import Executor
from ..plans import AUTO, again, planned
from ..request import FACTORED_DTYPES, Layout, Request, layout_of
from ..structured.backward import transposed_gradients
from ..structured.chain import KroneckerSparse
from ..structured.factor_products import TILED, TRANSPOSED
from ..structured.outer import outer_blocks, outer_tensors
from ..structured.pattern import Pattern
from ..structured.transposition import batch_last
from .bilinear import Options, define_bilinear, is_eager, is_plain, register_autocast
from .flops import flop_formula
from .processor import HALVES, as_array

Sizes = tuple[int, int, int, int]


def kronecker_mm(
    x: Tensor, weights: Tensor, last: bool = False, strategy: str | None = None, precision: str | None = None
) -> Tensor:
    """Compute K X (rows, n) for x (cols, n) and the parameters (a, d, b, c) of K.

    The result is contiguous, or with `last` the transpose of a contiguous tensor (n, rows). `precision` is how a GPU
    multiplies float32: "ieee", "tf32", "tf32x3", or None for torch's setting. The CPU multiplies strictly.

    Raises:
        PlanError: the operands do not fit each other, or there is no such precision.
    """
    check_precision(precision)
    if is_eager(x, weights):
        return _run(x, weights, last, strategy, precision)
    product: Tensor = _mm(x, weights, last, strategy, precision)
    return product


def chain(x: Tensor, factors: Sequence[Tensor], last: bool, strategy: str | None, precision: str | None) -> Tensor:
    """Compute K1 ... KL x for x (cols, n), the right-most factor first."""
    for place, weights in reversed(list(enumerate(factors))):
        x = kronecker_mm(x, weights, last and place == 0, strategy, precision)
    return x


def pattern_of(weights: Any) -> Pattern:
    """Return the pattern of parameters (a, d, b, c)."""
    a, d, b, c = (int(size) for size in weights.shape[-4:])
    return Pattern(a, b, c, d)


def _checked(x: Tensor, weights: Tensor) -> None:
    if weights.dim() != 4:
        raise PlanError(f"parameters have shape {tuple(weights.shape)}; (a, d, b, c) is needed")
    if x.dtype != weights.dtype or x.device != weights.device:
        raise PlanError(
            f"x is {x.dtype} on {x.device} and the parameters {weights.dtype} on {weights.device}; convert one with .to"
        )
    if x.dim() != 2 or x.shape[0] != weights.shape[0] * weights.shape[1] * weights.shape[3]:
        raise PlanError(f"x of shape {tuple(x.shape)} does not fit {pattern_of(weights)}; (acd, n) is needed")


def _leading(x: Tensor, weights: Tensor) -> list[tuple[Tensor, Tensor]] | None:
    """Return the pairs of matrices if vmap has added leading sizes to an operand, else None."""
    if x.dim() == 2 and weights.dim() == 4:
        return None
    matrices = x.reshape(-1, *x.shape[-2:])
    several = weights.reshape(-1, *weights.shape[-4:])
    count = max(len(matrices), len(several))
    return list(zip(matrices.expand(count, *x.shape[-2:]), several.expand(count, *weights.shape[-4:]), strict=True))


def _mapped(one: Callable[[Tensor, Tensor], Tensor], x: Tensor, weights: Tensor) -> Tensor:
    """Apply `one` to every pair that vmap creates."""
    pairs = _leading(x, weights)
    if pairs is None:
        return one(x, weights)
    return torch.stack([one(*pair) for pair in pairs])


def _run(x: Tensor, weights: Tensor, last: bool, strategy: str | None, precision: str | None = None) -> Tensor:
    def one(matrix: Tensor, blocks: Tensor) -> Tensor:
        _checked(matrix, blocks)
        if matrix.device.type == "cpu":
            return _on_processor(matrix, blocks, last, strategy)
        if matrix.device.type == "cuda":
            return _on_gpu(matrix, blocks, last, strategy, precision)
        raise PlanError(f"Kronecker-sparse products run on cpu and cuda, not on {matrix.device}; move them with .to")

    return _mapped(one, x, weights)


def request_dtype(x: Tensor, precision: str | None) -> str:
    """Return the dtype of a request for products of this tensor on a GPU; a precision applies to float32 only."""
    return PRECISIONS[precision] if precision and x.dtype == torch.float32 else name_of(x, FACTORED_DTYPES)


def _on_gpu(x: Tensor, weights: Tensor, last: bool, strategy: str | None, precision: str | None) -> Tensor:
    x, weights = x.resolve_conj(), weights.resolve_conj().contiguous()
    if tensor_layout(x) is Layout.SCATTERED:
        x = x.contiguous()
    a, d, b, c = weights.shape
    dtype = request_dtype(x, precision)
    key = weights.shape, x.shape, x.stride(), dtype, x.device, last, strategy

    def checked() -> tuple[Executor, Tensor]:
        executor = planned(_gpu_request(x, (a, b, c, d), last, strategy, precision), AUTO, None, strategy)[1]
        return executor, executor.run([weights], x)

    if x.dtype != torch.float32:
        product: Tensor = again(key, checked, [weights], x)
        return product
    with vendor_precision(dtype):
        product = again(key, checked, [weights], x)
    return product


def _gpu_request(x: Tensor, sizes: Sizes, last: bool, strategy: str | None, precision: str | None) -> Request:
    layouts = tensor_layout(x), Layout.COLUMNS if last else Layout.ROWS
    return _request(sizes, x.shape[1], request_dtype(x, precision), layouts, strategy)


@lru_cache(maxsize=512)
def _request(sizes: Sizes, n: int, dtype: str, layouts: tuple[Layout, Layout], strategy: str | None) -> Request:
    """Return the request for a product by one factor of sizes (a, b, c, d); the same object has its hash computed."""
    structure, extra = KroneckerSparse.of(Pattern(*sizes)), extra_bytes_for(strategy)
    return request_of(structure, n, dtype, device="cuda", layouts=layouts, max_extra_bytes=extra)


def _on_processor(x: Tensor, weights: Tensor, last: bool, strategy: str | None) -> Tensor:
    matrix, blocks = as_array(x), np.ascontiguousarray(as_array(weights))
    if matrix.size and layout_of(matrix) is Layout.SCATTERED:
        matrix = np.ascontiguousarray(matrix)
    single = bool({0, 1} & {*matrix.shape})
    layouts = Layout.ROWS if single else layout_of(matrix), Layout.COLUMNS if last else Layout.ROWS
    structure, extra = KroneckerSparse.of(pattern_of(weights)), extra_bytes_for(strategy)
    request = request_of(structure, matrix.shape[1], matrix.dtype.name, layouts=layouts, max_extra_bytes=extra)
    product = planned(request, AUTO, None, strategy)[1].run([blocks], matrix)
    result = torch.from_numpy(product.T if last else product)
    result = result.to(x.dtype) if x.dtype in HALVES else result
    return result.T if last else result


def _fake(x: Tensor, weights: Tensor, last: bool, strategy: str | None, precision: str | None = None) -> Tensor:
    def one(matrix: Tensor, blocks: Tensor) -> Tensor:
        torch._check(matrix.dim() == 2, lambda: "x must be a matrix (cols, n)")
        rows = blocks.shape[0] * blocks.shape[1] * blocks.shape[2]
        torch._check(matrix.shape[0] == blocks.shape[0] * blocks.shape[1] * blocks.shape[3], lambda: "sizes differ")
        if last:
            return matrix.new_empty((matrix.shape[1], rows)).T
        return matrix.new_empty((rows, matrix.shape[1]))

    return _mapped(one, x, weights)


def _gradients(
    x: Tensor, weights: Tensor, options: Options, grad: Tensor, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return dX = K^H dY and dW[i, j] = dY[i, :, j] X[i, :, j]^H."""
    last, strategy, precision = options
    first = x.stride(0) == 1 and x.stride(1) != 1 if x.dim() == 2 else last
    multiply, sum_outer = _mm, _outer
    real = grad.device.type in ("cpu", "cuda") and grad.dim() == x.dim() == 2 and weights.dim() == 4
    if real and is_plain(grad, x, weights):
        multiply, sum_outer = _run, _run_outer
        if all(needs) and strategy != TILED and _is_transposed(grad, weights, first, strategy, precision):
            if tensor_layout(x) is Layout.COLUMNS:
                with vendor_precision(request_dtype(grad, precision)):
                    return transposed_gradients(grad, x, weights)
            grad = batch_last(grad)
    grad_x = multiply(grad, weights.conj().mT, first, strategy, precision) if needs[0] else None
    tiled = strategy == TILED
    grad_w = sum_outer(grad, x.conj(), *weights.shape[-4:-2], tiled, precision) if needs[1] else None
    return grad_x, grad_w


def _is_transposed(grad: Tensor, weights: Tensor, first: bool, strategy: str | None, precision: str | None) -> bool:
    """Return whether dX is computed between transpositions of this batch-first gradient, as dW is."""
    a, d, b, c = weights.shape
    if not grad.is_cuda or d == 1 or tensor_layout(grad) is not Layout.COLUMNS:
        return False
    request = _gpu_request(grad, (a, c, b, d), first, strategy, precision)
    return planned(request, AUTO, None, strategy)[0].candidate.strategy == TRANSPOSED


def _run_outer(grad: Tensor, x: Tensor, a: int, d: int, tiled: bool = False, precision: str | None = None) -> Tensor:
    def one(left: Tensor, right: Tensor) -> Tensor:
        if left.is_cuda:
            with vendor_precision(request_dtype(left, precision)):
                return outer_tensors(left, right, a, d, tiled)
        found = torch.from_numpy(outer_blocks(as_array(left), as_array(right), a, d))
        return found.to(grad.dtype)

    if grad.device.type not in ("cpu", "cuda"):
        raise PlanError(f"Kronecker-sparse products run on cpu and cuda, not on {grad.device}; move them with .to")
    if grad.dim() == 2 and x.dim() == 2:
        return one(grad, x)
    left, right = (y.reshape(-1, *y.shape[-2:]) for y in (grad, x))
    count = max(len(left), len(right))
    return torch.stack([one(left[min(i, len(left) - 1)], right[min(i, len(right) - 1)]) for i in range(count)])


def _fake_outer(grad: Tensor, x: Tensor, a: int, d: int, tiled: bool = False, precision: str | None = None) -> Tensor:
    leading = torch.broadcast_shapes(grad.shape[:-2], x.shape[:-2])
    return grad.new_empty((*leading, a, d, grad.shape[-2] // (a * d), x.shape[-2] // (a * d)))


def _outer_gradients(
    grad: Tensor, x: Tensor, options: Options, cotangent: Tensor, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of dW = dY X^T by blocks: with V in place of dW, V X* and V^T dY*."""
    of_grad = _mm(x.conj(), cotangent, False, None, options[-1]) if needs[0] else None
    of_x = _mm(grad.conj(), cotangent.mT, False, None, options[-1]) if needs[1] else None
    return of_grad, of_x


_mm = define_bilinear(
    "kronecker_mm(Tensor x, Tensor weights, bool last, str? strategy, str? precision=None) -> Tensor",
    _run,
    _fake,
    _gradients,
    exact_strides=True,
)

_outer = define_bilinear(
    "kronecker_outer(Tensor grad, Tensor x, int a, int d, bool tiled=False, str? precision=None) -> Tensor",
    _run_outer,
    _fake_outer,
    _outer_gradients,
    exact_strides=True,
)


@flop_formula(torch.ops.lcma.kronecker_mm)
def _flops(x_shape: Any, weights_shape: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the parameters for every column of X."""
    return 2 * int(np.prod(weights_shape)) * int(x_shape[-1])


@flop_formula(torch.ops.lcma.kronecker_outer)
def _outer_flops(grad_shape: Any, x_shape: Any, a: int, d: int, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return the operations, which are those of the product itself."""
    return 2 * int(grad_shape[-2]) * int(x_shape[-2]) // (a * d) * int(x_shape[-1])


for _device in ("cuda", "cpu"):
    register_autocast("kronecker_mm", _mm, _device)
