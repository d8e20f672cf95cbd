"""Exact products in plain Python integers: the truth that every strategy is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..ring import ExactRing
from .bits import BitMatrix


def naive_bits(a: BitMatrix, b: BitMatrix) -> BitMatrix:
    """The product over GF(2), by the definition."""
    product = a.to_array(np.int64) @ b.to_array(np.int64)
    return BitMatrix.from_array(product & 1)


def naive_product(a: npt.NDArray[Any], b: npt.NDArray[Any], ring: ExactRing) -> npt.NDArray[np.object_]:
    """The product of integer matrices (..., m, k) and (..., k, n) as Python integers, 0 <= c < n for Z/n."""
    product = np.matmul(a.astype(object), b.astype(object)) if a.shape[-1] else None
    if product is None:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        product = np.full(shape, 0, dtype=object)
    return product % ring.modulus if ring.modulus else product
