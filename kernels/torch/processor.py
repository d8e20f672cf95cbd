"""Products of tensors of a processor by functions of numpy arrays, through the tensors' own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...errors import PlanError

HALVES = (torch.float16, torch.bfloat16)


def through_numpy(product: Callable[..., npt.NDArray[Any]], *tensors: Tensor) -> Tensor:
    """product(*arrays) as a tensor of the operands' dtype; float16 and bfloat16 run in float32 and are rounded once.

    Raises:
        PlanError: numpy has no such dtype.
    """
    dtype = tensors[0].dtype
    result = torch.from_numpy(np.ascontiguousarray(product(*(_array(x) for x in tensors))))
    return result.to(dtype) if dtype in HALVES else result


def _array(tensor: Tensor) -> npt.NDArray[Any]:
    plain = tensor.detach().resolve_conj().resolve_neg()
    try:
        array: npt.NDArray[Any] = (plain.float() if plain.dtype in HALVES else plain).numpy()
    except (TypeError, RuntimeError) as error:
        raise PlanError(f"tensors of {tensor.dtype} can't be multiplied on a processor: {error}") from None
    return array
