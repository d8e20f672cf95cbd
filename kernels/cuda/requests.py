"""Requests for products of tensors, and the layouts of tensors. Imports nothing that a first call need not wait for."""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ..arrays import Tensor
from ..request import Layout, Request, product_sizes
from ..structure import DENSE, Structure


def request_of(
    a: Tensor,
    b: Tensor,
    precision: str | None = None,
    *,
    static: str | None = None,
    max_error: float | None = None,
    max_workspace: int | None = None,
    max_abs: int | None = None,
    structures: tuple[Structure, Structure, Structure] = (DENSE, DENSE, DENSE),
) -> Request:
    """Return the request for `a @ b` of tensors, whatever torch's current setting of tf32 is.

    Raises:
        PlanError: the tensors do not multiply, or differ in dtype or device.
    """
    if a.dtype != b.dtype:
        raise PlanError(f"a is {a.dtype} and b is {b.dtype}; convert one with .to")
    if a.device != b.device:
        raise PlanError(f"a is on {a.device} and b on {b.device}; move one with .to")
    m, k, n = product_sizes(a, b)
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # torch's imports sympy, for two seconds
    except ValueError:
        raise PlanError(
            f"leading sizes {[*a.shape[:-2]]} and {[*b.shape[:-2]]} do not broadcast; reshape one"
        ) from None
    return Request(
        m,
        k,
        n,
        str(a.dtype).removeprefix("torch."),
        tuple(a.shape[:-2]),
        tuple(b.shape[:-2]),
        "cuda" if a.is_meta else a.device.type,  # tensors without data represent GPU tensors
        (layout_of(a), layout_of(b), Layout.ROWS),
        static=static,
        max_error=max_error,
        max_workspace=max_workspace,
        max_abs=max_abs,
        structures=structures,
        precision=precision,
    )


def layout_of(tensor: Tensor) -> Layout:
    """Return the layout of the last two dimensions."""
    (rows, cols), (row, col) = tensor.shape[-2:], tensor.stride()[-2:]
    if col == 1 or cols == 1:
        return Layout.ROWS
    return Layout.COLUMNS if row == 1 or rows == 1 else Layout.SCATTERED
