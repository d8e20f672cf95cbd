"""Triangular products by the vendor's GEMM on one pair of matrices: the whole, or strips of rows."""

from __future__ import annotations

from ...schemes_db.symmetry import Triangle
from ..arrays import Tensor, torch
from ..ranges import ranges

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
