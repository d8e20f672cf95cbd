"""Requests for products of tensors, and the layouts of tensors. Imports nothing that a first call need not wait for."""

from __future__ import annotations

from typing import Any

from ...errors import PlanError
from ..arrays import Tensor
from ..request import Layout, Request, product_sizes


def request_of(a: Tensor, b: Tensor, precision: str | None = None, **others: Any) -> Request:
    """Return the request for `a @ b` of tensors, whatever torch's current setting of tf32 is; `others`: see `Request`.

    Raises:
        PlanError: the tensors do not multiply, or differ in dtype or device.
    """
    check_alike(a, b)
    sizes, batches = product_sizes(a, b), (tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    device = "cuda" if a.is_meta else a.device.type  # tensors without data represent GPU tensors
    layouts = layout_of(a), layout_of(b), Layout.ROWS
    name = str(a.dtype).removeprefix("torch.")
    return Request(*sizes, name, *batches, device, layouts, precision=precision, **others)


def check_alike(*tensors: Tensor) -> None:
    """Check that tensors have one dtype and are on one device.

    Raises:
        PlanError: they do not, or are not.
    """
    first, *others = tensors
    for other in others:
        if (first.dtype, first.device) != (other.dtype, other.device):
            found = f"{first.dtype} on {first.device} and {other.dtype} on {other.device}"
            raise PlanError(f"operands are {found}; convert one with .to")


def layout_of(tensor: Tensor) -> Layout:
    """Return the layout of the last two dimensions."""
    (rows, cols), (row, col) = tensor.shape[-2:], tensor.stride()[-2:]
    if col == 1 or cols == 1:
        return Layout.ROWS
    return Layout.COLUMNS if row == 1 or rows == 1 else Layout.SCATTERED
