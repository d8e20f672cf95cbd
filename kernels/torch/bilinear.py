"""Opaque bilinear operators that autograd, forward AD, vmap and torch.compile differentiate and batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ...errors import PlanError
from ..learning import deferred, is_paused

LIBRARY = torch.library.Library("lcma", "FRAGMENT")

Options = tuple[Any, ...]
"""The arguments of an operator after its two operands."""

Gradients = Callable[[Tensor, Tensor, Options, Tensor, tuple[bool, bool]], tuple[Tensor | None, Tensor | None]]
"""gradients(a, b, options, grad, (of_a, of_b)): the gradients of a and b, None if not requested."""


Sharded = Callable[[Callable[..., Tensor], Tensor, Tensor, Options], Tensor]
"""sharded(op, a, b, options): the product of operands of which at least one is a DTensor."""


def define_bilinear(
    schema: str,
    run: Callable[..., Tensor],
    fake: Callable[..., Tensor],
    gradients: Gradients,
    tangent_options: Callable[[Options, int], Options] = lambda options, operand: options,
    exact_strides: bool = False,
    sharded: Sharded | None = None,
) -> Any:
    """Register `lcma::SCHEMA`, an operator of tensors a (..., M, K), b (..., K, N) and options; return the overload.

    `run` computes the product, `fake` its shape. `tangent_options(options, operand)` returns the options
    of the product in which the operand (0 or 1) is replaced by its tangent. `gradients` and the
    forward rule call operators of this kind, so that derivatives of any order and mode exist.
    `torch.library.custom_op` has no forward rule: forward AD through it gives zero without an error.
    With `exact_strides` a compiled graph passes operands with the strides that they were traced with.
    `sharded(op, a, b, options)` computes products of DTensors from their local parts; without it they are refused.
    """
    name = schema.partition("(")[0]
    strides = (torch.Tag.needs_exact_strides,) if exact_strides else ()
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, *strides))
    op = getattr(torch.ops.lcma, name).default
    defaults = tuple(argument.default_value for argument in op._schema.arguments[2:])
    LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"lcma::{name}", fake, lib=LIBRARY)

    class Product(_SingleLevelFunction):
        """The operator at one level of differentiation: torch.func calls the Autograd kernel once per level."""

        @staticmethod
        def forward(a: Tensor, b: Tensor, options: Options, keys: Any) -> Any:
            # Enabled again for the levels of torch.func below this one; without such levels nothing is recorded.
            below = torch._C._AutoDispatchBelowAutograd()
            with deferred(), below, torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                return op.redispatch(keys & torch._C._after_autograd_keyset, a, b, *options)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            a, b, ctx.options, _ = inputs
            ctx.learn = not is_paused()
            ctx.save_for_backward(a, b)
            ctx.save_for_forward(a, b)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            a, b = ctx.saved_tensors
            with deferred(ctx.learn):  # a step of training runs the same products in every pass
                return *gradients(a, b, ctx.options, grad, ctx.needs_input_grad[:2]), None, None

        @staticmethod
        def jvp(ctx: Any, tangent_a: Tensor | None, tangent_b: Tensor | None, *_: None) -> Any:
            a, b = ctx.saved_tensors
            pairs = ((tangent_a, b), (a, tangent_b))
            terms = [
                op(*pair, *tangent_options(ctx.options, operand))
                for operand, pair in enumerate(pairs)
                if pair[operand] is not None
            ]
            return sum(terms[1:], terms[0])

    def differentiated(keys: Any, a: Tensor, b: Tensor, *options: Any) -> Any:
        if is_sharded(a) or is_sharded(b):
            if sharded is None:
                refuse_sharded(a, b)
            else:
                return sharded(op, a, b, options)
        options += defaults[len(options) :]
        if is_differentiated(a, b):
            with enable_single_level_autograd_function():
                return cast(Any, Product).apply(a, b, options, keys)
        with torch._C._AutoDispatchBelowAutograd():
            return op.redispatch(keys & torch._C._after_autograd_keyset, a, b, *options)

    def batched(_: Any, dims: tuple[int | None, ...], a: Tensor, b: Tensor, *options: Any) -> tuple[Tensor, int]:
        if any(dim is not None for dim in dims[2:]):
            raise PlanError(f"lcma::{name} maps a and b alone; vmap with in_dims=None for its other arguments")
        rank = max(x.dim() - (dim is not None) for x, dim in zip((a, b), dims[:2], strict=True))
        left, right = (_leading(x, dim, rank) for x, dim in zip((a, b), dims[:2], strict=True))
        return op(left, right, *options), 0

    LIBRARY.impl(name, differentiated, "Autograd", with_keyset=True)
    torch.library.register_vmap(f"lcma::{name}", batched, lib=LIBRARY)
    return op


def is_differentiated(*tensors: Tensor) -> bool:
    """Return whether autograd records products of these tensors, or they may have tangents of forward AD."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return recorded or forward_ad._current_level >= 0


def is_sharded(tensor: Tensor) -> bool:
    """Return whether this is a DTensor; checked by name, since the defining module is slow to import."""
    return type(tensor).__name__ == "DTensor"


def refuse_sharded(*tensors: Tensor) -> None:
    """Refuse DTensors where an operator has no sharding rule: gathering the parts implicitly would be slow.

    Raises:
        PlanError: a tensor is a DTensor.
    """
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
        if type(tensor) not in PLAIN or tensor.is_conj() or (recorded and tensor.requires_grad):
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


def register_autocast(name: str, op: Any, device: str) -> None:
    """Register the cast of both operands to autocast's current dtype under autocast on a device."""
    key = "Autocast" + torch._C._dispatch_key_for_device(device)
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(_: Any, a: Tensor, b: Tensor, *options: Any) -> Tensor:
        dtype = torch.get_autocast_dtype(device)

        def cast_down(x: Tensor) -> Tensor:
            eligible = x.device.type == device and x.is_floating_point() and x.dtype != torch.float64
            return x.to(dtype) if eligible else x

        with torch._C._ExcludeDispatchKeyGuard(keys):
            result: Tensor = op(cast_down(a), cast_down(b), *options)
            return result

    LIBRARY.impl(name, lowered, key, with_keyset=True)
