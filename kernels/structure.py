"""Structures of operands and results: what part of a matrix exists, or how it is factored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

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


@runtime_checkable
class FactoredStructure(Structure, Protocol):
    """A structure whose operand is stored by the parameters of factors in place of its elements."""

    @property
    def rows(self) -> int: ...

    @property
    def cols(self) -> int: ...

    @property
    def parameters(self) -> int:
        """Parameters of all factors."""

    @property
    def factor_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the factors' parameters, in the written order."""

    def draw(self, rng: np.random.Generator, dtype: str) -> tuple[Matrix, ...]:
        """Random parameters of every factor, in a dtype that numpy knows."""

    def multiply_wide(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """The product with x (cols, n), both in float64 or complex128: the truth that others are compared with."""


def is_factored(structure: Structure) -> TypeGuard[FactoredStructure]:
    """Whether a structure's operand is stored by factors.

    Looking a protocol's members up takes longer than a small product, so that the answer is kept by class.
    """
    kind = type(structure)
    if kind not in _factored:
        _factored[kind] = isinstance(structure, FactoredStructure)
    return _factored[kind]


_factored: dict[type, bool] = {}


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

    `cells` holds a `schemes_db.grids.Kind` a block, one byte each, rows x cols of them: a mask may be of elements.
    """

    cells: bytes
    rows: int
    cols: int

    @classmethod
    def of(cls, kinds: npt.NDArray[np.int8]) -> BlockMask:
        """The mask of an array of kinds."""
        return cls(np.ascontiguousarray(kinds, np.int8).tobytes(), *kinds.shape)

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        """The kinds (rows, cols), read-only."""
        return np.frombuffer(self.cells, np.int8).reshape(self.rows, self.cols)

    @property
    def name(self) -> str:
        digest = hashlib.sha256(self.cells).hexdigest()[:8]
        return f"mask {digest} of {self.rows} x {self.cols} blocks"

    def fraction(self, rows: int, cols: int) -> float:
        """See `Structure`."""
        kinds = self.kinds
        half = int(((kinds == Kind.LOWER) | (kinds == Kind.UPPER)).sum())
        return (int((kinds == Kind.FULL).sum()) + half / 2) / max(kinds.size, 1)

    def reason(self, rows: int, cols: int) -> str | None:
        """See `Structure`."""
        if self.rows > max(rows, 1) or self.cols > max(cols, 1) or 0 in (self.rows, self.cols):
            return f"has a mask of {self.rows} x {self.cols} blocks, which does not fit {rows} x {cols}"
        kinds = self.kinds
        height, width = -(-rows // self.rows), -(-cols // self.cols)
        for i, j in np.argwhere((kinds == Kind.LOWER) | (kinds == Kind.UPPER)).tolist():
            block = max(0, min(height, rows - i * height)), max(0, min(width, cols - j * width))
            if 0 not in block and block[0] != block[1]:
                return f"has a triangular block in its mask, which must be square, but it is {block[0]} x {block[1]}"
        return None

    def naive(self, matrix: Matrix) -> Matrix:
        """See `Structure`."""
        rows, cols = matrix.shape[-2:]
        height, width = -(-rows // self.rows), -(-cols // self.cols)
        i, j = np.arange(rows)[:, None], np.arange(cols)[None, :]
        kind = self.kinds[i // height, j // width]
        row, col = i % height, j % width
        kept = (kind == Kind.FULL) | ((kind == Kind.LOWER) & (row >= col)) | ((kind == Kind.UPPER) & (row <= col))
        return np.where(kept, matrix, np.zeros((), matrix.dtype))


DENSE = Dense()
