"""Grids of block kinds: which blocks of a matrix there are, and which of them are half."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Kind(IntEnum):
    """The kind of a block of A, B or C: absent, full, or one triangle of it (diagonal included)."""

    ABSENT = 0
    FULL = 1
    LOWER = 2
    UPPER = 3

    @property
    def half(self) -> bool:
        return self in (Kind.LOWER, Kind.UPPER)

    @property
    def mirrored(self) -> Kind:
        """The kind of the transposed block, which is also that of the block reversed in both indices."""
        return {Kind.LOWER: Kind.UPPER, Kind.UPPER: Kind.LOWER}.get(self, self)


Kinds = tuple[tuple[Kind, ...], ...]

LETTERS = {Kind.ABSENT: ".", Kind.FULL: "F", Kind.LOWER: "L", Kind.UPPER: "U"}
KINDS = {letter: kind for kind, letter in LETTERS.items()}


def full_grid(rows: int, cols: int) -> Kinds:
    """A grid of full blocks."""
    return ((Kind.FULL,) * cols,) * rows


def triangular_grid(size: int, upper: bool = False) -> Kinds:
    """A block triangular grid whose diagonal blocks are triangular themselves."""
    diagonal = Kind.UPPER if upper else Kind.LOWER

    def kind(i: int, j: int) -> Kind:
        if i == j:
            return diagonal
        return Kind.FULL if (j > i) == upper else Kind.ABSENT

    return tuple(tuple(kind(i, j) for j in range(size)) for i in range(size))


def mirrored_grid(grid: Kinds) -> Kinds:
    """The grid of the transposed matrix."""
    return tuple(tuple(kind.mirrored for kind in column) for column in zip(*grid, strict=True))


def reversed_grid(grid: Kinds) -> Kinds:
    """The grid of the matrix with both index orders reversed, inside the blocks too."""
    return tuple(tuple(kind.mirrored for kind in reversed(row)) for row in reversed(grid))


def tensor_grid(outer: Kinds, inner: Kinds) -> Kinds:
    """The grid with every present block cut by the grid `inner`."""
    return tuple(
        tuple(Kind.ABSENT if o is Kind.ABSENT else i for o in outer_row for i in inner_row)
        for outer_row in outer
        for inner_row in inner
    )


def cut_grid(outer: Kinds, rows: int, cols: int) -> Kinds:
    """The grid with every block cut into rows x cols; of a half block a triangle is left, half on its diagonal.

    Half blocks are cut into as many rows as columns.
    """

    def part(kind: Kind, i: int, j: int) -> Kind:
        if not kind.half or i == j:
            return kind
        return Kind.FULL if (i > j) is (kind is Kind.LOWER) else Kind.ABSENT

    return tuple(tuple(part(kind, i, j) for kind in row for j in range(cols)) for row in outer for i in range(rows))


def band_grid(size: int, width: int) -> Kinds:
    """Blocks at most `width` from the diagonal, all of them full: width 1 is block tridiagonal."""
    return tuple(tuple(Kind.FULL if abs(i - j) <= width else Kind.ABSENT for j in range(size)) for i in range(size))


def prefix_grid(size: int, prefix: int) -> Kinds:
    """Causal but for the first `prefix` block columns, which every row sees whole (PrefixLM)."""

    def kind(i: int, j: int) -> Kind:
        if j < prefix or j < i:
            return Kind.FULL
        return Kind.LOWER if i == j else Kind.ABSENT

    return tuple(tuple(kind(i, j) for j in range(size)) for i in range(size))


def window_grid(size: int, width: int) -> Kinds:
    """Sliding window: entries with 0 <= row - column <= width blocks' worth of entries.

    The diagonal blocks are lower triangles, those `width` below it upper ones.
    """

    def kind(i: int, j: int) -> Kind:
        return {0: Kind.LOWER, width: Kind.UPPER}.get(i - j, Kind.FULL if 0 < i - j < width else Kind.ABSENT)

    return tuple(tuple(kind(i, j) for j in range(size)) for i in range(size))


def present_entries(grid: npt.ArrayLike, rows: int, cols: int) -> npt.NDArray[np.bool_]:
    """The mask (rows, cols) of the entries in full blocks and stored triangles, for blocks of ceil(size / parts)."""
    kinds = np.asarray(grid)
    height, width = (max(1, -(-size // parts)) for size, parts in zip((rows, cols), kinds.shape, strict=True))
    i, j = np.arange(rows)[:, None], np.arange(cols)[None, :]
    kind, row, col = kinds[i // height, j // width], i % height, j % width
    lower, upper = (kind == Kind.LOWER) & (row >= col), (kind == Kind.UPPER) & (row <= col)
    mask: npt.NDArray[np.bool_] = (kind == Kind.FULL) | lower | upper
    return mask
