"""Matrices of files on a GPU, and products of a GPU as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import PlanError
from ..kernels.precision import TF32, arithmetic_of


def to_gpu(matrix: Any, arithmetic: str, file: str = "the matrix") -> Any:
    """A copy of an array on the current GPU, where float32 is multiplied in tf32 from then on if `arithmetic` says so.

    The bits of a bfloat16 stand in uint16.

    Raises:
        PlanError: torch has no such dtype.
    """
    import torch

    dtype, precision = arithmetic_of(arithmetic)
    torch.backends.cuda.matmul.allow_tf32 = precision == TF32
    matrix = np.array(matrix)  # in memory of its own: a mapped file is read-only
    if dtype == "bfloat16":
        return torch.from_numpy(matrix.view(np.int16)).view(torch.bfloat16).cuda()
    try:
        return torch.from_numpy(matrix).cuda()
    except TypeError:
        raise PlanError(f"{file} is {dtype}, which torch does not hold; convert with --dtype") from None


def as_numpy(result: Any) -> Any:
    """The product as a numpy array; bfloat16 as its bits."""
    if isinstance(result, np.ndarray):
        return result
    import torch

    result = result.cpu()
    return result.view(torch.int16).numpy().view(np.uint16) if result.dtype == torch.bfloat16 else result.numpy()
