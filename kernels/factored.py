"""Requests for products by factored matrices: Y = W X, where X (cols, batch) is stored batch-first or batch-last."""

from __future__ import annotations

from typing import Any

from ..errors import PlanError
from .precision import arithmetic_of
from .request import Layout, Request
from .structure import DENSE, FactoredStructure

BATCH_FIRST, BATCH_LAST = "bsf", "bsl"

UNLIMITED = 1 << 62
"""A `max_extra_bytes` without effect: the dense matrix may be built, however large it is."""

ORDERS = (BATCH_FIRST, BATCH_LAST)
"""Storage orders of inputs and outputs: (batch, features) or (features, batch), as C-ordered arrays."""


def check_order(order: str) -> None:
    """Check that this is one of ORDERS.

    Raises:
        PlanError: it is not.
    """
    if order not in ORDERS:
        raise PlanError(f'layout must be "bsf" (batch first) or "bsl" (batch last), not {order!r}')


def layout_of_order(order: str) -> Layout:
    """Return the layout of X (cols, batch): its columns are contiguous if it is batch-first."""
    return Layout.COLUMNS if order == BATCH_FIRST else Layout.ROWS


def product_dtype(dtype: str, device: str) -> str:
    """Return the dtype in which products of factors are computed: the CPU widens half precision to float32."""
    return "float32" if device == "cpu" and dtype in ("float16", "bfloat16") else dtype


def extra_bytes_for(strategy: str | None) -> int:
    """Return `max_extra_bytes` of a call: unlimited if the caller names the dense matrix, else 0."""
    return UNLIMITED if strategy is not None and strategy.partition(":")[0] == "dense" else 0


def factored_request(
    structure: FactoredStructure,
    batch: int,
    dtype: str = "float32",
    order: str = BATCH_FIRST,
    *,
    layouts: tuple[Layout, Layout] | None = None,
    **others: Any,
) -> Request:
    """Return the request for W X of so many columns; `others` are further fields of it.

    `layouts` are those of X (cols, batch) and of the result, by default the ones of `order`. `dtype` may be the name of
    an arithmetic, such as tf32, which has a precision.

    Raises:
        PlanError: there is no such dtype, precision, device or order.
    """
    check_order(order)
    own = arithmetic_of(dtype)
    layout = layout_of_order(order)
    given, wanted = (layout, layout) if layouts is None else layouts
    sizes, structures = (structure.rows, structure.cols, batch), (structure, DENSE, DENSE)
    others["precision"] = others.get("precision") or own.precision
    return Request(*sizes, own.dtype, layouts=(Layout.ROWS, given, wanted), static="A", structures=structures, **others)
