"""Exact products of arrays and of GPU tensors: from operands to result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..arrays import Tensor, is_tensor, torch
from ..codegen.certified import SchemeLike
from ..exact.bits import BitMatrix
from ..exact.integers import overflow_reason
from ..out import check_out
from ..overflow import largest_magnitude
from ..plans.decisions import AUTO, PREDICT, executor_for
from ..request import BITS, EXACT_DTYPES, PYTHON, WIDE, Request, matmul_shape, product_sizes
from ..ring import ExactRing, exact_ring


def exact_matmul(
    a: Any,
    b: Any,
    ring: str | ExactRing,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    out: Any = None,
    *,
    strategy: str | None = None,
    effort: str = PREDICT,
    **limits: Any,
) -> Any:
    """`lcma.matmul` in an exact ring; `limits` are `max_workspace`, `max_abs` and `out_dtype`.

    Raises:
        PlanError: the operands do not fit, an entry is no integer, or the result can exceed its dtype.
        VerificationError: the scheme does not compute its target.
    """
    ring = exact_ring(ring)
    if levels == 0:
        scheme, levels, strategy = AUTO, None, strategy or "leaf"
    choice: dict[str, Any] = {"scheme": scheme, "levels": levels, "strategy": strategy, "effort": effort}
    if is_tensor(a) or is_tensor(b):
        if not (is_tensor(a) and is_tensor(b) and a.device.type == b.device.type == "cpu"):
            return _of_tensors(a, b, ring, out, limits, choice)
        if limits.get("out_dtype") == PYTHON:
            raise PlanError("tensors do not hold Python integers; multiply tensor.numpy()")
        array = None
        if out is not None:
            words = (2,) if limits.get("out_dtype") == WIDE else ()
            check_out(out, (*matmul_shape(tuple(a.shape), tuple(b.shape)), *words), torch.int64, a.device)
            array = out.numpy()
        product = exact_matmul(a.detach().numpy(), b.detach().numpy(), ring, out=array, **choice, **limits)
        return torch.from_numpy(product) if out is None else out
    if ring.modulus == 2:
        return _over_gf2(a, b, ring, out, limits.get("max_workspace"), choice)
    left, right = (_integers(label, x, ring) for label, x in (("a", a), ("b", b)))
    request = exact_request(left, right, ring, **limits)
    executor = executor_for(request, **choice)
    return executor.run(left.astype(request.storage, copy=False), right.astype(request.storage, copy=False), out)


def _over_gf2(a: Any, b: Any, ring: ExactRing, out: Any, max_workspace: int | None, choice: dict[str, Any]) -> Any:
    left, right = bit_operand(a), bit_operand(b)
    executor = executor_for(exact_request(left, right, ring, max_workspace=max_workspace), **choice)
    if isinstance(a, BitMatrix) and isinstance(b, BitMatrix):
        return executor.run(left, right, out)
    if out is not None:
        raise PlanError("out over GF(2) is for operands that are BitMatrix; leave it out for arrays")
    both_bool = all(getattr(x, "dtype", None) == np.bool_ for x in (a, b))
    product = cast(Any, executor.run(cast(Any, left), cast(Any, right)))
    return product.to_array(np.bool_ if both_bool else np.int64)


def bit_operand(matrix: Any) -> BitMatrix:
    """Convert an operand over GF(2): a BitMatrix is returned as is, an array of bool or integers taken modulo 2.

    Raises:
        PlanError: the operand is neither.
    """
    if isinstance(matrix, BitMatrix):
        return matrix
    refuse_masks(matrix=matrix)
    array = np.asarray(matrix)
    if array.dtype.kind not in "biu":
        raise PlanError(f"a matrix over GF(2) is a BitMatrix or an array of bool or integers, not of {array.dtype}")
    return BitMatrix.from_array(array if array.dtype.kind == "b" else array & 1)


def _integers(label: str, matrix: Any, ring: ExactRing) -> npt.NDArray[Any]:
    if isinstance(matrix, BitMatrix):
        raise PlanError(f"{label} is a bit matrix; its products are over Z2, not {ring}: convert it with .to_array()")
    array = np.asarray(matrix)
    if array.dtype == np.bool_:
        array = array.astype(np.int8)
    if array.dtype.newbyteorder("=").name not in EXACT_DTYPES:
        known = ", ".join(EXACT_DTYPES)
        raise PlanError(f"{label} is {array.dtype}; exact products are of bool, {known}: convert with .astype")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def exact_request(
    a: Any,
    b: Any,
    ring: ExactRing,
    *,
    max_abs: int | None = None,
    max_workspace: int | None = None,
    out_dtype: str | None = None,
) -> Request:
    """Return the request of an exact product of arrays, bit matrices, or of tensors of elements for a GPU.

    Over Z, if `max_abs` is not given, it is computed from the entries and rounded up to a power of two, so that
    few distinct plans are needed.

    Raises:
        PlanError: the operands do not multiply.
    """
    m, k, n = product_sizes(a, b)
    arrays = isinstance(a, np.ndarray | BitMatrix)
    dtype = BITS if ring.modulus == 2 else np.result_type(a, b).name if arrays else str(a.dtype).removeprefix("torch.")
    if ring.modulus == 0 and max_abs is None:
        most = max(largest_magnitude(a), largest_magnitude(b))
        rounded = 1 << max(most - 1, 0).bit_length()
        max_abs = most if overflow_reason((m, k, n), ring, (rounded, rounded), out_dtype) else rounded
    batches, device = (tuple(a.shape[:-2]), tuple(b.shape[:-2])), "cpu" if arrays else "cuda"
    limits: dict[str, Any] = {"max_workspace": max_workspace, "max_abs": max_abs, "out_dtype": out_dtype}
    return Request(m, k, n, dtype, *batches, device, ring=ring, **limits)


BitMatrix.product = staticmethod(lambda a, b: exact_matmul(a, b, "Z2"))


def _of_tensors(
    a: Tensor, b: Tensor, ring: ExactRing, out: Tensor, limits: dict[str, Any], choice: dict[str, Any]
) -> Tensor:
    """Multiply GPU tensors; `limits` are of the request, `choice` of the executor."""
    if not (torch.is_tensor(a) and torch.is_tensor(b)) or a.device != b.device:
        raise PlanError("a and b must be tensors of one device; convert or move one")
    if ring.modulus == 2:
        if limits.get("max_abs") is not None or limits.get("out_dtype") is not None:
            raise PlanError("max_abs and out_dtype are not for GF(2); leave them out")
        return multiply_elements(a, b, ring, out, limits.get("max_workspace"), **choice)
    left, right = _alike(a, b)
    request = exact_request(left, right, ring, **limits)
    return executor_for(request, **choice).run(left, right, out)


def multiply_elements(
    a: Tensor, b: Tensor, ring: ExactRing, out: Tensor = None, max_workspace: int | None = None, **choice: Any
) -> Tensor:
    """Return the product over GF(2) of tensors of bool or integers modulo 2: bool if both operands are, else int64."""
    from ..exact.tensors import pack, unpack

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
    product: Tensor = executor_for(request, **choice).run(*words)
    elements = unpack(product.reshape(-1, product.shape[-1]), request.n)
    return elements.to(result).reshape(shape)


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Convert both operands to the narrowest dtype that represents either."""
    from ..exact.cuda import INTEGER_DTYPES

    dtype = torch.promote_types(a.dtype, b.dtype)
    dtype = torch.int8 if dtype == torch.bool else dtype
    name = str(dtype).removeprefix("torch.")
    if name not in INTEGER_DTYPES:
        known = ", ".join(INTEGER_DTYPES)
        raise PlanError(f"a tensor is {name}; exact products on a GPU are of bool, {known}: convert with .to")
    return a.to(dtype), b.to(dtype)
