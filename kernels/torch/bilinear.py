"""Opaque multilinear operators that autograd, forward AD, vmap and torch.compile differentiate and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ...errors import PlanError
from ..learning import deferred, is_paused
from .flops import classical_flops, flop_formula
from .modules import is_sharded

LIBRARY = torch.library.Library("lcma", "FRAGMENT")

Options = tuple[Any, ...]
"""The arguments of an operator after its two operands."""

Gradient = Callable[[Tensor, Tensor, Options, Tensor, int], Tensor]
"""gradient(a, b, options, grad, of): that of a (0) or b (1), which may have the leading sizes of the product."""


def define_bilinear(
    schema: str,
    run: Callable[..., Tensor],
    fake: Callable[..., Tensor],
    gradient: Gradient,
    flops: Callable[..., int] = classical_flops,
    **more: Any,
) -> Callable[..., Tensor]:
    """Register `lcma::SCHEMA`, an operator of tensors a (..., M, K), b (..., K, N) and options; return the overload.

    See `define_multilinear`, also for `more`; vmap maps a and b. `flops` is the operator's formula for flop counters.
    """

    def of_both(tensors: Sequence[Tensor], options: Options, grad: Tensor, needs: Any) -> Sequence[Tensor | None]:
        a, b = tensors
        return [sum_to(gradient(a, b, options, grad, of), tensors[of]) if needs[of] else None for of in (0, 1)]

    def batched(_: Any, dims: tuple[int | None, ...], a: Tensor, b: Tensor, *options: Any) -> tuple[Tensor, int]:
        if any(dim is not None for dim in dims[2:]):
            raise PlanError(f"lcma::{name} maps a and b alone; vmap with in_dims=None for its other arguments")
        rank = max(x.dim() - (dim is not None) for x, dim in zip((a, b), dims[:2], strict=True))
        left, right = (_leading(x, dim, rank) for x, dim in zip((a, b), dims[:2], strict=True))
        return op(left, right, *options), 0

    name = schema.partition("(")[0]
    op = define_multilinear(schema, run, fake, of_both, **more)
    torch.library.register_vmap(f"lcma::{name}", batched, lib=LIBRARY)
    flop_formula(getattr(torch.ops.lcma, name))(flops)
    return op


def define_opaque(
    schema: str, run: Callable[..., Tensor], fake: Callable[..., Tensor], exact_strides: bool = False
) -> Callable[..., Tensor]:
    """Register `lcma::SCHEMA`, an operator without derivatives; return its overload.

    With `exact_strides` a compiled graph passes operands with the strides that they were traced with.
    """
    name = schema.partition("(")[0]
    strides = (torch.Tag.needs_exact_strides,) if exact_strides else ()
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, *strides))
    LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"lcma::{name}", fake, lib=LIBRARY)
    return cast("Callable[..., Tensor]", getattr(torch.ops.lcma, name).default)


def define_multilinear(
    schema: str,
    run: Callable[..., Tensor],
    fake: Callable[..., Tensor],
    gradients: Callable[[Sequence[Tensor], Options, Tensor, Any], Sequence[Tensor | None]],
    tangent_options: Callable[[Options, int], Options] = lambda options, operand: options,
    exact_strides: bool = False,
    sharded: Callable[[Tensor, Tensor, Options], Tensor] | None = None,
    refuse_gradients: Callable[[Options], None] = lambda options: None,
    listed: bool = False,
) -> Callable[..., Tensor]:
    """Register `lcma::SCHEMA`, linear in two tensors, if `listed` in one and each of a list; return its overload.

    `run` computes the product, `fake` its shape. `tangent_options(options, operand)` returns the options
    of the product in which an operand, by its place, is replaced by its tangent. `gradients` and the
    forward rule call operators of this kind, so that derivatives of any order and mode exist.
    `torch.library.custom_op` has no forward rule: forward AD through it gives zero without an error.
    `sharded(a, b, options)` computes products of DTensors from their local parts; without it they are refused.
    `refuse_gradients(options)` raises for options without derivatives.
    """
    op: Any = define_opaque(schema, run, fake, exact_strides)
    defaults = tuple(argument.default_value for argument in op._schema.arguments[2:])

    def arguments(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        return (tensors[0], list(tensors[1:])) if listed else tuple(tensors)

    class Product(_SingleLevelFunction):
        """The operator at one level of differentiation: torch.func calls the Autograd kernel once per level."""

        @staticmethod
        def forward(keys: Any, options: Options, *tensors: Tensor) -> Any:
            # Enabled again for the levels of torch.func below this one; without such levels nothing is recorded.
            below = torch._C._AutoDispatchBelowAutograd()
            with deferred(), below, torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                return op.redispatch(keys & torch._C._after_autograd_keyset, *arguments(tensors), *options)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            _, ctx.options, *tensors = inputs
            ctx.learn = not is_paused()
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            with deferred(ctx.learn):  # a step of training runs the same products in every pass
                return None, None, *gradients(ctx.saved_tensors, ctx.options, grad, ctx.needs_input_grad[2:])

        @staticmethod
        def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> Any:
            tensors, terms = ctx.saved_tensors, []
            for place, tangent in enumerate(tangents):
                if tangent is not None:
                    operands = arguments([*tensors[:place], tangent, *tensors[place + 1 :]])
                    terms.append(op(*operands, *tangent_options(ctx.options, place)))
            return sum(terms[1:], terms[0])

    def differentiated(keys: Any, a: Tensor, b: Any, *options: Any) -> Any:
        tensors = (a, *b) if listed else (a, b)
        if any(map(is_sharded, tensors)):
            if sharded is None:
                refuse_sharded(*tensors)
            else:
                return sharded(a, b, options)
        options += defaults[len(options) :]
        if is_differentiated(*tensors):
            refuse_gradients(options)
            with enable_single_level_autograd_function():
                return cast(Any, Product).apply(keys, options, *tensors)
        with torch._C._AutoDispatchBelowAutograd():
            return op.redispatch(keys & torch._C._after_autograd_keyset, a, b, *options)

    LIBRARY.impl(schema.partition("(")[0], differentiated, "Autograd", with_keyset=True)
    return op


def empty_product(
    a: Tensor, b: Tensor, *_: Any, batch_of: Callable[..., Sequence[int]] = torch.broadcast_shapes
) -> Tensor:
    """Return a product of a (..., m, k), b (..., k, n) without data; `batch_of` gives its leading sizes by theirs."""
    torch._check(a.dim() >= 2 and b.dim() >= 2, lambda: "a and b must be matrices, or batches of them")
    torch._check(a.shape[-1] == b.shape[-2], lambda: f"inner sizes differ: {a.shape[-1]} and {b.shape[-2]}")
    return a.new_empty((*batch_of(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]))


def is_differentiated(*tensors: Tensor) -> bool:
    """Return whether autograd records products of these tensors, or they may have tangents of forward AD."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return recorded or forward_ad._current_level >= 0


def refuse_sharded(*tensors: Tensor) -> None:
    """Refuse DTensors, by a PlanError, where an operator has no sharding rule: gathering the parts would be slow."""
    if any(map(is_sharded, tensors)):
        raise PlanError(
            "an operand is a DTensor, for which this product has no sharding rule; multiply the parts that each "
            "process holds, as x.to_local() gives them, or pass a layer of DTensors one (DTensor.from_local)"
        )


def is_transformed() -> bool:
    """Return whether torch.func transforms the running function, or forward AD is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_plain(*tensors: Tensor) -> bool:
    """Return whether products of these tensors may bypass the dispatcher: nothing records, traces or transforms them.

    A call of an operator that is implemented in Python costs 50 to 100 us of the host's time.
    """
    if is_transformed() or torch._C._len_torch_dispatch_stack():
        return False
    recorded = torch.is_grad_enabled()
    for tensor in tensors:  # a generator would cost a microsecond
        if type(tensor) not in PLAIN or (recorded and tensor.requires_grad):
            return False
        if tensor.is_conj() or tensor.is_neg():  # the memory holds other numbers
            return False
    return True


PLAIN = (Tensor, torch.nn.Parameter)
"""The classes of tensors whose products may bypass the dispatcher."""


def is_eager(*tensors: Tensor) -> bool:
    """Return whether a product of these tensors may run at once: they are plain, and nothing compiles or casts it."""
    first = tensors[0]
    device = "cuda" if first.is_cuda else "cpu"
    if torch.compiler.is_compiling() or not (first.is_cuda or first.is_cpu) or torch.is_autocast_enabled(device):
        return False
    return is_plain(*tensors)


def _leading(x: Tensor, dim: int | None, rank: int) -> Tensor:
    """Return x with the mapped dimension in front of `rank` others; an operand without one broadcasts unchanged."""
    if dim is None:
        return x
    x = x.movedim(dim, 0)
    return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.dim()), *x.shape[1:])


def sum_to(grad: Tensor, like: Tensor) -> Tensor:
    """Sum a gradient (..., H, M, N) over the sizes that `like` broadcast and over heads that shared one."""
    if grad.dim() > 2 and like.dim() > 2 and like.shape[-3] not in (0, 1, grad.shape[-3]):
        grad = grad.reshape(*grad.shape[:-3], like.shape[-3], -1, *grad.shape[-2:]).sum(-3)
    return grad if grad.shape == like.shape else grad.sum_to_size(like.shape)


def register_autocast(name: str, product: Callable[..., Tensor]) -> None:
    """Register product(cast, *arguments) for an operator under autocast of either device.

    `cast` converts an operand to autocast's current dtype, as torch.matmul does.
    """
    for device in ("cuda", "cpu"):
        key = "Autocast" + torch._C._dispatch_key_for_device(device)
        LIBRARY.impl(name, _lowered(product, device, key), key, with_keyset=True)


def _lowered(product: Callable[..., Tensor], device: str, key: str) -> Callable[..., Tensor]:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(_: Any, *arguments: Any) -> Tensor:
        dtype = torch.get_autocast_dtype(device)

        def cast_down(x: Tensor) -> Tensor:
            eligible = x.device.type == device and x.is_floating_point() and x.dtype != torch.float64
            return x.to(dtype) if eligible else x

        with torch._C._ExcludeDispatchKeyGuard(keys):
            return product(cast_down, *arguments)

    return lowered
