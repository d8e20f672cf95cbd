"""Block low-rank matrices and their products by definition: the references for the tests of all fast products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch

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
