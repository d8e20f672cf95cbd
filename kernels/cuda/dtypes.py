"""The dtypes of tensors that can be multiplied, and their names in requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import PlanError
from ..dtypes import dtype_of
from ..request import ACCURATE, CUDA_DTYPES, FP8, INT8, SPLIT


def name_of(tensor: Any, known: Sequence[str] = CUDA_DTYPES) -> str:
    """Return the dtype of a request for products of this tensor on a GPU; tf32 if torch's current setting allows it.

    Raises:
        PlanError: products of its dtype are not supported.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "float32" and allows_tf32():
        return "tf32"
    if name == INT8:
        raise PlanError("dtype int8 is not supported: a sum of two int8 blocks needs 9 bits; convert to float16")
    if name not in known:
        raise PlanError(f"dtype {name} is not supported on a GPU; convert to one of {', '.join(known)}")
    return name


def allows_tf32() -> bool:
    """Return torch.backends.cuda.matmul.allow_tf32, in a tenth of its time: every product of float32 asks."""
    import torch

    return bool(torch._C._get_cublas_allow_tf32())


PRECISIONS = {"ieee": "float32", "tf32": "tf32", SPLIT: SPLIT}
"""Precisions of float32 products and the dtypes of their requests: strict, as tf32, or by three products of tf32 or of
float16 halves."""


EIGHT_BITS = "fp8"
"""The precision of dense products in e4m3 with block scales."""


def dense_dtype(tensor: Any, precision: str | None) -> str:
    """Return `name_of`, or the dtype of a request for this precision.

    Raises:
        PlanError: the precision is unknown, or is not for the dtype of the tensor.
    """
    check_dense_precision(precision)
    dtype = str(tensor.dtype).removeprefix("torch.")
    if precision is None:
        return dtype if dtype == INT8 else name_of(tensor)
    if precision == EIGHT_BITS:
        if dtype not in FP8:
            raise PlanError(f"precision={precision!r} is for {', '.join(FP8)}, not for {dtype}")
        return FP8[dtype]
    if dtype != "float32":
        raise PlanError(f"precision={ACCURATE!r} is for float32, not for {dtype}")
    return ACCURATE


def check_dense_precision(precision: str | None) -> None:
    """Check that this is a precision of dense products, or None.

    Raises:
        PlanError: it is not.
    """
    if precision not in (None, ACCURATE, EIGHT_BITS):
        raise PlanError(f"precision of a dense product must be {ACCURATE}, {EIGHT_BITS} or None, not {precision!r}")


def check_precision(precision: str | None) -> None:
    """Check that this is one of PRECISIONS, or None (torch's current setting).

    Raises:
        PlanError: it is neither.
    """
    if precision is not None and precision not in PRECISIONS:
        raise PlanError(f"precision must be one of {', '.join(PRECISIONS)} or None, not {precision!r}")


@contextmanager
def vendor_precision(dtype: str) -> Iterator[None]:
    """Within a with block torch multiplies float32 as in this request dtype; its global setting is restored."""
    import torch

    settings = torch.backends.cuda.matmul
    before, wanted = settings.allow_tf32, dtype == "tf32"
    if dtype not in PRECISIONS.values() or before == wanted:
        yield
        return
    settings.allow_tf32 = wanted
    try:
        yield
    finally:
        settings.allow_tf32 = before


def itemsize(name: str) -> int:
    """Return the bytes of an element."""
    return dtype_of(name).numpy.itemsize
