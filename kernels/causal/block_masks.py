"""Masks of blocks: their letters, their runs, and the tiles of a mask of elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import KINDS, Kind, full_grid
from ...schemes_db.target import Target

Mask = npt.ArrayLike

TILE = 256
"""Rows and columns of the tiles that a mask of elements is computed in: tiles with nothing wanted are left out."""


def kinds_of(mask: Mask) -> npt.NDArray[np.int8]:
    """The kind of every block, as an integer.

    Raises:
        PlanError: this is no mask.
    """
    if isinstance(mask, (list, tuple)) and mask and all(isinstance(row, str) for row in mask):
        letters = KINDS | {"1": Kind.FULL, "0": Kind.ABSENT}
        rows = [[letters.get(letter) for letter in row] for row in mask]
        if len({len(row) for row in rows}) != 1 or any(kind is None for row in rows for kind in row):
            raise PlanError("a mask in letters must be rows of equal length of the characters 1, 0, F, L, U and .")
        return np.array(rows, np.int8)
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype != bool:
        raise PlanError(f"mask must be a 2-d boolean array or rows of letters, not {array.ndim}-d {array.dtype}")
    return array.astype(np.int8)


def block_sizes(kinds: npt.NDArray[np.int8], rows: int, cols: int) -> tuple[int, int]:
    """Height and width of the blocks of a mask of a matrix.

    Raises:
        PlanError: it has more blocks than the matrix rows or columns, or none.
    """
    p, q = kinds.shape
    if p > max(rows, 1) or q > max(cols, 1) or 0 in (p, q):
        raise PlanError(f"a mask of {p} x {q} blocks does not fit a matrix of {rows} x {cols}")
    return -(-rows // p), -(-cols // q)


def check_square(shape: tuple[int, ...]) -> None:
    """Raise PlanError unless a half block of this shape is square."""
    if shape[-2] != shape[-1]:
        raise PlanError(f"a triangular block of the mask must be square, but it is {tuple(shape)}")


def scheme_reason(target: Target, kinds: npt.NDArray[np.int8]) -> str | None:
    """Why a scheme for this target does not compute what a mask of the product wants, or None."""
    wanted = tuple(tuple(Kind(kind) for kind in row) for row in kinds.tolist())
    if target.c != wanted or target.a != full_grid(target.m, target.k) or target.b != full_grid(target.k, target.n):
        return f"the scheme is for {target}, not for this mask"
    return None


def coarse_mask(kinds: npt.NDArray[np.int8], down: int, across: int) -> npt.NDArray[np.int8]:
    """Which tiles of `down` x `across` blocks have anything wanted."""
    rows = np.add.reduceat(kinds != Kind.ABSENT, range(0, kinds.shape[0], down), axis=0, dtype=np.int64)
    both = np.add.reduceat(rows, range(0, kinds.shape[1], across), axis=1)
    return (both > 0).astype(np.int8)


def runs_of(wanted: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The ranges of adjacent wanted blocks of a row."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], wanted, [False])).astype(np.int8)))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
