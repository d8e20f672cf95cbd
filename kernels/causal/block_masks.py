"""Block masks: the kinds of their blocks, their runs, and the tiles of an element mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import KINDS, Kind, full_grid
from ...schemes_db.target import Target
from ..arrays import Array

Mask = npt.ArrayLike

Kinds = npt.NDArray[np.int8]
"""The kind of every block of a mask, as an integer."""

Cut = Callable[[Array, bool], None]
"""cut(block, upper): zeroes the elements outside the triangle of a square block, in place."""

TILE = 256
"""Rows and columns of the tiles in which an element mask is computed; tiles without wanted elements are skipped."""


def kinds_of(mask: Mask) -> Kinds:
    """Return the kind of every block, as an integer.

    Raises:
        PlanError: this is not a mask.
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


def block_sizes(kinds: Kinds, rows: int, cols: int) -> tuple[int, int]:
    """Return the height and width of the blocks of a matrix's mask; the last ones may be smaller."""
    return -(-rows // kinds.shape[0]), -(-cols // kinds.shape[1])


def scheme_reason(target: Target, kinds: Kinds) -> str | None:
    """Return the reason why a scheme for this target does not compute the blocks that a mask wants, or None."""
    wanted = tuple(tuple(Kind(kind) for kind in row) for row in kinds.tolist())
    m, k, n = target.shape
    if target.shared or (target.a, target.b, target.c) != (full_grid(m, k), full_grid(k, n), wanted):
        return f"the scheme is for {target}, not for this mask"
    return None


def coarse_mask(kinds: Kinds, down: int, across: int) -> Kinds:
    """Return a mask of tiles of `down` x `across` blocks: 1 if a tile has a wanted block, else 0."""
    rows = np.add.reduceat(kinds != Kind.ABSENT, range(0, kinds.shape[0], down), axis=0, dtype=np.int64)
    both = np.add.reduceat(rows, range(0, kinds.shape[1], across), axis=1)
    return (both > 0).astype(np.int8)


def block_runs(kinds: Kinds, height: int, width: int) -> Iterator[tuple[Kinds, slice, int, int, slice]]:
    """Yield the runs of wanted blocks, by rows: the row, its elements, the first and the last block, their elements."""
    for i, row in enumerate(kinds):
        edges = np.flatnonzero(np.diff(row != Kind.ABSENT, prepend=False, append=False)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            yield row, slice(i * height, (i + 1) * height), start, stop, slice(start * width, stop * width)


def multiply_runs(
    multiply: Callable[..., object], cut: Cut, a: Array, b: Array, out: Array, kinds: Kinds, height: int, width: int
) -> None:
    """Write the runs of a masked result, each by multiply(a, b, out=out); half blocks are cut afterwards."""
    for _, rows, _, _, cols in block_runs(kinds, height, width):
        if 0 not in out[rows, cols].shape:
            multiply(a[rows], b[:, cols], out=out[rows, cols])
    cut_halves(cut, out, kinds, height, width)


def cut_halves(cut: Cut, matrix: Array, kinds: Kinds, height: int, width: int) -> None:
    """Zero the elements outside the triangles of half blocks, in place."""
    for i, j in np.argwhere((kinds == Kind.LOWER) | (kinds == Kind.UPPER)):
        block = matrix[i * height : (i + 1) * height, j * width : (j + 1) * width]
        if 0 not in block.shape:
            cut(block, bool(kinds[i, j] == Kind.UPPER))
