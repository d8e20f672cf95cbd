"""A B where a mask wants it, zero elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import CatalogError, PlanError
from ...schemes_db.grids import KINDS, Kind, Kinds, full_grid
from ...schemes_db.target import MAX_DIMENSION, Target
from ..api import SchemeLike, matmul
from ..cpu.strips import zero_outside_triangle
from ..request import Request
from .arrays import Array, on_device, through_numpy
from .choose import SMALL

Matrix = npt.NDArray[Any]
Mask = npt.ArrayLike

TILE = 256
"""Rows and columns of the tiles that a mask of elements is worked in: tiles that it wants nothing of are left out."""

LEAST_BLOCK = 512
"""Blocks with a smaller side are not worth a scheme's sums."""


def masked_matmul(a: Array, b: Array, mask: Mask, *, scheme: SchemeLike | None = None) -> Array:
    """A B where the mask wants it, zero elsewhere.

    a (..., M, K), b (..., K, N). `mask` is a boolean array (p, q) of blocks, ceil(M / p) high and
    ceil(N / q) wide, so that (M, N) is a mask of elements; or p texts of q letters: F or 1 full,
    L lower triangle, U upper triangle, 0 or . absent. Rows without anything wanted are zero.
    `scheme`: one for this mask. Without, one from the catalogue is used where it saves a tenth of
    the products of large blocks; else what is wanted of a row of blocks is one GEMM a run.

    Raises:
        PlanError: the operands do not fit each other or the mask, or the scheme is for another mask.
    """
    kinds = _kinds(mask)
    if on_device(a, b):
        raise PlanError("masked products are worked on the processor; move the operands there with .cpu()")
    return through_numpy(lambda x, y: _work(x, y, kinds, scheme), a, b)


def _kinds(mask: Mask) -> npt.NDArray[np.int8]:
    """The kinds of all blocks."""
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


def _work(a: Matrix, b: Matrix, kinds: npt.NDArray[np.int8], scheme: SchemeLike | None) -> Matrix:
    request = Request.of(a, b)
    (p, q), (m, n) = kinds.shape, (request.m, request.n)
    if p > max(m, 1) or q > max(n, 1) or 0 in (p, q):
        raise PlanError(f"a mask of {p} x {q} blocks does not fit a product of {m} x {n}")
    height, width = -(-m // p), -(-n // q)
    if scheme is None and min(height, width) >= LEAST_BLOCK and m * request.k * n >= SMALL:
        scheme = _kept_scheme(kinds)
    if scheme is not None:
        found = _scheme_target(scheme)
        wanted = tuple(tuple(Kind(kind) for kind in row) for row in kinds.tolist())
        if found.c != wanted or found.a != full_grid(found.m, found.k) or found.b != full_grid(found.k, found.n):
            raise PlanError(f"the scheme is for {found}, not for this mask")
        return matmul(a, b, scheme)
    out = np.zeros((*request.batch, m, n), a.dtype)
    if (p, q) == (m, n) and max(p, q) > TILE:
        coarse = _coarse(kinds, TILE)
        for index in np.ndindex(request.batch):
            _runs(_one(a, index, request), _one(b, index, request), out[index], coarse, TILE, TILE)
        out[..., kinds == Kind.ABSENT] = 0
    else:
        for index in np.ndindex(request.batch):
            _runs(_one(a, index, request), _one(b, index, request), out[index], kinds, height, width)
    return out


def _one(matrix: Matrix, index: tuple[int, ...], request: Request) -> Matrix:
    return np.broadcast_to(matrix, (*request.batch, *matrix.shape[-2:]))[index]


def _coarse(kinds: npt.NDArray[np.int8], tile: int) -> npt.NDArray[np.int8]:
    """Which tiles of a mask of elements have anything wanted."""
    rows = np.add.reduceat(kinds != Kind.ABSENT, range(0, kinds.shape[0], tile), axis=0, dtype=np.int64)
    both = np.add.reduceat(rows, range(0, kinds.shape[1], tile), axis=1)
    return (both > 0).astype(np.int8)


def _runs(a: Matrix, b: Matrix, out: Matrix, kinds: npt.NDArray[np.int8], height: int, width: int) -> None:
    """Each run of wanted blocks of a row of blocks as one GEMM; half blocks are cut afterwards."""
    for i, row in enumerate(kinds):
        rows = slice(i * height, (i + 1) * height)
        for start, stop in _stretches(row != Kind.ABSENT):
            cols = slice(start * width, stop * width)
            if out[rows, cols].size:
                np.matmul(a[rows], b[:, cols], out=out[rows, cols])
        for j in np.flatnonzero((row == Kind.LOWER) | (row == Kind.UPPER)):
            block = out[rows, j * width : (j + 1) * width]
            if block.shape[0] != block.shape[1]:
                raise PlanError(f"a triangular block of the mask must be square, but it is {block.shape}")
            zero_outside_triangle(block, row[j] == Kind.UPPER)


def _stretches(wanted: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], wanted, [False])).astype(np.int8)))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _scheme_target(scheme: SchemeLike) -> Target:
    if isinstance(scheme, str):
        from ...schemes_db.library import resolve

        return resolve(scheme)[0].target
    return (scheme[0] if isinstance(scheme, tuple) else scheme).target


def _kept_scheme(kinds: npt.NDArray[np.int8]) -> SchemeLike | None:
    """The catalogue's cheapest scheme for the mask on a square grid, if it saves a tenth of the products."""
    from ...schemes_db.library import resolve

    p, q = kinds.shape
    if max(p, q) > min(MAX_DIMENSION, 16):
        return None
    grid: Kinds = tuple(tuple(Kind(kind) for kind in row) for row in kinds.tolist())
    target = Target(p, p, q, full_grid(p, p), full_grid(p, q), grid)
    if target.is_general:
        return None
    try:
        scheme, certificate = resolve(target.name)
    except CatalogError:
        return None
    present = int((kinds != Kind.ABSENT).sum()) * p
    return (scheme, certificate) if scheme.rank <= math.floor(0.9 * present) else None
