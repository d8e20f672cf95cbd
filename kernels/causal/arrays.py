"""Arrays in and out: numpy arrays as they are, torch tensors of the processor through their memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError

Matrix = npt.NDArray[Any]
Array = Any
"""A numpy array, what numpy makes one of, or a torch tensor."""


def is_tensor(value: object) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def on_device(*values: object) -> bool:
    """Whether the operands are tensors of a GPU.

    Raises:
        PlanError: some are and some are not, or they are of something else than a processor or a GPU.
    """
    kinds = {value.device.type if is_tensor(value) else "cpu" for value in values}  # type: ignore[attr-defined]
    if not kinds <= {"cpu", "cuda"} or len(kinds) > 1:
        raise PlanError(f"operands are on {' and '.join(sorted(kinds))}; move them to one processor or GPU")
    return kinds == {"cuda"}


def through_numpy(work: Callable[..., Matrix], *values: Array) -> Array:
    """work(*arrays), with tensors passed as the arrays of their memory and a tensor given back.

    float16 and bfloat16 tensors are worked in float32 and rounded once, at the end.

    Raises:
        PlanError: operands of different dtypes, or tensors beside arrays.
    """
    if not any(is_tensor(value) for value in values):
        return work(*(np.asarray(value) for value in values))
    import torch

    if not all(is_tensor(value) for value in values):
        raise PlanError("torch tensors and other arrays do not mix; convert one kind with torch.from_numpy or .numpy()")
    dtypes = {value.dtype for value in values}
    if len(dtypes) > 1:
        raise PlanError(f"operands are {' and '.join(sorted(map(str, dtypes)))}; convert one with .to")
    (dtype,) = dtypes
    narrow = dtype in (torch.float16, torch.bfloat16)
    arrays = [_array(value.float() if narrow else value) for value in values]
    result = torch.from_numpy(np.ascontiguousarray(work(*arrays)))
    return result.to(dtype) if narrow else result


def _array(tensor: Any) -> Matrix:
    plain = tensor.detach().resolve_conj().resolve_neg()
    try:
        array: Matrix = plain.numpy()
    except (TypeError, RuntimeError) as error:
        raise PlanError(f"a tensor of {tensor.dtype} cannot be worked: {error}") from None
    return array
