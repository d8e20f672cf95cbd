"""Exact products in plain Python integers: the reference for every strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..ring import ExactRing
from .bits import BitMatrix


def naive_bits(a: BitMatrix, b: BitMatrix) -> BitMatrix:
    """Return the product over GF(2), by the definition."""
    product = a.to_array(np.int64) @ b.to_array(np.int64)
    return BitMatrix.from_array(product & 1)


def naive_product(a: npt.NDArray[Any], b: npt.NDArray[Any], ring: ExactRing) -> npt.NDArray[np.object_]:
    """Return the product of integer matrices (..., m, k) and (..., k, n) as Python integers, 0 <= c < n for Z/n."""
    product = np.matmul(a.astype(object), b.astype(object)) if a.shape[-1] else None
    if product is None:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        product = np.full(shape, 0, dtype=object)
    return product % ring.modulus if ring.modulus else product


PART = 22
"""Bits of a part of an entry: sums of three times 2^17 products of two parts stay below 2^63."""


def product_by_parts(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    """Return the product of integer matrices (..., m, k) and (..., k, n), k up to 2^17, as Python integers.

    It is the sum of up to nine products of parts of PART bits, which fit int64: that is faster than products of
    Python integers for all but small matrices. Parts that are 0 throughout are skipped. `einsum` reads b by rows, which
    numpy's own product of integers does not.
    """
    mask = (1 << PART) - 1
    lefts, rights = ([x & mask, x >> PART & mask, x >> 2 * PART] for x in (a.astype(np.int64), b.astype(np.int64)))
    total: Any = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), object)
    for power in range(5):
        pairs = [(lefts[i], rights[power - i]) for i in range(3) if 0 <= power - i < 3]
        pairs = [(left, right) for left, right in pairs if left.any() and right.any()]
        if terms := [np.einsum("...ij,...jk->...ik", left, right) for left, right in pairs]:
            total = total + np.sum(terms, axis=0).astype(object) * (1 << power * PART)
    return np.asarray(total)


def xored_rows(a: BitMatrix, b: BitMatrix) -> BitMatrix:
    """Return the product over GF(2) of a matrix of few rows: each row is the sum of the rows of b that a selects."""
    rows = [np.bitwise_xor.reduce(b.words[chosen], axis=0) for chosen in a.to_array(np.bool_)]
    return BitMatrix(np.array(rows, np.uint64).reshape(len(rows), b.words.shape[1]), b.cols)
