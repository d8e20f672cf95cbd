"""Requests for exact products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import PlanError
from ..request import BITS, Request
from ..ring import ExactRing
from .bits import BitMatrix
from .executor import largest_magnitude
from .integers import overflow_reason

Operand = Any
"""A BitMatrix, an array, or a tensor of a GPU."""


def exact_request(
    a: Operand,
    b: Operand,
    ring: ExactRing,
    *,
    max_abs: int | None = None,
    max_workspace: int | None = None,
    out_dtype: str | None = None,
) -> Request:
    """Return the request of an exact product; of tensors for a GPU.

    Over Z, if `max_abs` is not given, it is computed from the entries and rounded up to a power of two, so that
    few distinct plans are needed.

    Raises:
        PlanError: the operands do not multiply.
    """
    for label, matrix in (("a", a), ("b", b)):
        if matrix.ndim < 2:
            raise PlanError(f"{label} has {matrix.ndim} dimensions; reshape it to a matrix (at least 2)")
    (m, k), (inner, n) = a.shape[-2:], b.shape[-2:]
    if k != inner:
        raise PlanError(f"inner sizes differ: a is {m} x {k} and b is {inner} x {n}; transpose or slice one")
    arrays = isinstance(a, np.ndarray | BitMatrix)
    dtype = BITS if ring.modulus == 2 else np.result_type(a, b).name if arrays else str(a.dtype).removeprefix("torch.")
    if max_abs is None and ring.modulus == 0:
        most = max(largest_magnitude(a), largest_magnitude(b))
        rounded = 1 << max(most - 1, 0).bit_length()
        max_abs = most if overflow_reason((m, k, n), ring, (rounded, rounded), out_dtype) else rounded
    return Request(
        m,
        k,
        n,
        dtype,
        tuple(a.shape[:-2]),
        tuple(b.shape[:-2]),
        "cpu" if arrays else "cuda",
        max_workspace=max_workspace,
        max_abs=max_abs,
        ring=ring,
        out_dtype=out_dtype,
    )
