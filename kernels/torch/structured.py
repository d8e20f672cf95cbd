"""The operator `lcma::structured_mm`: W X for a matrix W that is stored as factors, linear in every factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ..cuda.dtypes import factored_precision
from ..factored import UNLIMITED, product_dtype, request_of
from ..learning import deferred, is_paused
from ..plans import decision_for
from ..structured.chain import FactorChain, KroneckerSparse
from ..structured.kinds import parse_structure
from ..structured.rewrites import DENSE
from .bilinear import LIBRARY, is_differentiated, is_eager, refuse_sharded
from .flops import flop_formula
from .structured_gradients import gradients
from .structured_products import run

NAME = "structured_mm"


def structured_mm(
    x: Tensor,
    factors: Sequence[Tensor],
    structure: FactorChain,
    last: bool = False,
    strategy: str | None = None,
    precision: str | None = None,
) -> Tensor:
    """Compute W X (rows, n) for x (cols, n) and the factors of W; a Kronecker-sparse W has one factor.

    The result is contiguous, or with `last` the transpose of a contiguous tensor (n, rows). `precision` is how a GPU
    multiplies float32: "ieee", "tf32", "fp32-accurate", or None for torch's setting. The CPU multiplies strictly.

    Raises:
        PlanError: the operands do not fit each other, or there is no such precision.
    """
    if is_eager(x, *factors):
        return run(x, factors, structure, last, strategy, precision)
    # In a graph that records nothing the operator without rules of derivatives is one call of Python, not two.
    op = _plain if torch.compiler.is_compiling() and not torch.is_grad_enabled() else _mm
    product: Tensor = op(x, list(factors), structure.text, last, strategy, precision)
    return product


def kronecker_chain(
    x: Tensor,
    factors: Sequence[Tensor],
    structures: Sequence[KroneckerSparse],
    last: bool,
    strategy: str | None,
    precision: str | None,
) -> Tensor:
    """Compute K1 ... KL x for x (cols, n), parameters (a, d, b, c) and their structures, right-most factor first."""
    for place in reversed(range(len(factors))):
        x = structured_mm(x, [factors[place]], structures[place], last and place == 0, strategy, precision)
    return x


def dense_where_faster(
    factors: Sequence[Tensor],
    structure: FactorChain,
    rows: int,
    max_extra_bytes: int,
    strategy: str | None = None,
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
    request = request_of(structure, rows, own, device=device, max_extra_bytes=UNLIMITED, precision=precision)
    if decision_for(request, strategy=strategy).plan.candidate.strategy != DENSE:
        return None
    wide = [one.detach().to(torch.promote_types(one.dtype, torch.float32)) for one in factors]
    weight: Tensor = structure.dense(wide).to(first.dtype).contiguous()
    return weight


def _run(
    x: Tensor,
    factors: list[Tensor],
    structure: str,
    last: bool,
    strategy: str | None,
    precision: str | None = None,
) -> Tensor:
    plain = [one.resolve_conj() for one in factors]
    return run(x.resolve_conj(), plain, parse_structure(structure), last, strategy, precision)


def _fake(
    x: Tensor,
    factors: list[Tensor],
    structure: str,
    last: bool,
    strategy: str | None,
    precision: str | None = None,
) -> Tensor:
    known = parse_structure(structure)
    torch._check(x.dim() == 2, lambda: "x must be a matrix (cols, n)")
    torch._check(x.shape[0] == known.cols, lambda: f"x must have {known.cols} rows")
    return x.new_empty((x.shape[1], known.rows)).T if last else x.new_empty((known.rows, x.shape[1]))


def _defined(name: str) -> Any:
    """Register an operator of the product, without derivatives; return its overload."""
    LIBRARY.define(
        f"{name}(Tensor x, Tensor[] factors, str structure, bool last, str? strategy, str? precision=None) -> Tensor",
        tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides),
    )
    LIBRARY.impl(name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"lcma::{name}", _fake, lib=LIBRARY)
    return getattr(torch.ops.lcma, name).default


_mm, _plain = _defined(NAME), _defined(f"{NAME}_inference")


class _Product(_SingleLevelFunction):
    """The operator at one level of differentiation."""

    @staticmethod
    def forward(keys: Any, options: tuple[Any, ...], x: Tensor, *factors: Tensor) -> Any:
        # Enabled again for the levels of torch.func below this one; without such levels nothing is recorded.
        below = torch._C._AutoDispatchBelowAutograd()
        with deferred(), below, torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return _mm.redispatch(keys & torch._C._after_autograd_keyset, x, list(factors), *options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.options, *tensors = inputs
        ctx.learn = not is_paused()
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *factors = ctx.saved_tensors
        text, *options = ctx.options
        with deferred(ctx.learn):  # a step of training runs the same products in every pass
            return None, None, *gradients(parse_structure(text), x, factors, options, grad, ctx.needs_input_grad[2:])

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
    keys: Any,
    x: Tensor,
    factors: list[Tensor],
    structure: str,
    last: bool,
    strategy: str | None,
    precision: str | None = None,
) -> Any:
    refuse_sharded(x, *factors)
    options = structure, last, strategy, precision
    if is_differentiated(x, *factors):
        with enable_single_level_autograd_function():
            return cast(Any, _Product).apply(keys, options, x, *factors)
    with torch._C._AutoDispatchBelowAutograd():
        return _mm.redispatch(keys & torch._C._after_autograd_keyset, x, factors, *options)


LIBRARY.impl(NAME, _differentiated, "Autograd", with_keyset=True)


def _batched(info: Any, dims: Any, x: Tensor, factors: list[Tensor], *options: Any) -> tuple[Tensor, int]:
    if all(dim is None for dim in dims[1]):
        columns = x.movedim(dims[0], 1)  # (cols, batch, n)
        product: Tensor = _mm(columns.flatten(1), factors, *options)
        return product.unflatten(1, columns.shape[1:]), 1
    found = []
    for place in range(info.batch_size):
        some = [w if dim is None else w.select(dim, place) for w, dim in zip(factors, dims[1], strict=True)]
        found.append(_mm(x if dims[0] is None else x.select(dims[0], place), some, *options))
    return torch.stack(found), 0


for _name in (NAME, f"{NAME}_inference"):
    torch.library.register_vmap(f"lcma::{_name}", _batched, lib=LIBRARY)


def _register_autocast(name: str, device: str) -> None:
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

    LIBRARY.impl(name, lowered, key, with_keyset=True)


for _device in ("cuda", "cpu"):
    _register_autocast(NAME, _device)
    _register_autocast(f"{NAME}_inference", _device)


@flop_formula(torch.ops.lcma.structured_mm_inference)
@flop_formula(torch.ops.lcma.structured_mm)
def _flops(x_shape: Any, factor_shapes: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Return twice the parameters for every column of X."""
    return 2 * sum(int(np.prod(shape)) for shape in factor_shapes) * int(x_shape[-1])
