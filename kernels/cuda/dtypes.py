"""The dtypes of tensors that are multiplied, and their names in requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import PlanError
from ..dtypes import dtype_of
from ..request import CUDA_DTYPES


def name_of(tensor: Any, known: Sequence[str] = CUDA_DTYPES) -> str:
    """The dtype of a request for products of this tensor on a GPU; whether it is tf32 is torch's present setting.

    Raises:
        PlanError: no product of it is supported.
    """
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    if name == "float32" and torch.backends.cuda.matmul.allow_tf32:
        return "tf32"
    if name == "int8":
        raise PlanError("dtype int8 is not supported: a sum of two int8 blocks needs 9 bits; convert to float16")
    if name not in known:
        raise PlanError(f"dtype {name} is not supported on a GPU; convert to one of {', '.join(known)}")
    return name


def itemsize(name: str) -> int:
    """Bytes of an element."""
    return dtype_of(name).numpy.itemsize
