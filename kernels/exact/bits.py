"""Matrices over GF(2), 64 elements per word."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...home import write_atomic
from ...schemes_db.masks import refuse_masks
from ..factor_files import readable

WORD = 64

LINE_WORDS = 8
"""Number of words in a cache line."""

Words = npt.NDArray[np.uint64]


def words_of(cols: int) -> int:
    """Return the number of words of a row of so many elements."""
    return -(-cols // WORD)


class BitMatrix:
    """A matrix (..., rows, cols) over GF(2) as words (..., rows, ceil(cols / 64)) of uint64.

    Element (i, j) is bit j % 64 of words[..., i, j // 64], bit 0 the least significant: the order of
    np.packbits(..., bitorder="little"). Bits beyond the last column are zero.

    Raises:
        PlanError: the number of words does not match the columns, or bits beyond the last column are set.
    """

    __slots__ = ("cols", "words")
    product: ClassVar[Callable[[BitMatrix, BitMatrix], BitMatrix] | None] = None
    """The implementation of `@`, set by `products.exact`, which plans products and imports this class."""

    __array_ufunc__ = None  # so that numpy leaves ^ and @ with an array to this class

    def __init__(self, words: Words, cols: int) -> None:
        need(INTEGER, cols=cols)
        refuse_masks(words=words)
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim < 2:
            raise PlanError("a bit matrix is made of an array of uint64 words with two or more dimensions")
        if cols < 0 or words.shape[-1] != words_of(cols):
            raise PlanError(f"{cols} columns take {words_of(max(cols, 0))} words a row, not {words.shape[-1]}")
        if cols % WORD and words.size and (words[..., -1] >> np.uint64(cols % WORD)).any():
            raise PlanError(f"bits beyond column {cols} are set; clear them")
        self.words, self.cols = words, cols

    @classmethod
    def zeros(cls, *shape: int) -> BitMatrix:
        """Return the zero matrix of a shape (..., rows, cols)."""
        if len(shape) < 2 or min(shape) < 0:
            raise PlanError(f"a bit matrix needs two or more sizes of at least 0, not {shape}")
        return cls(np.zeros((*shape[:-1], words_of(shape[-1])), np.uint64), shape[-1])

    @classmethod
    def random(cls, *shape: int, seed: int | np.random.Generator | None = None) -> BitMatrix:
        """Return a uniformly random matrix of a shape (..., rows, cols)."""
        found = cls.zeros(*shape)
        rng = np.random.default_rng(seed)
        words = rng.integers(0, 1 << 64, found.words.shape, dtype=np.uint64)
        if found.cols % WORD and words.size:
            words[..., -1] &= np.uint64((1 << found.cols % WORD) - 1)
        return cls(words, found.cols)

    @classmethod
    def from_array(cls, array: npt.ArrayLike) -> BitMatrix:
        """Convert an array (..., rows, cols) of bool, or of integers that are 0 or 1.

        Raises:
            PlanError: an entry is neither 0 nor 1, or the array is no matrix.
        """
        refuse_masks(array=array)
        array = np.asarray(array)
        if array.ndim < 2:
            raise PlanError(f"the array has {array.ndim} dimensions; reshape it to a matrix (at least 2)")
        if array.dtype.kind not in "biu":
            raise PlanError(f"a matrix over GF(2) is of bool or of integers 0 and 1, not of {array.dtype}")
        if array.dtype.kind != "b" and array.size and (array.min() < 0 or array.max() > 1):
            raise PlanError("an entry is neither 0 nor 1; reduce the array first: array & 1")
        cols = array.shape[-1]
        packed = np.packbits(array.astype(bool), axis=-1, bitorder="little")
        padded = np.zeros((*packed.shape[:-1], 8 * words_of(cols)), np.uint8)
        padded[..., : packed.shape[-1]] = packed
        return cls(_native(padded.view("<u8")), cols)

    def to_array(self, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
        """Return the elements as an array (..., rows, cols) of 0 and 1; bool if dtype is bool."""
        raw = np.ascontiguousarray(self.words).astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(raw, axis=-1, count=self.cols, bitorder="little").astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.words.shape[:-1], self.cols)

    @property
    def ndim(self) -> int:
        return self.words.ndim

    @property
    def nbytes(self) -> int:
        return self.words.nbytes

    @property
    def T(self) -> BitMatrix:  # noqa: N802  # numpy's name
        """Return the transpose of the last two dimensions, in new memory."""
        from .tables import transposed_words

        *batch, rows, _ = self.shape
        out = np.zeros((*batch, self.cols, words_of(rows)), np.uint64)
        for index in np.ndindex(*batch):
            transposed_words(np.ascontiguousarray(self.words[index]), out[index])
        return BitMatrix(out, rows)

    def copy(self) -> BitMatrix:
        return BitMatrix(self.words.copy(), self.cols)

    def __getitem__(self, key: Any) -> BitMatrix:
        """Return a part by slices and integers; the last two dimensions remain, so they are indexed by slices only.

        Columns are copied unless they start at a multiple of 64 and end at one or at the last column.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if Ellipsis in keys:
            place = keys.index(Ellipsis)
            keys = keys[:place] + (slice(None),) * (self.ndim - len(keys) + 1) + keys[place + 1 :]
        keys += (slice(None),) * (self.ndim - len(keys))
        if len(keys) != self.ndim or not all(isinstance(one, slice) for one in keys[-2:]):
            raise PlanError("rows and columns of a bit matrix are taken by slices; write [i:i+1] for one of them")
        start, stop, step = keys[-1].indices(self.cols)
        words = self.words[keys[:-1]]
        if step != 1:
            return BitMatrix.from_array(BitMatrix(words, self.cols).to_array()[..., keys[-1]])
        return _columns(words, start, max(start, stop), self.cols)

    def __xor__(self, other: object) -> BitMatrix:
        """Return the sum."""
        if not isinstance(other, BitMatrix):
            return NotImplemented
        if self.cols != other.cols:
            raise PlanError(f"sizes differ: {self.shape} and {other.shape}")
        try:
            return BitMatrix(self.words ^ other.words, self.cols)
        except ValueError:
            raise PlanError(f"sizes differ: {self.shape} and {other.shape}") from None

    __add__ = __sub__ = __xor__

    def __matmul__(self, other: object) -> BitMatrix:
        """Return the product."""
        if not isinstance(other, BitMatrix) or BitMatrix.product is None:
            return NotImplemented
        return BitMatrix.product(self, other)

    def __eq__(self, other: object) -> bool:
        """Return whether the shapes and all elements are equal."""
        return isinstance(other, BitMatrix) and self.shape == other.shape and bool((self.words == other.words).all())

    __hash__ = None  # type: ignore[assignment]  # mutable, like an array

    def __repr__(self) -> str:
        return f"<{' x '.join(map(str, self.shape))} over GF(2)>"

    def save(self, path: str | Path) -> None:
        """Write words, number of columns and bit order to a .npz file, atomically."""
        buffer = io.BytesIO()
        words = np.ascontiguousarray(self.words).astype("<u8", copy=False)
        np.savez(buffer, words=words, cols=np.int64(self.cols), bitorder=np.array("little"))
        write_atomic(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> BitMatrix:
        """Read a file written by `save`.

        Raises:
            SchemeFormatError: the file contains no bit matrix, or cannot be read.
        """
        with readable(path, "is not a bit matrix"), open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            if str(file["bitorder"]) != "little":
                raise PlanError(f"its bit order is {file['bitorder']}, not little")
            words, cols = file["words"], int(file["cols"])
            if words.dtype != np.dtype("<u8"):
                raise PlanError(f"its words are {words.dtype}, not uint64")
            return cls(_native(words), cols)


def _native(words: npt.NDArray[Any]) -> Words:
    return words if sys.byteorder == "little" else words.astype(np.uint64)


def _columns(words: Words, start: int, stop: int, cols: int) -> BitMatrix:
    """Return columns start <= j < stop, shifted to the first word."""
    width, first, shift = stop - start, start // WORD, start % WORD
    count = words_of(width)
    if shift == 0 and (width % WORD == 0 or stop == cols):
        return BitMatrix(words[..., first : first + count], width)
    found = np.zeros((*words.shape[:-1], count), np.uint64)
    here = words[..., first : first + count]
    found[..., : here.shape[-1]] = here >> np.uint64(shift)
    if shift:
        following = words[..., first + 1 : first + 1 + count]
        found[..., : following.shape[-1]] |= following << np.uint64(WORD - shift)
    if width % WORD and count:
        found[..., -1] &= np.uint64((1 << width % WORD) - 1)
    return BitMatrix(found, width)
