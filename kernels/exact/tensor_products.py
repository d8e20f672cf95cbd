"""Exact products of tensors: from operands to result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import PlanError
from ..codegen.certified import SchemeLike
from ..plans import planned
from ..ring import ExactRing
from .cuda import INTEGER_DTYPES
from .requests import exact_request

Tensor = Any


def exact_tensor_matmul(
    a: Tensor,
    b: Tensor,
    ring: ExactRing,
    scheme: SchemeLike | Sequence[Any],
    levels: int | None,
    out: Tensor,
    *,
    max_workspace: int | None,
    max_abs: int | None,
    strategy: str | None,
    effort: str,
    out_dtype: str | None,
) -> Tensor:
    """`lcma.matmul` in an exact ring, for GPU tensors.

    Raises:
        PlanError: the operands do not fit, an entry is no integer, or the result can exceed its dtype.
        VerificationError: the scheme does not compute its target.
    """
    import torch

    if not (torch.is_tensor(a) and torch.is_tensor(b)) or a.device != b.device:
        raise PlanError("a and b must be tensors of one device; convert or move one")
    if ring.modulus == 2:
        if max_abs is not None or out_dtype is not None:
            raise PlanError("max_abs and out_dtype are not for GF(2); leave them out")
        return multiply_elements(a, b, ring, scheme, levels, out, max_workspace, strategy, effort)
    left, right = _alike(a, b)
    request = exact_request(left, right, ring, max_abs=max_abs, max_workspace=max_workspace, out_dtype=out_dtype)
    return planned(request, scheme, levels, strategy, effort)[1].run(left, right, out)


def multiply_elements(
    a: Tensor,
    b: Tensor,
    ring: ExactRing,
    scheme: SchemeLike | Sequence[Any],
    levels: int | None,
    out: Tensor,
    max_workspace: int | None,
    strategy: str | None,
    effort: str,
) -> Tensor:
    """Return the product over GF(2) of tensors of bool or integers modulo 2: bool if both operands are, else int64."""
    import torch

    from .tensors import pack, unpack

    if out is not None:
        raise PlanError("out over GF(2) is for operands that are BitMatrix; leave it out for tensors")
    for label, x in (("a", a), ("b", b)):
        if x.dtype.is_floating_point or x.dtype.is_complex:
            raise PlanError(f"{label} is {x.dtype}; a matrix over GF(2) is of bool or of integers")
    request = exact_request(a, b, ring, max_workspace=max_workspace)
    words = [pack(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1) if x.numel() else None for x in (a, b)]
    both = a.dtype == b.dtype == torch.bool
    shape, result = (*request.batch, request.m, request.n), torch.bool if both else torch.int64
    if any(x is None for x in words) or 0 in shape:
        return torch.zeros(shape, dtype=result, device=a.device)
    product: Tensor = planned(request, scheme, levels, strategy, effort)[1].run(*words)
    elements = unpack(product.reshape(-1, product.shape[-1]), request.n)
    return elements.to(result).reshape(shape)


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Convert both operands to the narrowest dtype that represents either."""
    import torch

    dtype = torch.promote_types(a.dtype, b.dtype)
    dtype = torch.int8 if dtype == torch.bool else dtype
    name = str(dtype).removeprefix("torch.")
    if name not in INTEGER_DTYPES:
        known = ", ".join(INTEGER_DTYPES)
        raise PlanError(f"a tensor is {name}; exact products on a GPU are of bool, {known}: convert with .to")
    return a.to(dtype), b.to(dtype)
