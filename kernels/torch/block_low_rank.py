"""The operator `lcma::block_low_rank_mm`: X W^T for a low-rank, Monarch or BLAST W, linear in every factor.

Gradients of X are products by the transposed structure, by the same operator; those of factors are sums over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ...errors import PlanError
from ..cuda.dtypes import name_of
from ..factored import UNLIMITED, extra_bytes_for, product_dtype, request_of
from ..planning.strategy import Executor
from ..plans import AUTO, again, decision_for, planned
from ..request import Request
from ..structured.block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from ..structured.steps_strategy import DENSE
from ..structured.transposed import transposed
from .bilinear import LIBRARY, is_differentiated, is_eager, refuse_sharded
from .flops import flop_formula
from .processor import as_array

NAME = "block_low_rank_mm"

KINDS: dict[str, type[BlockLowRank]] = {"low-rank": LowRank, "monarch": Monarch, "blast": Blast}


def block_low_rank_mm(
    x: Tensor,
    factors: Sequence[Tensor],
    structure: BlockLowRank,
    strategy: str | None = None,
) -> Tensor:
    """Compute X W^T (n, rows) for x (n, cols) and the factors of W in the canonical layout.

    Raises:
        PlanError: the operands do not fit each other.
    """
    if is_eager(x, *factors):
        return _multiply(x, factors, structure, strategy)
    product: Tensor = _mm(x, list(factors), structure.kind, list(structure.sizes), strategy)
    return product


def structure_of(kind: str, sizes: Sequence[int]) -> BlockLowRank:
    """Return the structure of a kind (a key of `KINDS`) with these sizes."""
    return KINDS[kind](*map(int, sizes))


def _checked(x: Tensor, factors: Sequence[Tensor], structure: BlockLowRank) -> None:
    if x.dim() != 2 or x.shape[1] != structure.cols:
        raise PlanError(f"x of shape {tuple(x.shape)} does not fit {structure.name}; (n, {structure.cols}) is needed")
    if len(factors) != len(structure.factor_shapes):
        raise PlanError(f"{structure.name} has {len(structure.factor_shapes)} factors, not {len(factors)}")
    for place, (weights, shape) in enumerate(zip(factors, structure.factor_shapes, strict=True), 1):
        if tuple(weights.shape) != shape:
            raise PlanError(f"factor {place} has shape {tuple(weights.shape)}; {structure.name} needs {shape}")
        if weights.dtype != x.dtype or weights.device != x.device:
            raise PlanError(
                f"x is {x.dtype} on {x.device} and factor {place} {weights.dtype} on {weights.device}; "
                "convert one with .to"
            )


def _run(x: Tensor, factors: Sequence[Tensor], kind: str, sizes: Sequence[int], strategy: str | None) -> Tensor:
    return _multiply(x, factors, structure_of(kind, sizes), strategy)


def _multiply(x: Tensor, factors: Sequence[Tensor], structure: BlockLowRank, strategy: str | None) -> Tensor:
    if x.is_cuda and all(one.is_contiguous() for one in (x, *factors)):
        operands = tuple((one.shape, one.stride(), one.dtype, one.device) for one in (x, *factors))
        key = structure, operands, strategy, torch.backends.cuda.matmul.allow_tf32
        product: Tensor = again(key, lambda: _run_checked(x, factors, structure, strategy), factors, x.T)
        return product.T
    return _run_checked(x, factors, structure, strategy)[1].T


def _run_checked(
    x: Tensor, factors: Sequence[Tensor], structure: BlockLowRank, strategy: str | None
) -> tuple[Executor, Tensor]:
    """Return the executor of a product, and W X^T (rows, n)."""
    _checked(x, factors, structure)
    if x.device.type not in ("cpu", "cuda"):
        raise PlanError(f"block low-rank products run on cpu and cuda, not on {x.device}; move them with .to")
    request = _request(structure, len(x), x, extra_bytes_for(strategy))
    executor = planned(request, AUTO, None, strategy)[1]
    if x.is_cuda:
        return executor, executor.run([one.contiguous() for one in factors], x.contiguous().T)
    arrays = [np.ascontiguousarray(as_array(one)) for one in factors]
    product = executor.run(arrays, np.ascontiguousarray(as_array(x)).T)
    return executor, torch.from_numpy(np.ascontiguousarray(product.T)).to(x.dtype).T


def _request(structure: BlockLowRank, rows: int, like: Tensor, extra: int) -> Request:
    """Return the request for so many inputs of the dtype and on the device of a tensor."""
    dtype = name_of(like) if like.is_cuda else product_dtype(str(like.dtype).removeprefix("torch."), "cpu")
    return request_of(structure, rows, dtype, device=like.device.type, max_extra_bytes=extra)


def dense_where_faster(
    factors: Sequence[Tensor],
    structure: BlockLowRank,
    rows: int,
    max_extra_bytes: int,
    strategy: str | None = None,
) -> Tensor | None:
    """Return W (rows, cols) if the planner takes the dense matrix for so many inputs, else None.

    None, too, if W takes more than `max_extra_bytes`: the factors are not freed.

    Raises:
        PlanError: nothing runs the product, or the factors are on a device other than cpu and cuda.
    """
    if structure.rows * structure.cols * factors[0].element_size() > max_extra_bytes:
        return None
    request = _request(structure, rows, factors[0], UNLIMITED)
    if decision_for(request, strategy=strategy).plan.candidate.strategy != DENSE:
        return None
    first = factors[0].detach()
    wide = [one.detach().to(torch.promote_types(one.dtype, torch.float32)) for one in factors]
    identity = torch.eye(structure.cols, dtype=wide[0].dtype, device=first.device)
    return block_low_rank_mm(identity, wide, structure).T.to(first.dtype).contiguous()


def _fake(x: Tensor, factors: Sequence[Tensor], kind: str, sizes: Sequence[int], strategy: str | None) -> Tensor:
    torch._check(x.dim() == 2, lambda: "x must be a matrix (n, cols)")
    torch._check(x.shape[1] == sizes[1], lambda: f"x must have {sizes[1]} columns")
    return x.new_empty((x.shape[0], sizes[0]))


def factor_gradients(structure: BlockLowRank, x: Tensor, factors: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
    """Return the gradients of all factors for x (n, cols) and dY (n, rows), as sums over n; they are differentiable."""
    if isinstance(structure, LowRank):
        left, right = factors
        return [grad.T @ (x @ right.T), (grad @ left).T @ x]
    assert isinstance(structure, Monarch | Blast)
    given = x.reshape(-1, structure.b1, structure.p)
    if isinstance(structure, Monarch) and structure.interleaved:
        outer = grad.reshape(-1, structure.q, structure.b2).swapaxes(1, 2)
    else:
        outer = grad.reshape(-1, structure.b2, structure.q)
    if isinstance(structure, Monarch):
        left, right = factors
        inner = torch.einsum("nlp,lskp->nkls", given, right)
        back = torch.einsum("nkq,kqls->nkls", outer, left)
        return [torch.einsum("nkq,nkls->kqls", outer, inner), torch.einsum("nkls,nlp->lskp", back, given)]
    left, scales, right = factors
    inner = torch.einsum("nlp,lrp->nlr", given, right)
    mixed = torch.einsum("rkl,nlr->nkr", scales, inner)
    back = torch.einsum("nkq,kqr->nkr", outer, left)
    spread = torch.einsum("rkl,nkr->nlr", scales, back)
    return [
        torch.einsum("nkq,nkr->kqr", outer, mixed),
        torch.einsum("nkr,nlr->rkl", back, inner),
        torch.einsum("nlr,nlp->lrp", spread, given),
    ]


LIBRARY.define(
    f"{NAME}(Tensor x, Tensor[] factors, str kind, int[] sizes, str? strategy) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_mm = getattr(torch.ops.lcma, NAME).default
LIBRARY.impl(NAME, _run, "CompositeExplicitAutograd")
torch.library.register_fake(f"lcma::{NAME}", _fake, lib=LIBRARY)


class _Product(_SingleLevelFunction):
    """The operator at one level of differentiation."""

    @staticmethod
    def forward(keys: Any, options: tuple[Any, ...], x: Tensor, *factors: Tensor) -> Any:
        # Enabled again for the levels of torch.func below this one; without such levels nothing is recorded.
        with torch._C._AutoDispatchBelowAutograd(), torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return _mm.redispatch(keys & torch._C._after_autograd_keyset, x, list(factors), *options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.options, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *factors = ctx.saved_tensors
        kind, sizes, strategy = ctx.options
        structure = structure_of(kind, sizes)
        of_x: Tensor | None = None
        if ctx.needs_input_grad[2]:
            other, turned, order = transposed(structure, factors)
            given = grad if order is None else grad[:, torch.as_tensor(order, device=grad.device)]
            of_x = block_low_rank_mm(given, turned, other, strategy)
        needs = ctx.needs_input_grad[3:]
        found = factor_gradients(structure, x, factors, grad) if any(needs) else [None] * len(factors)
        return None, None, of_x, *(one if need else None for one, need in zip(found, needs, strict=True))

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Any:
        x, *factors = ctx.saved_tensors
        terms = []
        for place, tangent in enumerate(tangents):
            if tangent is None:
                continue
            operands = [tangent if other == place else one for other, one in enumerate((x, *factors))]
            terms.append(_mm(operands[0], operands[1:], *ctx.options))
        return sum(terms[1:], terms[0])


def _differentiated(
    keys: Any, x: Tensor, factors: list[Tensor], kind: str, sizes: list[int], strategy: str | None
) -> Any:
    refuse_sharded(x, *factors)
    if is_differentiated(x, *factors):
        with enable_single_level_autograd_function():
            return cast(Any, _Product).apply(keys, (kind, sizes, strategy), x, *factors)
    with torch._C._AutoDispatchBelowAutograd():
        return _mm.redispatch(keys & torch._C._after_autograd_keyset, x, factors, kind, sizes, strategy)


LIBRARY.impl(NAME, _differentiated, "Autograd", with_keyset=True)


def _batched(
    info: Any, dims: Any, x: Tensor, factors: list[Tensor], kind: str, sizes: list[int], *options: str | None
) -> tuple[Tensor, int]:
    mapped = [dim for dim in dims[1] if dim is not None]
    if not mapped:
        rows = x.movedim(dims[0], 0)
        product = _mm(rows.reshape(-1, rows.shape[-1]), factors, kind, sizes, *options)
        return product.reshape(*rows.shape[:-1], -1), 0
    found = []
    for place in range(info.batch_size):
        some = [w if dim is None else w.select(dim, place) for w, dim in zip(factors, dims[1], strict=True)]
        found.append(_mm(x if dims[0] is None else x.select(dims[0], place), some, kind, sizes, *options))
    return torch.stack(found), 0


torch.library.register_vmap(f"lcma::{NAME}", _batched, lib=LIBRARY)


def _register_autocast(device: str) -> None:
    key = "Autocast" + torch._C._dispatch_key_for_device(device)
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(_: Any, x: Tensor, factors: list[Tensor], *options: Any) -> Tensor:
        dtype = torch.get_autocast_dtype(device)

        def cast_down(one: Tensor) -> Tensor:
            eligible = one.device.type == device and one.is_floating_point() and one.dtype != torch.float64
            return one.to(dtype) if eligible else one

        with torch._C._ExcludeDispatchKeyGuard(keys):
            result: Tensor = _mm(cast_down(x), [cast_down(one) for one in factors], *options)
            return result

    LIBRARY.impl(NAME, lowered, key, with_keyset=True)


for _device in ("cuda", "cpu"):
    _register_autocast(_device)


@flop_formula(torch.ops.lcma.block_low_rank_mm)
def _flops(x_shape: Any, factor_shapes: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the parameters for every row of X."""
    return 2 * sum(int(np.prod(shape)) for shape in factor_shapes) * int(x_shape[0])
