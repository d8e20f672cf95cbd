"""The division of matrices for a program: blocks, stacks, pieces, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...schemes_db.symmetry import triangle_of
from ...schemes_db.target import Target
from ..request import Request

SEGMENT = 16
"""Bytes that every row of a stack is a multiple of, as cuBLAS's tensor core kernels require, and every row that our
kernel of int8 reads: threads read whole segments."""

LINE = 128
"""Bytes of a memory transaction."""

MOST_ADDED = 1 / 64
"""k of a block is rounded up to whole lines if that adds at most this fraction of it.

Batched products of 1423 plans on an H200 (`lcma bench gpu --rows 'choice*'`), over their price without a term for the
alignment of k, medians: blocks whose k is a multiple of 16 bytes and no more took 1.04 to 1.05 (tf32 1.26) times as
long as those of whole lines, of 32 bytes 1.01 (tf32 1.12). By these no block loses more than 1%; with 1/32 strict
float32 would lose up to 2% where k is a multiple of 32 bytes already.
"""

TRIANGULAR = 32
"""Elements that the sides of blocks of a triangular product are multiples of."""

MAX_PIECES = 64
"""Maximum number of pieces that a product is divided into to save memory."""


def blocks_of(sizes: tuple[int, int, int], itemsize: int, target: Target) -> tuple[int, int, int]:
    """Return the sizes (m, k, n) of a block of A, B and C: those of the grid, rounded up as in `block_sizes`.

    Blocks of triangular products are recursively halved, so that they are multiples of TRIANGULAR
    elements. If a mask has absent blocks the sizes determine their positions, so nothing is added.
    """
    if target.is_general:
        return block_sizes(sizes, target.shape, itemsize)
    unit = TRIANGULAR if triangle_of(target) else 1
    m, k, n = (-(-size // (parts * unit)) * unit for size, parts in zip(sizes, target.shape, strict=True))
    return m, k, n


def batch_pieces(items: int, m: int, itemsize: int, target: Target, count: int) -> Iterator[tuple[slice, slice]]:
    """Yield about `count` pieces of a batch, as a range of its matrices and one of their m rows.

    They are groups of whole matrices, or ranges of rows if there are too few matrices.
    """
    group = -(-items // min(count, items))
    per_item = max(1, count // items)
    unit = target.m * (SEGMENT // itemsize)
    rows = -(-m // (per_item * unit)) * unit if per_item > 1 and target.is_general else m
    for first in range(0, items, group):
        for top in range(0, m, rows):
            yield slice(first, min(first + group, items)), slice(top, min(top + rows, m))


def stack_bytes(request: Request, target: Target, rank: int, pieces: int = 1) -> int:
    """Return the bytes of A~, B~ and H together, with a slab for each product; shared matrices count once."""
    item = request.itemsize
    items, rows = (part.stop for part in next(batch_pieces(request.items, request.m, item, target, pieces)))
    bm, bk, bn = blocks_of((rows, request.k, request.n), item, target)
    lefts, rights = min(request.items_a, items) * bm * bk, min(request.items_b, items) * bk * bn
    return rank * (lefts + rights + items * bm * bn) * item


def pieces_within(request: Request, target: Target, rank: int, limit: int | None) -> int | None:
    """Return the least number of pieces (a power of two) with stacks within `limit` bytes; else None."""
    counts = (1 << power for power in range(MAX_PIECES.bit_length()))
    return next((one for one in counts if limit is None or stack_bytes(request, target, rank, one) <= limit), None)


def block_sizes(sizes: tuple[int, int, int], grid: tuple[Any, Any, Any], itemsize: int) -> tuple[Any, Any, Any]:
    """Return the sizes (m, k, n) of a block of a general product; numbers, or arrays if the grid is of arrays.

    Each is rounded up to whole segments, then k to whole lines if that adds at most MOST_ADDED of it. k stays at whole
    segments if the grid has one part along it, since it is then that of the operands.
    """
    unit = SEGMENT // itemsize
    m, k, n = (-(-size // (parts * unit)) * unit for size, parts in zip(sizes, grid, strict=True))
    added = -k % (LINE // itemsize)
    return m, k + added * ((added <= MOST_ADDED * k) & (grid[1] > 1)), n
