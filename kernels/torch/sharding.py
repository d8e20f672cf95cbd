"""Products and layers of DTensors, by the parts that each process holds, without communication.

This module is imported with the first sharded tensor: it imports dynamo and torch.distributed.tensor, which take
seconds. Dynamo does not trace the layers: it would try gradients with the result's placements, which may be partial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DeviceMesh, DTensor, Partial, Placement, Replicate, Shard

from ...errors import PlanError
from ..request import matmul_shape, product_sizes
from ..structured.block_low_rank import LowRank, parse_structure
from .placements import Placements, ShardedOperand, dual, fitting_left, layer_rule, product_rule, shown
from .recipe import AUTO, ProductRecipe
from .structured import multiply_factors
from .structured_products import Options


@torch.compiler.allow_in_graph
def dense_linear(x: Tensor, weight: Tensor, bias: Tensor | None, recipe: str, transposed: bool) -> Tensor:
    """Compute x W^T + bias for DTensors x (..., in), weight (out, in) and bias (out,); W if not `transposed`.

    See `sharded_product`.
    """
    rows = x.unsqueeze(0) if x.dim() == 1 else x
    result = sharded_product(rows, weight, recipe, bias, transposed)
    return result.squeeze(0) if x.dim() == 1 else result


def sharded_product(a: Tensor, b: Tensor, recipe: str, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
    """Return the DTensor A B + bias for DTensors a (..., m, k), b (..., k, n) and bias (n,).

    With `transposed` the tensor b is the transpose (n, k) of the operand. Local parts are multiplied with the plan for
    their sizes. Gradients are DTensors with the placements of `product_rule`, and differentiable. Nothing is
    communicated: to partial sums every process adds its share of the bias.

    Raises:
        PlanError: an operand is no DTensor, the meshes differ, the placements need a redistribution, or the recipe's
            schemes are not for general matrices.
    """
    ProductRecipe.parse(recipe).require_general("parts of DTensors are multiplied as")
    left, right = _operand(a), _operand(b)
    if left is None or right is None:
        raise PlanError(_mixed(a, b.t() if transposed else b))
    right = right.transposed() if transposed else right
    rule = product_rule(left, right)
    grad_a, grad_b = rule.grads
    grad_b = ShardedOperand(grad_b, right.shape).transposed().placements if transposed else grad_b
    product_sizes(left, right)

    def run(part_a: Tensor, part_b: Tensor) -> Tensor:
        part_b = part_b.t() if transposed else part_b
        if part_a.shape[-1] != part_b.shape[-2]:
            raise PlanError(
                f"the parts of a have {part_a.shape[-1]} columns here and those of b {part_b.shape[-2]} rows; "
                "shard both as distribute_tensor does"
            )
        return _multiplied(part_a, part_b, recipe)

    shape = torch.Size(matmul_shape(left.shape, right.shape))
    return _by_parts(run, (a, b), (grad_a, grad_b), rule.result, shape, bias)


@torch.compiler.allow_in_graph
def factored_linear(x: Tensor, factors: list[Tensor], bias: Tensor | None, text: str, options: Options) -> Tensor:
    """Map a DTensor x in the layer's layout by the local parts of x and of the factors. Nothing is communicated.

    A batch-first x has batch-first results, of which the `options` tell. Sharded factors of a low-rank matrix are
    multiplied as dense ones.

    Raises:
        PlanError: an operand is no DTensor, the meshes differ, or the placements have no rule.
    """
    first, structure = options[0], parse_structure(text)
    given, placed = _operand(x), [known for one in factors if (known := _operand(one)) is not None]
    if given is None or len(placed) < len(factors):
        raise PlanError(
            "x is a DTensor and the factors are not, or the reverse; distribute the layer by distribute_module, and "
            "pass DTensor.from_local(x, mesh, placements)"
        )

    def by_factors(part: Tensor, *weights: Tensor) -> Tensor:
        matrix = part.reshape(-1, structure.cols).T if first else part.reshape(structure.cols, -1)
        y = multiply_factors(matrix, weights, structure, options)
        return y.T.reshape(*part.shape[:-1], structure.rows) if first else y.reshape(structure.rows, *part.shape[1:])

    def by_dense(part: Tensor, u: Tensor, v: Tensor) -> Tensor:  # of parts the rank may exceed a side
        rows = part.unsqueeze(0) if part.dim() == 1 else part
        y = _multiplied(_multiplied(rows, v.t(), AUTO), u.t(), AUTO)
        return y.squeeze(0) if part.dim() == 1 else y

    axis, low_rank = given.dim - 1 if first else 0, isinstance(structure, LowRank)
    rule = layer_rule(given, axis, placed, low_rank)
    sharded = any(type(one) is Shard for factor in placed for one in factor.placements)
    run = by_dense if sharded and low_rank else by_factors
    shape = torch.Size(structure.rows if dim == axis else size for dim, size in enumerate(given.shape))
    return _by_parts(run, (x, *factors), rule.grads, rule.result, shape, bias, axis)


def _multiplied(a: Tensor, b: Tensor, recipe: str) -> Tensor:
    found: Tensor = torch.ops.lcma.bilinear_mm(a, b, recipe)  # of ops.py, which imports this module
    return found


def _by_parts(
    run: Callable[..., Tensor],
    tensors: Sequence[Tensor],
    grads: Sequence[Placements],
    result: Placements,
    shape: torch.Size,
    bias: Tensor | None,
    axis: int = -1,
) -> Tensor:
    """Return the DTensor of run(*parts) plus a bias along an axis; `grads` are the placements of the gradients."""
    first = tensors[0]
    assert isinstance(first, DTensor)
    mesh = first.device_mesh
    if any(one.device_mesh != mesh for one in tensors if isinstance(one, DTensor)):
        raise PlanError("the operands are DTensors on different device meshes; distribute all over one mesh")
    local = run(*(_Unwrap.apply(one, placements) for one, placements in zip(tensors, grads, strict=True)))
    if bias is not None:
        axis %= len(shape)
        term = _local_bias(bias, result, axis, mesh).to(local.dtype)
        local = local + term.reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return _Wrap.apply(local, mesh, result, shape)


def _operand(x: Tensor) -> ShardedOperand | None:
    return ShardedOperand(tuple(x.placements), tuple(x.shape)) if isinstance(x, DTensor) else None


def _local_bias(bias: Tensor, placements: Placements, axis: int, mesh: DeviceMesh) -> Tensor:
    """Return the local term of a bias (n,) for a result with these placements, whose dimension `axis` is n."""
    wanted = tuple(Shard(0) if one == Shard(axis) else Replicate() for one in placements)
    given = tuple(bias.placements) if isinstance(bias, DTensor) else None
    if given != wanted:
        raise PlanError(
            f"the result has the placements {shown(placements)} and the bias {shown(given) if given else 'none'}; "
            f"make it distribute_tensor(bias, mesh, {shown(wanted)})"
        )
    rows = (type(one) is Shard and one != Shard(axis) for one in placements)
    grads = tuple(Partial() if of_rows else kept for of_rows, kept in zip(rows, wanted, strict=True))
    terms = _terms(placements, mesh)
    part: Tensor = _Unwrap.apply(bias, grads)
    return _Share.apply(part, terms, True) if terms > 1 else part


class _Unwrap(torch.autograd.Function):
    """The local part of a DTensor; the gradient becomes a DTensor of given placements."""

    @staticmethod
    def forward(ctx: Any, x: DTensor, grad_placements: Placements) -> Tensor:
        ctx.mesh, ctx.placements, ctx.shape = x.device_mesh, grad_placements, x.shape
        ctx.terms = _terms(x.placements, x.device_mesh)
        local = x.to_local()
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        grad = _Share.apply(grad, ctx.terms, False) if ctx.terms > 1 else grad
        return _Wrap.apply(grad, ctx.mesh, ctx.placements, ctx.shape), None


class _Wrap(torch.autograd.Function):
    """The DTensor of local parts; its gradient must have the dual placements, or be sliced to them locally."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, mesh: DeviceMesh, placements: Placements, shape: torch.Size) -> DTensor:
        ctx.placements = placements
        stride = _global_stride(local, shape)
        return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> Any:
        wanted = tuple(map(dual, ctx.placements))
        if any(given not in (one, Replicate()) for given, one in zip(grad.placements, wanted, strict=True)):
            raise PlanError(
                f"a result with the placements {shown(ctx.placements)} has a gradient with {shown(grad.placements)}, "
                f"not {shown(wanted)}; call y.redistribute(placements={shown(wanted)}) on the result y, "
                "which redistributes its gradient too"
            )
        if grad.placements != wanted:  # replicated to sharded: each process slices its own copy
            grad = grad.redistribute(placements=wanted)
        # every process uses the gradient of a pending sum, so that the gradient of that is a pending sum again
        return _Unwrap.apply(grad, ctx.placements), None, None, None


class _Share(torch.autograd.Function):
    """A replicated tensor as equal terms of a pending sum, x / terms if `divided`; its gradient is that of the sum.

    Every process has the gradient of the sum, which is that of its term: not `divided`, the inverse of a division.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, terms: int, divided: bool) -> Tensor:
        ctx.terms, ctx.divided = terms, divided
        return x / terms if divided else x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return _Share.apply(grad, ctx.terms, not ctx.divided), None, None


def _terms(placements: Iterable[Placement], mesh: DeviceMesh) -> int:
    """Return the number of processes whose terms a pending sum with these placements has."""
    return math.prod(mesh.size(dim) for dim, one in enumerate(placements) if one.is_partial())


def _global_stride(local: Tensor, shape: torch.Size) -> tuple[int, ...]:
    """Return the strides of a tensor of the global shape whose dimensions are in the same order in memory."""
    stride, size = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda dim: (local.stride(dim), -dim)):
        stride[dim] = size
        size *= max(shape[dim], 1)
    return tuple(stride)


def _mixed(a: Tensor, b: Tensor) -> str:
    """Return the line for one DTensor beside a local tensor."""
    right = _operand(b)
    if right is not None:
        wanted = shown(fitting_left(tuple(a.shape), right))
        return (
            f"b is a DTensor with the placements {shown(right.placements)} (of a layer: its weight transposed) "
            f"and a is not; pass DTensor.from_local(a, mesh, {wanted}), where a is the part that this process holds"
        )
    assert isinstance(a, DTensor)
    return (
        f"a is a DTensor with the placements {shown(a.placements)} and b is not; "
        f"pass distribute_tensor(b, a.device_mesh, {shown((Replicate(),) * len(a.placements))})"
    )
