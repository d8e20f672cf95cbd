"""Structures of operands and results: the part of a matrix that exists, or its factorization."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..schemes_db.grids import Kind, present_entries
from .arrays import Matrix


@runtime_checkable
class Structure(Protocol):
    """Structural properties of a matrix besides its size. Implementations are frozen."""

    @property
    def name(self) -> str: ...

    def reason(self, rows: int, cols: int) -> str | None:
        """Return the reason why a rows x cols matrix cannot have this structure, or None."""

    def naive(self, matrix: Matrix) -> Matrix:
        """Return the matrix (..., rows, cols) with zeros at absent elements."""


class FactoredStructure(Structure, Protocol):
    """A structure whose operand is stored as the parameters of factors instead of its elements."""

    @property
    def rows(self) -> int: ...

    @property
    def cols(self) -> int: ...

    @property
    def parameters(self) -> int:
        """Number of parameters of all factors."""

    @property
    def factor_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the factors' parameters, in the written order."""

    def draw(self, rng: np.random.Generator, dtype: str) -> tuple[Matrix, ...]:
        """Return random parameters of every factor, in a dtype that numpy supports."""

    def multiply_wide(self, factors: Sequence[Matrix], x: Matrix) -> Matrix:
        """Compute the product with x (cols, n), both in float64 or complex128: the reference for other products."""


def is_factored(structure: Structure) -> TypeGuard[FactoredStructure]:
    """Return whether a structure's operand is stored by factors: one look, as every request and call asks."""
    return hasattr(type(structure), "factor_shapes")


@dataclass(frozen=True)
class Dense:
    """Every element exists."""

    name: str = "dense"

    def __reduce__(self) -> str:
        return "DENSE"  # compared by identity: a request that another process received has the same object

    def reason(self, rows: int, cols: int) -> str | None:
        return None

    def naive(self, matrix: Matrix) -> Matrix:
        return matrix


@dataclass(frozen=True)
class Triangular:
    """The lower or upper triangle of a square matrix, diagonal included; `shared`: of a C = A A^T."""

    upper: bool = False
    shared: bool = False

    @property
    def name(self) -> str:
        return "upper triangular" if self.upper else "lower triangular"

    def reason(self, rows: int, cols: int) -> str | None:
        return None if rows == cols else f"is triangular and must be square, but it is {rows} x {cols}"

    def naive(self, matrix: Matrix) -> Matrix:
        return np.triu(matrix) if self.upper else np.tril(matrix)


@dataclass(frozen=True)
class BlockMask:
    """A grid of blocks of equal size (the last may be smaller), each full, triangular or absent.

    `cells` has one byte per block, its `schemes_db.grids.Kind`, rows x cols of them: a block may be a single element.
    """

    cells: bytes
    rows: int
    cols: int

    @classmethod
    def of(cls, kinds: npt.NDArray[np.int8]) -> BlockMask:
        """Return the mask of an array of kinds."""
        return cls(np.ascontiguousarray(kinds, np.int8).tobytes(), *kinds.shape)

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        """The kinds (rows, cols), read-only."""
        return np.frombuffer(self.cells, np.int8).reshape(self.rows, self.cols)

    @property
    def name(self) -> str:
        digest = hashlib.sha256(self.cells).hexdigest()[:8]
        return f"mask {digest} of {self.rows} x {self.cols} blocks"

    def reason(self, rows: int, cols: int) -> str | None:
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
        return np.where(present_entries(self.kinds, *matrix.shape[-2:]), matrix, np.zeros((), matrix.dtype))


DENSE = Dense()
