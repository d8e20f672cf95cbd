"""The operator `lcma::structured_mm`: W X for a matrix W that is stored as factors, linear in every factor.

Gradients of a Kronecker-sparse factor are an operator of their own, `lcma::structured_outer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import PlanError
from ..cuda.dtypes import factored_precision, vendor_precision
from ..cuda.requests import layout_of as tensor_layout
from ..factored import UNLIMITED, factored_request, product_dtype
from ..plans.decisions import AUTO, decision_for, plan_and_executor
from ..request import Layout
from ..structured.block_low_rank import parse_structure
from ..structured.blocks import as_blocks
from ..structured.chain import FactorChain, KroneckerSparse
from ..structured.outer import outer_blocks, outer_tensors, transposed_gradients
from ..structured.pattern import Pattern
from ..structured.rewrites import DENSE
from ..structured.strategy import TRANSPOSED
from ..structured.transposition import batch_last
from .bilinear import LIBRARY, define_multilinear, define_opaque, is_eager, is_plain, register_autocast
from .flops import flop_formula
from .processor import as_array
from .structured_products import Options, arithmetic_on_gpu, gpu_request, run

NAME, INFERENCE = "structured_mm", "structured_mm_inference"


def structured_mm(
    x: Tensor,
    factors: Sequence[Tensor],
    structure: FactorChain,
    last: bool = False,
    strategy: str | None = None,
    precision: str | None = None,
) -> Tensor:
    """Compute W X (rows, n) for x (cols, n) and the factors of W.

    The result is contiguous, or with `last` the transpose of a contiguous tensor (n, rows). `precision` is how a GPU
    multiplies float32: "ieee", "tf32", "fp32-accurate", or None for torch's setting. The CPU multiplies strictly.

    Raises:
        PlanError: the operands do not fit each other, or there is no such precision.
    """
    if is_eager(x, *factors):
        return run(x, factors, structure, (last, strategy, precision))
    # In a graph that records nothing the operator without rules of derivatives is one call of Python, not two.
    op = _plain if torch.compiler.is_compiling() and not torch.is_grad_enabled() else _mm
    return op(x, list(factors), structure.text, last, strategy, precision)


def multiply_factors(x: Tensor, factors: Sequence[Tensor], structure: FactorChain, options: Options) -> Tensor:
    """Compute W X as `structured_mm`: a list of patterns factor by factor, whose results autograd stores."""
    if isinstance(structure, KroneckerSparse):
        for place in range(len(factors) - 1, 0, -1):
            x = structured_mm(x, [factors[place]], structure.singles[place], False, *options[1:])
        structure, factors = structure.singles[0], factors[:1]
    return structured_mm(x, factors, structure, *options)


def dense_where_faster(
    factors: Sequence[Tensor], structure: FactorChain, rows: int, max_extra_bytes: int, strategy: str | None = None
) -> Tensor | None:
    """Return W (rows, cols) if the planner takes the dense matrix for so many inputs, else None.

    None, too, if W takes more than `max_extra_bytes`: the factors are not freed.

    Raises:
        PlanError: nothing runs the product, or the factors are on a device other than cpu and cuda.
    """
    first = factors[0].detach()
    if structure.rows * structure.cols * first.element_size() > max_extra_bytes:
        return None
    device, precision = first.device.type, factored_precision(first, None) if first.is_cuda else None
    own = product_dtype(str(first.dtype).removeprefix("torch."), device)
    request = factored_request(structure, rows, own, device=device, max_extra_bytes=UNLIMITED, precision=precision)
    if decision_for(request, strategy=strategy).plan.candidate.strategy != DENSE:
        return None
    wide = [one.detach().to(torch.promote_types(one.dtype, torch.float32)) for one in factors]
    return structure.dense(wide).to(first.dtype).contiguous()


def _run(
    x: Tensor, factors: list[Tensor], structure: str, last: bool, strategy: str | None, precision: str | None = None
) -> Tensor:
    plain = [one.resolve_conj() for one in factors]
    return run(x.resolve_conj(), plain, parse_structure(structure), (last, strategy, precision))


def _fake(x: Tensor, factors: list[Tensor], structure: str, last: bool, *_: Any) -> Tensor:
    known = parse_structure(structure)
    torch._check(x.dim() == 2, lambda: "x must be a matrix (cols, n)")
    torch._check(x.shape[0] == known.cols, lambda: f"x must have {known.cols} rows")
    return x.new_empty((x.shape[1], known.rows)).T if last else x.new_empty((known.rows, x.shape[1]))


def _gradients(
    tensors: Sequence[Tensor], options: Sequence[Any], grad: Tensor, needs: Sequence[bool]
) -> Sequence[Tensor | None]:
    """Return the gradients of X (cols, n) and of every factor for that of W X (rows, n); None if not needed."""
    (x, *factors), structure = tensors, parse_structure(options[0])
    own: Options = (x.stride(0) == 1 and x.stride(1) != 1, *options[2:])
    if len(factors) == 1:
        assert isinstance(structure, KroneckerSparse)
        return _kronecker(structure, x, factors[0], own, grad, needs)
    of_x: Tensor | None = None
    if needs[0]:
        other, turned, order = structure.transpose([one.conj() for one in factors])
        given = grad if order is None else grad[torch.as_tensor(order, device=grad.device)]
        of_x = structured_mm(given, [one.contiguous() for one in turned], other, *own)  # repeats: contiguous ones
    found: list[Tensor | None] = [None] * len(factors)
    if any(needs[1:]):
        sums = factor_gradients(structure, x, factors, grad)
        found = [one if need else None for one, need in zip(sums, needs[1:], strict=True)]
    return [of_x, *found]


SCHEMA = "(Tensor x, Tensor[] factors, str structure, bool last, str? strategy, str? precision=None) -> Tensor"

_mm = define_multilinear(NAME + SCHEMA, _run, _fake, _gradients, exact_strides=True, listed=True)
_plain = define_opaque(INFERENCE + SCHEMA, _run, _fake, exact_strides=True)


def _batched(info: Any, dims: Any, x: Tensor, factors: list[Tensor], *options: Any) -> tuple[Tensor, int]:
    if all(dim is None for dim in dims[1]):
        columns = x.movedim(dims[0], 1)  # (cols, batch, n)
        return _mm(columns.flatten(1), factors, *options).unflatten(1, columns.shape[1:]), 1
    return _one_by_one(_mm, info, dims, x, factors, *options)


def _one_by_one(op: Callable[..., Tensor], info: Any, dims: Any, *arguments: Any) -> tuple[Tensor, int]:
    """Call an operator once for each place of what vmap maps, and stack the results."""

    def part(x: Any, dim: Any, place: int) -> Any:
        if isinstance(x, list):
            return [part(one, along, place) for one, along in zip(x, dim, strict=True)]
        return x if dim is None else x.select(dim, place)

    parts = (map(part, arguments, dims, [place] * len(dims)) for place in range(info.batch_size))
    return torch.stack([op(*some) for some in parts]), 0


def _under_autocast(cast: Callable[[Tensor], Tensor], x: Tensor, factors: list[Tensor], *options: Any) -> Tensor:
    return _mm(cast(x), list(map(cast, factors)), *options)


for _name in (NAME, INFERENCE):
    torch.library.register_vmap(f"lcma::{_name}", _batched, lib=LIBRARY)
    register_autocast(_name, _under_autocast)


@flop_formula(torch.ops.lcma.structured_mm_inference)
@flop_formula(torch.ops.lcma.structured_mm)
def _flops(x_shape: Any, factor_shapes: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the parameters for every column of X."""
    return 2 * sum(int(np.prod(shape)) for shape in factor_shapes) * int(x_shape[-1])


def factor_gradients(structure: FactorChain, x: Tensor, factors: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
    """Return the gradients of all factors for X (cols, n) and dY (rows, n), as sums over n; they are differentiable."""
    patterns = structure.patterns
    # Without leading sizes of 1: torch multiplies matrices, and one batch of them, in fewer steps.
    weights = [one.squeeze((0, 1)) for one in structure.canonical(factors)]
    inputs = [_blocks(x, patterns[-1].a, patterns[-1].c, patterns[-1].d)]
    for one, pattern, before in zip(weights[:0:-1], patterns[:0:-1], patterns[-2::-1], strict=True):
        inputs.append(_blocks(_merged(one @ inputs[-1], pattern.d, pattern.rows), before.a, before.c, before.d))
    found: list[Tensor] = []
    for one, pattern, shape in zip(weights, patterns, structure.factor_shapes, strict=True):
        a, b, _, d = pattern.sizes
        in_blocks = structure.is_blocked and not found
        left = grad.reshape(a, d, b, grad.shape[1]).squeeze((0, 1)) if in_blocks else _blocks(grad, a, b, d)
        found.append((left @ inputs.pop().mH).reshape(shape))
        if len(found) < len(patterns):
            grad = _merged(one.mH @ left, d, pattern.cols)
    return found


def _blocks(matrix: Tensor, outer: int, inner: int, d: int) -> Tensor:
    """Return the view `as_blocks` of a matrix (outer inner d, n) without leading sizes of 1."""
    return matrix if outer == d == 1 else as_blocks(matrix, outer, inner, d).squeeze((0, 1))


def _merged(blocks: Tensor, d: int, rows: int) -> Tensor:
    """Return the matrix (rows, n) of `_blocks`."""
    return (blocks if d == 1 else blocks.swapaxes(-3, -2)).reshape(rows, blocks.shape[-1])


def _kronecker(
    structure: KroneckerSparse, x: Tensor, weights: Tensor, options: Options, grad: Tensor, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return dX = K^H dY and dW[i, j] = dY[i, :, j] X[i, :, j]^H."""
    precision = options[2]
    other, (adjoint,), _ = structure.transpose([weights.conj()])
    at_once = grad.device.type in ("cpu", "cuda") and is_plain(grad, x, weights)
    if at_once and all(needs) and _is_transposed(grad, other, options):
        if tensor_layout(x) is Layout.COLUMNS:
            with vendor_precision(arithmetic_on_gpu(grad, precision).name):
                return transposed_gradients(grad, x, weights)
        grad = batch_last(grad)
    grad_x = grad_w = None
    if needs[0]:
        grad_x = run(grad, [adjoint], other, options) if at_once else structured_mm(grad, [adjoint], other, *options)
    if needs[1]:
        (a, d), sum_outer = weights.shape[:2], _run_outer if at_once else _outer
        grad_w = sum_outer(grad, x.conj(), a, d, precision)
    return grad_x, grad_w


def _is_transposed(grad: Tensor, structure: FactorChain, options: Options) -> bool:
    """Return whether dX is computed between transpositions of this batch-first gradient, as dW is."""
    if not grad.is_cuda or structure.patterns[0].d == 1 or tensor_layout(grad) is not Layout.COLUMNS:
        return False
    request = gpu_request(structure, grad, options)
    return plan_and_executor(request, AUTO, None, options[1])[0].candidate.strategy == TRANSPOSED


def _run_outer(grad: Tensor, x: Tensor, a: int, d: int, precision: str | None = None) -> Tensor:
    """Compute dW (a, d, b, c) of dY (a b d, n) and X (a c d, n)."""
    if grad.is_cuda:
        with vendor_precision(arithmetic_on_gpu(grad, precision).name):
            return outer_tensors(grad, x, a, d)
    if grad.device.type != "cpu":
        raise PlanError(f"products by factors run on cpu and cuda, not on {grad.device}; move them with .to")
    return torch.from_numpy(outer_blocks(as_array(grad), as_array(x), a, d)).to(grad.dtype)


def _fake_outer(grad: Tensor, x: Tensor, a: int, d: int, precision: str | None = None) -> Tensor:
    return grad.new_empty((a, d, grad.shape[0] // (a * d), x.shape[0] // (a * d)))


def _outer_gradients(
    tensors: Sequence[Tensor], options: Sequence[Any], cotangent: Tensor, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of dW = dY X^T by blocks: with V in place of dW, V X* and V^T dY*."""
    grad, x = tensors

    def product(of: Tensor, weights: Tensor) -> Tensor:
        return structured_mm(of.conj(), [weights], structure_of_factor(weights), precision=options[-1])

    return product(x, cotangent) if needs[0] else None, product(grad, cotangent.mT) if needs[1] else None


def structure_of_factor(weights: Any) -> KroneckerSparse:
    """Return the structure of one factor with parameters (a, d, b, c); others are refused."""
    if len(weights.shape) != 4:
        raise PlanError(f"parameters have shape {tuple(weights.shape)}; (a, d, b, c) is needed")
    a, d, b, c = (int(size) for size in weights.shape)
    return KroneckerSparse.of(Pattern(a, b, c, d))


OUTER = "structured_outer(Tensor grad, Tensor x, int a, int d, str? precision=None) -> Tensor"

_outer = define_multilinear(OUTER, _run_outer, _fake_outer, _outer_gradients, exact_strides=True)
torch.library.register_vmap("lcma::structured_outer", partial(_one_by_one, _outer), lib=LIBRARY)


@flop_formula(torch.ops.lcma.structured_outer)
def _outer_flops(grad_shape: Any, x_shape: Any, a: int, d: int, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return the operations, which are those of the product itself."""
    return 2 * int(grad_shape[-2]) * int(x_shape[-2]) // (a * d) * int(x_shape[-1])
