"""Exact products of matrices: from operands to result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from ..codegen.certified import SchemeLike
from ..out import check_out
from ..plans import AUTO, PREDICT, planned
from ..request import EXACT_DTYPES, PYTHON, WIDE, matmul_shape
from ..ring import ExactRing, exact_ring
from .bits import BitMatrix
from .requests import exact_request


def exact_matmul(
    a: Any,
    b: Any,
    ring: str | ExactRing,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    out: Any = None,
    *,
    max_workspace: int | None = None,
    max_abs: int | None = None,
    strategy: str | None = None,
    effort: str = PREDICT,
    out_dtype: str | None = None,
) -> Any:
    """`lcma.matmul` in an exact ring.

    Raises:
        PlanError: the operands do not fit, an entry is no integer, or the result can exceed its dtype.
        VerificationError: the scheme does not compute its target.
    """
    ring = exact_ring(ring)
    if levels == 0:
        scheme, levels, strategy = AUTO, None, strategy or "leaf"
    if (torch := sys.modules.get("torch")) is not None and (torch.is_tensor(a) or torch.is_tensor(b)):
        limits: dict[str, Any] = {"max_workspace": max_workspace, "max_abs": max_abs, "out_dtype": out_dtype}
        limits |= {"strategy": strategy, "effort": effort}
        if torch.is_tensor(a) and torch.is_tensor(b) and a.device.type == b.device.type == "cpu":
            if out_dtype == PYTHON:
                raise PlanError("tensors do not hold Python integers; multiply tensor.numpy()")
            array = None
            if out is not None:
                words = (2,) if out_dtype == WIDE else ()
                check_out(out, (*matmul_shape(tuple(a.shape), tuple(b.shape)), *words), torch.int64, a.device)
                array = out.numpy()
            found = exact_matmul(a.detach().numpy(), b.detach().numpy(), ring, scheme, levels, array, **limits)
            return torch.from_numpy(found) if out is None else out
        from .tensor_products import exact_tensor_matmul

        return exact_tensor_matmul(a, b, ring, scheme, levels, out, **limits)
    if ring.modulus == 2:
        return _over_gf2(a, b, ring, scheme, levels, out, max_workspace, strategy, effort)
    left, right = (_integers(label, x, ring) for label, x in (("a", a), ("b", b)))
    request = exact_request(left, right, ring, max_abs=max_abs, max_workspace=max_workspace, out_dtype=out_dtype)
    _, executor = planned(request, scheme, levels, strategy, effort)
    return executor.run(left.astype(request.storage, copy=False), right.astype(request.storage, copy=False), out)


def _over_gf2(
    a: Any,
    b: Any,
    ring: ExactRing,
    scheme: SchemeLike | Sequence[Any],
    levels: int | None,
    out: Any,
    max_workspace: int | None,
    strategy: str | None,
    effort: str,
) -> Any:
    left, right = bit_operand(a), bit_operand(b)
    request = exact_request(left, right, ring, max_workspace=max_workspace)
    _, executor = planned(request, scheme, levels, strategy, effort)
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


def multiply_bits(a: BitMatrix, b: BitMatrix) -> BitMatrix:
    """Return a @ b over GF(2)."""
    found: BitMatrix = exact_matmul(a, b, "Z2")
    return found


BitMatrix.product = staticmethod(multiply_bits)
