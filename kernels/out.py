"""The one check of the arrays and tensors that a caller passes for results to be written to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import PlanError


def check_out(out: Any, shape: Sequence[int], dtype: Any, device: Any = None) -> None:
    """Check that a result of this shape and dtype can be written to `out`: an array, or a tensor on a device.

    Nothing is converted or broadcast. A tensor that owns no memory yet is resized to the shape, as by torch.matmul;
    a view is not, since that would overwrite what lies behind it. `out` may overlap the operands.

    Raises:
        PlanError: `out` is not of this kind, dtype, device or shape, is read-only, has a gradient, or has elements
            that share memory.
    """
    shape = tuple(shape)
    if device is None:
        kind = "an array"
        fits = isinstance(out, np.ndarray) and not isinstance(out, np.ma.MaskedArray) and out.dtype == dtype
    else:
        torch = sys.modules["torch"]
        kind = "a tensor"
        fits = torch.is_tensor(out) and out.layout is torch.strided and (out.dtype, out.device) == (dtype, device)
        if fits and tuple(out.shape) != shape and not out.requires_grad:
            storage = out.untyped_storage()
            if storage.resizable() and not storage.nbytes():  # that of an array is not
                out.resize_(shape)
    if not fits or tuple(out.shape) != shape:
        place = "" if device is None else f" on {device}"
        raise PlanError(f"out must be {kind} of shape {shape} and dtype {dtype}{place}, not {_described(out, device)}")
    if device is None and not out.flags.writeable:
        raise PlanError("out is read-only; pass a writable array")
    if device is not None and out.requires_grad and torch.is_grad_enabled():
        raise PlanError("out requires grad, but a product into `out` has no gradient; detach it, or use no_grad()")
    strides, least = (out.strides, out.itemsize) if device is None else (out.stride(), 1)
    if _elements_share_memory(shape, strides, least):
        raise PlanError("elements of out share memory; pass one of its own memory, as copies have")


def shares_storage(x: Any, y: Any) -> bool:
    """Return whether two tensors share a storage; if they do not overlap in it, this costs at most a copy."""
    return bool(x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())


def _described(out: Any, device: Any) -> str:
    if not hasattr(out, "dtype") or not hasattr(out, "shape"):
        return f"{type(out).__name__}"
    place = "" if device is None else f" on {getattr(out, 'device', 'the host')}"
    return f"{type(out).__name__} of shape {tuple(out.shape)} and dtype {out.dtype}{place}"


def _elements_share_memory(shape: Sequence[int], strides: Sequence[int], least: int) -> bool:
    """Return whether steps along one dimension are not longer than the extent of all dimensions with shorter steps."""
    if 0 in shape:
        return False
    extent = least - 1
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True) if size > 1):
        if stride <= extent:
            return True
        extent += stride * (size - 1)
    return False
