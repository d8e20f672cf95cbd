"""Block low-rank matrices and their products by definition: the references for the tests of all fast products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..e4m3 import decoded
from .quantization import FP8, GROUP
from .structure import Blast, BlockLowRank, LowRank, Monarch

Matrix = npt.NDArray[Any]


def dense_matrix(structure: BlockLowRank, factors: Sequence[Matrix]) -> Matrix:
    """Return W (rows, cols), block by block."""
    if isinstance(structure, LowRank):
        return factors[0] @ factors[1]
    assert isinstance(structure, Monarch | Blast)
    b1, b2, p, q = structure.b1, structure.b2, structure.p, structure.q
    blocks = np.empty((b2, q, b1, p), factors[0].dtype)
    for k in range(b2):
        for row in range(b1):
            blocks[k, :, row] = _block(structure, factors, k, row)
    if isinstance(structure, Monarch) and structure.interleaved:
        blocks = blocks.swapaxes(0, 1)
    return np.ascontiguousarray(blocks).reshape(structure.rows, structure.cols)


def _block(structure: Monarch | Blast, factors: Sequence[Matrix], k: int, row: int) -> Matrix:
    """Return W[k, l] (q, p)."""
    if isinstance(structure, Monarch):
        left, right = factors
        return left[k, :, row] @ right[row, :, k]
    left, scales, right = factors
    return (left[k] * scales[:, k, row]) @ right[row]


def multiply_rounded(structure: BlockLowRank, factors: Sequence[Matrix], x: Matrix, form: str) -> Matrix:
    """Return W x for x (cols, n), block by block, every result between two steps rounded by `rounded`."""
    if isinstance(structure, LowRank):
        return factors[0] @ rounded(factors[1] @ x, form)
    assert isinstance(structure, Monarch | Blast)
    b1, b2, p, q = structure.b1, structure.b2, structure.p, structure.q
    parts = x.reshape(b1, p, -1)
    product = np.zeros((b2, q, x.shape[1]), x.dtype)
    if isinstance(structure, Monarch):
        for k in range(b2):
            for row in range(b1):
                product[k] += factors[0][k, :, row] @ rounded(factors[1][row, :, k] @ parts[row], form)
        product = product.swapaxes(0, 1) if structure.interleaved else product
        return np.ascontiguousarray(product).reshape(structure.rows, -1)
    left, scales, right = factors
    inner = [rounded(right[row] @ parts[row], form) for row in range(b1)]
    for k in range(b2):
        terms = [scales[:, k, row, None] * inner[row] for row in range(b1)]
        product[k] = left[k] @ rounded(np.sum(terms, axis=0), form)
    return product.reshape(structure.rows, -1)


def rounded(values: Matrix, form: str) -> Matrix:
    """Return values (rank, n) rounded to multiples of a scale for every column and GROUP ranks, as `quantize` stores.

    The multiples are those of e4m3 or of 8-bit integers. The scale is the least power of two that they cover the
    largest magnitude with, 1 for zeros; a group with an infinity or NaN is NaN.
    """
    multiples, odd = _multiples(form)
    found = np.empty_like(values)
    for start in range(0, len(values), GROUP):
        for column in range(values.shape[1]):
            group = values[start : start + GROUP, column].astype(np.float64)
            most = float(np.abs(group.astype(np.float32)).max())
            if not np.isfinite(most):
                found[start : start + GROUP, column] = np.nan
                continue
            exponent = 0 if most == 0 else max(-126, int(np.ceil(np.log2(most / multiples.max()))))
            distance = np.abs(group[:, None] / 2.0**exponent - multiples)
            distance[:, odd] *= 1 + 1e-12  # of two nearest ones the even one
            found[start : start + GROUP, column] = multiples[distance.argmin(1)] * 2.0**exponent
    return found


def _multiples(form: str) -> tuple[Matrix, Matrix]:
    """Return the multiples of a scale, and whether the last bits of their codes are one."""
    if form != FP8:
        return np.arange(-127.0, 128.0), np.arange(-127, 128) % 2 == 1
    values, codes = decoded().astype(np.float64), np.arange(256)
    finite = np.isfinite(values)
    return values[finite], codes[finite] % 2 == 1
