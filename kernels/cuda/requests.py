"""Requests for products of tensors, and the layouts of tensors. Imports nothing that a first call need not wait for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..arrays import Tensor
from ..request import Layout, Request, product_sizes


def request_of(a: Tensor, b: Tensor, precision: str | None = None, **others: Any) -> Request:
    """Return the request for `a @ b` of tensors, whatever torch's current setting of tf32 is; `others`: see `Request`.

    Raises:
        PlanError: the tensors do not multiply, or differ in dtype or device.
    """
    if a.dtype != b.dtype:
        raise PlanError(f"a is {a.dtype} and b is {b.dtype}; convert one with .to")
    if a.device != b.device:
        raise PlanError(f"a is on {a.device} and b on {b.device}; move one with .to")
    sizes, batches = product_sizes(a, b), (tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    try:
        np.broadcast_shapes(*batches)  # torch's imports sympy, for two seconds
    except ValueError:
        raise PlanError(f"leading sizes {[*batches[0]]} and {[*batches[1]]} do not broadcast; reshape one") from None
    device = "cuda" if a.is_meta else a.device.type  # tensors without data represent GPU tensors
    layouts = layout_of(a), layout_of(b), Layout.ROWS
    name = str(a.dtype).removeprefix("torch.")
    return Request(*sizes, name, *batches, device, layouts, precision=precision, **others)


def layout_of(tensor: Tensor) -> Layout:
    """Return the layout of the last two dimensions."""
    (rows, cols), (row, col) = tensor.shape[-2:], tensor.stride()[-2:]
    if col == 1 or cols == 1:
        return Layout.ROWS
    return Layout.COLUMNS if row == 1 or rows == 1 else Layout.SCATTERED
