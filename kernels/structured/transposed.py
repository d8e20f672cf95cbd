"""The transposed matrix: a structure of the same kind with inputs and outputs exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch

Array = Any
"""A numpy array or a torch tensor."""


def transposed(
    structure: BlockLowRank, factors: Sequence[Array]
) -> tuple[BlockLowRank, list[Array], npt.NDArray[np.int64] | None]:
    """Return the structure and factors (views) of W^T, and the permutation of its inputs (None: the identity).

    Inputs of the transpose of an interleaved Monarch matrix are outputs i b2 + k of W: in the order `block_order`
    they are those of a Monarch matrix whose outputs are not interleaved.
    """
    if isinstance(structure, LowRank):
        return LowRank(structure.cols, structure.rows, structure.rank), [factors[1].T, factors[0].T], None
    assert isinstance(structure, Monarch | Blast)
    sizes = structure.cols, structure.rows, structure.b2, structure.b1, structure.rank
    if isinstance(structure, Blast):
        left, scales, right = factors
        return Blast(*sizes), [right.swapaxes(1, 2), scales.swapaxes(1, 2), left.swapaxes(1, 2)], None
    left, right = factors
    first = right.swapaxes(1, 3)  # (b1, p, b2, r) of (b1, r, b2, p)
    second = left.swapaxes(1, 3)  # (b2, r, b1, q) of (b2, q, b1, r)
    order = structure.block_order if structure.interleaved else None
    return Monarch(*sizes), [first, second], order
