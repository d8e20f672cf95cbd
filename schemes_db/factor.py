"""One factor of a scheme: for every product, a sparse integer combination of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

COEFFICIENT_LIMIT = 1 << 62
"""Numerators and denominators stay below this, so that one addition never overflows int64."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Coefficients (R, rows, cols) as integers over one common denominator, kept sparse by product.

    `values[indptr[r]:indptr[r+1]]` are the nonzero numerators of product r and `indices` their flat
    row-major block indices, increasing. All arrays are read-only int64.
    """

    rows: int
    cols: int
    indptr: IntArray
    indices: IntArray
    values: IntArray
    denominator: int = 1

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.values):
            array.setflags(write=False)

    @classmethod
    def from_dense(cls, array: npt.ArrayLike, denominator: int = 1) -> Factor:
        """The factor of a dense integer array (R, rows, cols)."""
        dense = np.asarray(array, dtype=np.int64)
        rank, rows, cols = dense.shape
        flat = dense.reshape(rank, rows * cols)
        product, indices = np.nonzero(flat)
        return cls.from_triplets(rank, rows, cols, product, indices, flat[product, indices], denominator)

    @classmethod
    def from_triplets(
        cls,
        rank: int,
        rows: int,
        cols: int,
        product: npt.NDArray[np.integer],
        indices: npt.NDArray[np.integer],
        values: npt.NDArray[np.integer],
        denominator: int = 1,
    ) -> Factor:
        """The factor of (product, flat index, value) triplets, each place at most once, in any order."""
        order = np.lexsort((indices, product))
        order = order[values[order] != 0]
        indptr = np.zeros(rank + 1, dtype=np.int64)
        np.cumsum(np.bincount(product[order], minlength=rank), out=indptr[1:])
        return cls(rows, cols, indptr, indices[order].astype(np.int64), values[order].astype(np.int64), denominator)

    @property
    def rank(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def blocks(self) -> int:
        return self.rows * self.cols

    @cached_property
    def product(self) -> IntArray:
        """The product that each nonzero belongs to, (nnz,)."""
        return np.repeat(np.arange(self.rank, dtype=np.int64), np.diff(self.indptr))

    @cached_property
    def dense(self) -> IntArray:
        """The numerators as a read-only array (R, rows, cols)."""
        flat = np.zeros((self.rank, self.blocks), dtype=np.int64)
        flat[self.product, self.indices] = self.values
        array: IntArray = flat.reshape(self.rank, self.rows, self.cols)
        array.setflags(write=False)
        return array

    def terms(self, r: int) -> list[tuple[int, int]]:
        """The (flat index, numerator) pairs of product r."""
        part = slice(self.indptr[r], self.indptr[r + 1])
        return list(zip(self.indices[part].tolist(), self.values[part].tolist(), strict=True))

    def relabelled(self, rows: int, cols: int, index_map: IntArray) -> Factor:
        """The factor on a grid (rows, cols) where block b of this one is block index_map[b]."""
        return Factor.from_triplets(
            self.rank, rows, cols, self.product, index_map[self.indices], self.values, self.denominator
        )

    def transposed(self) -> Factor:
        """The factor of the transposed grid."""
        moved = np.arange(self.blocks, dtype=np.int64).reshape(self.rows, self.cols).T
        return self.relabelled(self.cols, self.rows, np.argsort(moved.ravel()))

    def reversed(self) -> Factor:
        """The factor of the grid with both index orders reversed."""
        return self.relabelled(self.rows, self.cols, np.arange(self.blocks, dtype=np.int64)[::-1].copy())

    def reduced(self, modulus: int) -> Factor:
        """The factor with numerators in [0, modulus), which is prime to the denominator."""
        inverse = pow(self.denominator, -1, modulus)
        values = self.values % modulus * inverse % modulus
        return Factor.from_triplets(self.rank, self.rows, self.cols, self.product, self.indices, values)

    def tensor(self, inner: Factor) -> Factor:
        """The Kronecker product: product (r, s) of the result is product r * inner.rank + s."""
        left = np.repeat(np.arange(self.nnz), inner.nnz)
        right = np.tile(np.arange(inner.nnz), self.nnz)
        row_o, col_o = np.divmod(self.indices[left], self.cols)
        row_i, col_i = np.divmod(inner.indices[right], inner.cols)
        rows, cols = self.rows * inner.rows, self.cols * inner.cols
        indices = (row_o * inner.rows + row_i) * cols + col_o * inner.cols + col_i
        product = self.product[left] * inner.rank + inner.product[right]
        return Factor.from_triplets(
            self.rank * inner.rank,
            rows,
            cols,
            product,
            indices,
            self.values[left] * inner.values[right],
            self.denominator * inner.denominator,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Factor):
            return NotImplemented
        return (
            (self.rows, self.cols, self.denominator) == (other.rows, other.cols, other.denominator)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: compare by the scheme's digest
