"""The dtypes of tensors that can be multiplied, and their names in requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import PlanError
from ..arrays import torch
from ..dtypes import dtype_of
from ..precision import ACCURATE, FORMER_NAMES, FP8, NAMES, TF32, arithmetic_of


def precision_of(tensor: Any) -> str | None:
    """Return the precision of products of this tensor if none is chosen: tf32 for float32 if torch's setting allows it.

    Whether its dtype is supported is checked with the request.
    """
    return TF32 if tensor.dtype is torch.float32 and allows_tf32() else None


def allows_tf32() -> bool:
    """Return torch.backends.cuda.matmul.allow_tf32, in a tenth of its time: every product of float32 asks."""
    return bool(torch._C._get_cublas_allow_tf32())


STRICT = "ieee"
"""The choice of strict products of float32, whatever torch's current setting is."""

CHOICES = (STRICT, TF32, ACCURATE)
"""How callers choose the precision of products of float32 with a factored operand."""


def dense_precision(tensor: Any, precision: str | None) -> str | None:
    """Return the precision of a request for dense products of this tensor: the one chosen, or `precision_of`.

    Raises:
        PlanError: there is no such choice, or it is not for the dtype of the tensor.
    """
    check_dense_precision(precision)
    if precision is None:
        return precision_of(tensor)
    dtype = str(tensor.dtype).removeprefix("torch.")
    known = [one.dtype for one in NAMES if one.precision == precision]
    if dtype not in known:
        raise PlanError(f"precision={precision!r} is for {', '.join(known)}, not for {dtype}")
    return precision


def check_dense_precision(precision: str | None) -> None:
    """Check that this is a choice for dense products, or None (torch's current setting).

    Raises:
        PlanError: it is not.
    """
    if precision not in (None, ACCURATE, FP8):
        raise PlanError(f"precision of a dense product must be {ACCURATE}, {FP8} or None, not {precision!r}")


def factored_precision(tensor: Any, precision: str | None) -> str | None:
    """Return the precision of a request for products of this tensor by factors; a choice applies to float32 only.

    Raises:
        PlanError: there is no such choice.
    """
    chosen = check_precision(precision)
    if chosen is None or tensor.dtype is not torch.float32:
        return precision_of(tensor)
    return None if chosen == STRICT else chosen


def check_precision(precision: str | None) -> str | None:
    """Return one of CHOICES, by its present name, or None (torch's current setting).

    Raises:
        PlanError: there is no such choice.
    """
    chosen = FORMER_NAMES.get(precision or "", precision)
    if chosen is not None and chosen not in CHOICES:
        raise PlanError(f"precision must be one of {', '.join(CHOICES)} or None, not {precision!r}")
    return chosen


@contextmanager
def vendor_precision(arithmetic: str) -> Iterator[None]:
    """Within a with block torch multiplies float32 in tf32 if this is its arithmetic, else strictly.

    Nothing is set for other dtypes. torch's global setting is restored.
    """
    settings = torch.backends.cuda.matmul
    (dtype, precision), before = arithmetic_of(arithmetic), settings.allow_tf32
    wanted = precision == TF32
    if dtype != "float32" or before == wanted:
        yield
        return
    settings.allow_tf32 = wanted
    try:
        yield
    finally:
        settings.allow_tf32 = before


def itemsize(name: str) -> int:
    """Return the bytes of an element of operands in an arithmetic of this name."""
    return dtype_of(name).numpy.itemsize
