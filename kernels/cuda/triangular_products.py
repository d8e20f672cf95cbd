"""Products with one triangular matrix on a GPU by the vendor's GEMM: a pair of matrices, or the batches of a level.

A pair is multiplied as a whole or by strips of rows, batches by strips limited to a factor's triangle or by squares.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...schemes_db.program import ProductKind
from ...schemes_db.symmetry import Triangle
from ..arrays import Tensor, torch
from ..ranges import ranges

HALF_STRIPS = 8
"""Number of strips of a product with a triangular factor: measured on an H200, float32 and float64, blocks of 2048."""

LONGEST = 1024
"""Maximum terms of a float32 sum if a factor is triangular. The vendor computes some of these products in such pieces
if they are whole: at 8192 x 8192 x 4096 the error of a scheme with longer sums is 3.4 times as large, with these 2.4.
"""

DIAGONAL = 128
"""Rows of the squares on the diagonal of a wanted triangle that are computed in full: measured like HALF_STRIPS."""


def empty_stacks(like: Tensor, items: int, rank: int, bk: int, bn: int) -> Tensor:
    """Allocate right factors (items, rank, bk, bn) of half products: those of an item side by side, row-major.

    Row-major, as the vendor's float64 product is 9 to 16% slower on an H200 if one factor is column-major.
    """
    return like.new_empty((items, bk, rank, bn)).transpose(1, 2)


def empty_products(like: Tensor, items: int, rank: int, bm: int, bn: int) -> Tensor:
    """Allocate half products (items, rank, bm, bn), each with one extra column: see `_triangles`."""
    pitch = bm * (bn + 1)
    whole = like.new_empty(items * rank * pitch)
    return whole.as_strided((items, rank, bm, bn), (rank * pitch, pitch, bn, 1))


def multiply(x: Tensor, y: Tensor, z: Tensor, kind: ProductKind, longest: int) -> None:
    """Compute z = x y for stacks (count, ...) of products of one kind, the inner size in pieces up to `longest`."""
    if not kind.half:
        _in_pieces(x, y, z, longest)
    elif kind.side == "out":
        _triangles(x, y, z, kind.of_upper)
    else:
        _strips(x, y, z, kind, longest)


def _in_pieces(x: Tensor, y: Tensor, z: Tensor, longest: int) -> None:
    count = -(-x.shape[2] // longest)
    for i, (start, stop) in enumerate(ranges(x.shape[2], count)):
        some = slice(start, stop)
        torch.baddbmm(z, x[:, :, some], y[:, some], beta=int(i > 0), out=z)


def _strips(x: Tensor, y: Tensor, z: Tensor, kind: ProductKind, longest: int) -> None:
    """Compute products with a triangular factor: each strip is limited to the triangle."""
    size = z.shape[2] if kind.side == "right" else z.shape[1]
    for first, last in ranges(size, HALF_STRIPS):
        some = slice(first, last)
        before, after = slice(None, last), slice(first, None)
        if kind.side == "left":
            inner = after if kind.of_upper else before
            _in_pieces(x[:, some, inner], y[:, inner], z[:, some], longest)
        else:
            inner = before if kind.of_upper else after
            _in_pieces(x[:, :, inner], y[:, inner, some], z[:, :, some], longest)


def _triangles(x: Tensor, y: Tensor, z: Tensor, upper: bool) -> None:
    """Compute one triangle of each x[i] y[i]: the squares beside the diagonal, one batched call per size.

    Blocks along the diagonal of a slab, continued along that of the next, are evenly spaced in the stacks of
    `empty_stacks` and `empty_products`.
    """
    for size, step in squares_of(z.shape[1]):
        beside = step > size
        _along(x, y, z, size, step, int(beside and not upper), int(beside and upper))


def squares_of(size: int) -> Iterator[tuple[int, int]]:
    """Yield the sides of the squares that cover a triangle, with the distance of two of them along the diagonal."""
    while size > DIAGONAL and size % 2 == 0:
        size //= 2
        yield size, 2 * size
    yield size, size


def _along(x: Tensor, y: Tensor, z: Tensor, size: int, step: int, row: int, col: int) -> None:
    """Compute all square blocks of this size at block (row, col) of every `step` rows and columns."""
    count, inner = len(x) * z.shape[1] // step, x.shape[2]

    def blocks(stack: Tensor, shape: tuple[int, int], apart: int, skipped: int) -> Tensor:
        strides = (step * apart, stack.stride(1), stack.stride(2))
        return stack.as_strided((count, *shape), strides, stack.storage_offset() + size * skipped)

    down, across = z.stride(1), z.stride(2)
    torch.bmm(
        blocks(x, (size, inner), x.stride(1), row * x.stride(1)),
        blocks(y, (inner, size), y.stride(2), col * y.stride(2)),
        out=blocks(z, (size, size), down + across, row * down + col * across),
    )


STRIP, MOST_STRIPS = 512, 16
"""Rows of a strip, and the maximum number of strips. Measured on an H200."""


def strips_of(rows: int) -> int:
    """Return the number of strips of a triangle of so many rows."""
    return max(1, min(rows // STRIP, MOST_STRIPS))


def vendor(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle) -> None:
    """Compute the whole product, masked before (a triangular factor) or afterwards (a masked result)."""
    if triangle.side == "out":
        torch.mm(a, b, out=out)
        zero_outside_triangle(out, triangle.upper)
    else:
        torch.mm(a.triu() if triangle.upper else a.tril(), b, out=out)


def strips(a: Tensor, b: Tensor, out: Tensor, triangle: Triangle, count: int) -> None:
    """Run one GEMM per strip of rows, written in place; the triangle is that of `a` (side "left") or of `out`."""
    upper = triangle.upper
    for start, stop in ranges(len(out), count):
        rows = slice(start, stop)
        reach = slice(start, None) if upper else slice(None, stop)
        diagonal = slice(None, stop - start) if upper else slice(start, stop)
        if triangle.side == "out":
            torch.mm(a[rows], b[:, reach], out=out[rows, reach])
            zero_outside_triangle(out[rows, reach][:, diagonal], upper)
            out[rows, slice(None, start) if upper else slice(stop, None)] = 0
        else:
            strip = a[rows, reach].clone()
            zero_outside_triangle(strip[:, diagonal], upper)
            torch.mm(strip, b[reach], out=out[rows])


def zero_outside_triangle(block: Tensor, upper: bool) -> None:
    """Zero the elements outside a triangle of a square block, in place; they may be NaN."""
    if block.stride(-1) == 1 or block.stride(-2) == 1:
        (block.triu_ if upper else block.tril_)()
    else:
        block.copy_(block.triu() if upper else block.tril())
