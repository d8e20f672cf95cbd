"""Structures of operands and results: what part of a matrix exists, or how it is factored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..schemes_db.grids import Kind

Matrix = npt.NDArray[Any]


@runtime_checkable
class Structure(Protocol):
    """What is known of a matrix beside its size. Implementations are frozen."""

    @property
    def name(self) -> str: ...

    def fraction(self, rows: int, cols: int) -> float:
        """The part of the elements of a rows x cols matrix that exists, 0 to 1."""

    def reason(self, rows: int, cols: int) -> str | None:
        """Why a rows x cols matrix cannot have this structure, or None."""

    def naive(self, matrix: Matrix) -> Matrix:
        """The matrix (..., rows, cols) with zeros where the structure has nothing."""


@dataclass(frozen=True)
class Dense:
    """Every element exists."""

    name: str = "dense"

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`."""
        return 1.0

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        return None

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`."""
        return matrix


@dataclass(frozen=True)
class Triangular:
    """The lower or upper triangle of a square matrix, diagonal included."""

    upper: bool = False

    @property
    def name(self) -> str:
        return "upper triangular" if self.upper else "lower triangular"

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`."""
        return (rows + 1) / (2 * rows) if rows else 0.0

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        return None if rows == cols else f"is triangular and must be square, but it is {rows} x {cols}"

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`."""
        return np.triu(matrix) if self.upper else np.tril(matrix)


@dataclass(frozen=True)
class BlockMask:
    """A grid of blocks of equal size (the last may be smaller), each full, triangular or absent.

    `kinds` are rows of `schemes_db.grids.Kind` as numbers.
    """

    kinds: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return f"mask of {len(self.kinds)} x {len(self.kinds[0])} blocks"

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`."""
        weight = {Kind.FULL: 1.0, Kind.ABSENT: 0.0, Kind.LOWER: 0.5, Kind.UPPER: 0.5}
        parts = [weight[Kind(kind)] for row in self.kinds for kind in row]
        return sum(parts) / len(parts)

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        p, q = len(self.kinds), len(self.kinds[0])
        if p > max(rows, 1) or q > max(cols, 1):
            return f"has a mask of {p} x {q} blocks, which does not fit {rows} x {cols}"
        return None

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`."""
        rows, cols = matrix.shape[-2:]
        height, width = -(-rows // len(self.kinds)), -(-cols // len(self.kinds[0]))
        kept = np.zeros((rows, cols), bool)
        for p, line in enumerate(self.kinds):
            for q, kind in enumerate(line):
                block = kept[p * height : (p + 1) * height, q * width : (q + 1) * width]
                block[...] = kind != Kind.ABSENT
                if kind == Kind.LOWER:
                    block[...] = np.tril(block)
                elif kind == Kind.UPPER:
                    block[...] = np.triu(block)
        return np.where(kept, matrix, np.zeros((), matrix.dtype))


DENSE = Dense()
