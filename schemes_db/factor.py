"""One factor of a scheme: for every product, a sparse integer combination of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ..errors import SchemeFormatError, TargetError
from .display import line
from .gaussian import Gaussian

IntArray = npt.NDArray[np.int64]

COEFFICIENT_LIMIT = 1 << 62
"""Numerators and denominators of int64 factors stay below this, so that one addition never overflows."""

_fraction = lru_cache(maxsize=1024)(Fraction)
"""A fraction in lowest terms; a scheme has few different ones."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Coefficients (R, rows, cols) as integers over one common denominator, kept sparse by product.

    `values[indptr[r]:indptr[r+1]]` are the nonzero numerators of product r and `indices` their flat
    row-major block indices, increasing. Over Q(i) `values` has a trailing axis of length 2, the
    real and the imaginary part. All arrays are read-only and int64, except that `values` is of Python
    integers (dtype object) where a numerator or the denominator exceeds COEFFICIENT_LIMIT (`large`).
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
        """The factor of a dense integer array (R, rows, cols), or (R, rows, cols, 2) over Q(i)."""
        dense = np.asarray(array)
        rank, rows, cols = dense.shape[:3]
        flat = dense.reshape(rank, rows * cols, *dense.shape[3:])
        product, indices = np.nonzero(flat if flat.ndim == 2 else flat.any(axis=2))
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
        """The factor of (product, flat index, value) triplets, each place at most once, in any order.

        `values` is (T,), or (T, 2) over Q(i); a factor whose imaginary parts all vanish is kept real.
        """
        if values.ndim == 2 and not values[:, 1].any():
            values = values[:, 0]
        order = _order(product, indices, rows * cols)
        present = values[order] != 0
        order = order[present if values.ndim == 1 else present.any(axis=1)]
        indptr = np.zeros(rank + 1, dtype=np.int64)
        np.cumsum(np.bincount(product[order], minlength=rank), out=indptr[1:])
        numerators = values[order]
        if numerators.dtype != object:
            if numerators.dtype.kind == "u" and int(numerators.max(initial=0)) >= COEFFICIENT_LIMIT:
                raise SchemeFormatError("a coefficient is beyond +-2^62")
            numerators = numerators.astype(np.int64)
        return cls(rows, cols, indptr, indices[order].astype(np.int64), numerators, denominator)

    def __repr__(self) -> str:
        over = f" over {self.denominator}" if self.denominator != 1 else ""
        return line(f"factor {self.rank} x {self.rows} x {self.cols}, {len(self.values)} nonzeros{over}")

    @property
    def rank(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def peak(self) -> int:
        """The largest magnitude of a numerator, as a Python integer: that of the least int64 overflows."""
        return max(int(self.values.max()), -int(self.values.min())) if self.values.size else 0

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def blocks(self) -> int:
        return self.rows * self.cols

    @property
    def gaussian(self) -> bool:
        """True if some coefficient has an imaginary part."""
        return self.values.ndim == 2

    @property
    def large(self) -> bool:
        """True if the numerators are Python integers, because int64 does not hold the factor."""
        return self.values.dtype == object

    @cached_property
    def product(self) -> IntArray:
        """The product that each nonzero belongs to, (nnz,)."""
        return np.repeat(np.arange(self.rank, dtype=np.int64), np.diff(self.indptr))

    @cached_property
    def dense(self) -> IntArray:
        """The numerators as a read-only array (R, rows, cols), or (R, rows, cols, 2) if Gaussian."""
        trailing = self.values.shape[1:]
        flat = np.zeros((self.rank, self.blocks, *trailing), dtype=np.int64)
        flat[self.product, self.indices] = self.values
        array: IntArray = flat.reshape(self.rank, self.rows, self.cols, *trailing)
        array.setflags(write=False)
        return array

    def terms(self, r: int) -> list[tuple[int, int]]:
        """The (flat index, numerator) pairs of product r of a real factor."""
        part = slice(self.indptr[r], self.indptr[r + 1])
        return list(zip(self.indices[part].tolist(), self.values[part].tolist(), strict=True))

    def coefficients(self, r: int) -> list[tuple[int, Fraction | Gaussian]]:
        """The (flat index, coefficient) pairs of product r, divided by the denominator."""
        if not self.gaussian:
            return [(index, _fraction(value, self.denominator)) for index, value in self.terms(r)]
        part = slice(self.indptr[r], self.indptr[r + 1])
        return [
            (index, Gaussian(_fraction(real, self.denominator), _fraction(imag, self.denominator)))
            for index, (real, imag) in zip(self.indices[part].tolist(), self.values[part].tolist(), strict=True)
        ]

    def relabelled(self, rows: int, cols: int, index_map: IntArray) -> Factor:
        """The factor on a grid (rows, cols) where block b of this one is block index_map[b]."""
        return Factor.from_triplets(
            self.rank, rows, cols, self.product, index_map[self.indices], self.values, self.denominator
        )

    def placed(self, rows: int, cols: int, row: int = 0, col: int = 0) -> Factor:
        """The factor on a larger grid, its first block at (row, col)."""
        i, j = np.divmod(np.arange(self.blocks, dtype=np.int64), self.cols)
        return self.relabelled(rows, cols, (i + row) * cols + j + col)

    def restricted(self, rows: IntArray, cols: IntArray) -> Factor:
        """The factor on some rows and columns of its grid, which are numbered anew.

        `rows` (rows,) and `cols` (cols,) have the new numbers from 0, and -1 for lines that are left out.
        """
        i, j = np.divmod(self.indices, self.cols)
        inside = (rows[i] >= 0) & (cols[j] >= 0)
        width = int(cols.max()) + 1
        return Factor.from_triplets(
            self.rank,
            int(rows.max()) + 1,
            width,
            self.product[inside],
            rows[i[inside]] * width + cols[j[inside]],
            self.values[inside],
            self.denominator,
        )

    def stacked(self, other: Factor) -> Factor:
        """The products of this factor, then those of another on the same grid, over their common denominator."""
        denominator = math.lcm(self.denominator, other.denominator)
        scales = [denominator // factor.denominator for factor in (self, other)]
        peak = max(denominator, *(factor.peak * scale for factor, scale in zip((self, other), scales, strict=True)))
        kind = np.int64 if peak < COEFFICIENT_LIMIT else object  # see `large`
        values = [factor.values.astype(kind) * scale for factor, scale in zip((self, other), scales, strict=True)]
        if len({array.ndim for array in values}) == 2:
            values = [array if array.ndim == 2 else np.stack([array, 0 * array], axis=1) for array in values]
        return Factor.from_triplets(
            self.rank + other.rank,
            self.rows,
            self.cols,
            np.concatenate([self.product, other.product + self.rank]),
            np.concatenate([self.indices, other.indices]),
            np.concatenate(values),
            denominator,
        )

    def selected(self, products: npt.NDArray[np.bool_]) -> Factor:
        """The factor of some of the products, which `products` (R,) names."""
        place = np.cumsum(products) - 1
        mine = products[self.product]
        return Factor.from_triplets(
            int(products.sum()),
            self.rows,
            self.cols,
            place[self.product[mine]],
            self.indices[mine],
            self.values[mine],
            self.denominator,
        )

    def transposed(self) -> Factor:
        """The factor of the transposed grid."""
        moved = np.arange(self.blocks, dtype=np.int64).reshape(self.rows, self.cols).T
        return self.relabelled(self.cols, self.rows, np.argsort(moved.ravel()))

    def reversed(self) -> Factor:
        """The factor of the grid with both index orders reversed."""
        return self.relabelled(self.rows, self.cols, np.arange(self.blocks, dtype=np.int64)[::-1].copy())

    def reduced(self, modulus: int, root: int = 0) -> Factor:
        """The factor with numerators in [0, modulus), below 2^31 and prime to the denominator.

        `root` is what i becomes: a square root of -1 modulo the modulus, for a Gaussian factor.
        """
        inverse = pow(self.denominator, -1, modulus)
        values = (self.values % modulus).astype(np.int64)
        if self.gaussian:
            values = (values[:, 0] + values[:, 1] * root) % modulus
        values = values * inverse % modulus
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
            _multiplied(self.values[left], inner.values[right]),
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


def _multiplied(x: IntArray, y: IntArray) -> IntArray:
    """Products of numerators, place by place, of which any may be Gaussian."""
    if x.ndim == y.ndim:
        if x.ndim == 1:
            return x * y
        real, imag = x[:, 0] * y[:, 0] - x[:, 1] * y[:, 1], x[:, 0] * y[:, 1] + x[:, 1] * y[:, 0]
        return np.stack([real, imag], axis=1)
    wide, narrow = (x, y) if x.ndim > y.ndim else (y, x)
    return wide * narrow[:, None]


def _order(product: npt.NDArray[np.integer], indices: npt.NDArray[np.integer], blocks: int) -> IntArray:
    """The order of places by product, then by index; most files have them so."""
    keys = product.astype(np.int64) * blocks + indices
    return np.arange(len(keys)) if (np.diff(keys) > 0).all() else np.argsort(keys, kind="stable")


def integer_array(numerators: Sequence[int], denominator: int = 1) -> IntArray:
    """Integers as int64, or as Python integers (dtype object) where one or the denominator exceeds the limit."""
    limit = COEFFICIENT_LIMIT
    if denominator < limit and -limit < min(numerators, default=0) and max(numerators, default=0) < limit:
        return np.array(numerators, dtype=np.int64)
    array = np.empty(len(numerators), dtype=object)
    array[:] = numerators
    return array


def refuse_large(outer: Factor, inner: Factor) -> None:
    """Refuse two factors whose tensor product int64 may not hold.

    Raises:
        TargetError: coefficients beyond 2^62.
    """
    if 2 * _peak(outer) * _peak(inner) >= COEFFICIENT_LIMIT:
        raise TargetError("the tensor product has coefficients beyond 2^62")


def _peak(factor: Factor) -> int:
    return max(factor.peak, factor.denominator)
