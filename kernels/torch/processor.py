"""Products of CPU tensors by functions of numpy arrays, on the tensors' own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...errors import PlanError
from ..arrays import Memory
from ..bfloat16 import dtype_of
from ..cpu.blas import as_tensor

HALVES = (torch.float16, torch.bfloat16)


def through_numpy(product: Callable[..., npt.NDArray[Any]], *tensors: Tensor) -> Tensor:
    """Return product(*arrays) as a tensor of the operands' dtype; float16 and bfloat16 run in float32, rounded once."""
    dtype = tensors[0].dtype
    result = torch.from_numpy(np.asarray(product(*(as_array(x) for x in tensors)), order="C"))
    return result.to(dtype) if dtype in HALVES else result


def as_array(tensor: Tensor) -> npt.NDArray[Any]:
    """Return the memory of a CPU tensor as an array with the same strides; half precision as a copy in float32.

    `Tensor.numpy` is avoided, as it permanently forbids resizing the storage, by which FSDP2 frees weights.

    Raises:
        PlanError: numpy has no such dtype.
    """
    plain = tensor.detach().resolve_conj().resolve_neg()
    plain = plain.float() if plain.dtype in HALVES else plain
    try:
        return np.asarray(_memory(plain)) if plain.numel() else np.empty(plain.shape, _numpy_dtype(plain))
    except (TypeError, RuntimeError) as error:
        raise PlanError(f"tensors of {tensor.dtype} can't be multiplied on a processor: {error}") from None


def stored_array(tensor: Tensor) -> npt.NDArray[Any]:
    """Return the numbers of a tensor of any device as an array; bfloat16 as bits in uint16. May share memory."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(np.uint16)
    return plain.numpy()


def stored_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return a tensor with a copy of an array's numbers; of bits in uint16 as bfloat16."""
    copied = np.array(array)
    found: Tensor = as_tensor(copied, dtype_of(copied))
    return found


def _memory(tensor: Tensor) -> Memory:
    data, strides = (tensor.data_ptr(), False), tuple(step * tensor.element_size() for step in tensor.stride())
    kind, shape = _numpy_dtype(tensor).str, tuple(tensor.shape)
    return Memory(tensor, version=3, data=data, typestr=kind, shape=shape, strides=strides)


def _numpy_dtype(tensor: Tensor) -> np.dtype[Any]:
    return np.dtype(str(tensor.dtype).removeprefix("torch."))
