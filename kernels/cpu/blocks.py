"""The addresses, strides and shapes of a matrix's blocks, in the format that compiled maps take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schemes_db.grids import Kind
from ..arrays import Matrix
from .workspace import ALIGNMENT

IntArray = npt.NDArray[np.int64]


def leading_dimension(width: int, itemsize: int) -> int:
    """Return the row stride of our own blocks, in elements: whole cache lines, never a multiple of half a page.

    Rows whose distance is a multiple of (half) a page all map to the same few cache sets.
    """
    lines = -(-width * itemsize // ALIGNMENT)
    if lines * ALIGNMENT % 2048 == 0:
        lines += 1
    return lines * ALIGNMENT // itemsize


@dataclass(frozen=True)
class Blocks:
    """Blocks of one shape: a table (count, 5) of address, row stride in bytes, kind, rows and columns."""

    table: IntArray

    @classmethod
    def of(cls, addresses: Any, strides: Any, shapes: Any) -> Blocks:
        """Return blocks of these addresses (count,), strides (count,) or one of all, and (kind, rows, columns)."""
        table = np.empty((len(addresses), 5), np.int64)
        table[:, 0], table[:, 1], table[:, 2:] = addresses, strides, shapes
        return cls(table)

    def __len__(self) -> int:
        return len(self.table)

    def chosen(self, places: list[int]) -> Blocks:
        """Return some of these blocks, in this order."""
        return Blocks(self.table[places])

    def joined(self, places: list[int], other: Blocks, others: list[int]) -> Blocks:
        """Return some of these blocks, followed by some of another matrix."""
        return Blocks(np.concatenate([self.table[places], other.table[others]]))


def stack_blocks(stack: Matrix, width: int) -> Blocks:
    """Return the matrices of a stack (count, height, leading dimension) as full blocks of the given width."""
    count, height, _ = stack.shape
    addresses = stack.ctypes.data + np.arange(count, dtype=np.int64) * stack.strides[0]
    return Blocks.of(addresses, stack.strides[1], (Kind.FULL, height, width))
