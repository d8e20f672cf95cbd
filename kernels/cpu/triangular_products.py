"""Products with one triangular matrix: strips that cover the triangle, or two triangles and the square between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ...schemes_db.symmetry import Triangle
from ..arrays import Matrix, Sizes
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .blas import NUMPY, Backend
from .executor import StagedCore
from .leaf import Leaf
from .strips import check_triangle, has_nonzero_outside_triangle, outside, ranges, worked_fraction, zero_outside_strip
from .threads import parallel_tasks
from .workspace import Arena, aligned

ByColumns = tuple[bool, bool, bool]
Piece = tuple[Matrix, Matrix, Matrix]

BASE = 128
"""Largest number of rows of a triangle that is not halved. Measured, float32, one and two threads."""


@dataclass(frozen=True)
class HalfProduct:
    """A product with one triangular operand, or of which only one triangle is wanted; a `StagedCore`.

    A triangle of more than `base` rows is halved (None: never), any other is computed as `strips` GEMMs. The
    squares between halves are GEMMs too; if `dense` is given, it creates the cores of the squares in triangles of
    more than `dense_above` rows. A right triangle is computed as the left one of the transposed product.

    With `clean` nonzeros outside an operand's triangle are ignored, and the result is zero outside a wanted
    triangle. Without, as the leaf of a scheme, the diagonal strips of an operand must be zero outside the
    triangle, and outside a wanted one the result is undefined. With `shared` (never with `clean`),
    BLAS runs on the calling thread, and the threads passed to `run` share the strips.

    Raises:
        PlanError: the triangular matrix is not square.
    """

    triangle: Triangle
    sizes: Sizes
    dtype: str
    strips: int = 1
    base: int | None = None
    dense: Callable[[Sizes, str, ByColumns], StagedCore] | None = None
    dense_above: int = 0
    by_columns: ByColumns = (False, False, False)
    clean: bool = True
    blas: Backend = NUMPY
    shared: bool = False

    def __post_init__(self) -> None:
        check_triangle(self.triangle, self.sizes)

    @cached_property
    def _mirror(self) -> HalfProduct:
        """The transposed product of a right triangle: C^T = B^T A^T."""
        a, b, c = self.by_columns
        flipped = (not b, not a, not c)
        triangle = Triangle("left", not self.triangle.upper)
        return replace(self, triangle=triangle, sizes=self.sizes[::-1], by_columns=flipped)

    @cached_property
    def _parts(self) -> tuple[HalfProduct, StagedCore, HalfProduct] | None:
        """The first triangle, the square and the second triangle; None if it is not halved."""
        m, k, n = self.sizes
        half = m // 2
        if self.base is None or m <= self.base or half == 0:
            return None
        rest = m - half
        far, near = (half, rest) if self.triangle.upper else (rest, half)
        out = self.triangle.side == "out"
        full = (far, k, near) if out else (far, near, n)
        square: StagedCore = Leaf(full, self.dtype, self.blas)
        if self.dense is not None and m > self.dense_above:
            square = self.dense(full, self.dtype, self.by_columns)
        first, second = (replace(self, sizes=(size, k, size) if out else (size, size, n)) for size in (half, rest))
        return first, square, second

    @property
    def _sum_shape(self) -> tuple[int, int]:
        """The shape of the buffer for the square of a triangular operand, whose product is added to another one."""
        m, _, n = self.sizes
        return (0, n) if self.triangle.side == "out" else (m - m // 2, n)

    def workspace(self, threads: int = 1) -> int:
        if self.triangle.side == "right":
            return self._mirror.workspace(threads)
        if self._parts is not None:
            height, width = self._sum_shape
            return aligned(height * width * self._itemsize) + max(part.workspace(threads) for part in self._parts)
        if self.triangle.side == "out" or not self.clean:
            return 0
        size = self.sizes[1]
        return aligned(-(-size // self.strips) * size * self._itemsize)

    def compile(self) -> None:
        if self.triangle.side == "right":
            self._mirror.compile()
            return
        for part in self._parts or ():
            part.compile()

    @cached_property
    def flops(self) -> int:
        """Operations of the GEMMs, in real numbers; squares computed by `dense` count as classical products."""
        m, k, n = self.sizes
        if self.triangle.side == "right":
            return self._mirror.flops
        if self._parts is None:
            return int(2 * self._real * m * k * n * worked_fraction(m, self.strips))
        return self._parts[0].flops + self._parts[2].flops + 2 * self._real * k * n * (m // 2) * (m - m // 2) // m

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`: the squares of every size, then the remaining triangles."""
        if self.base is None:
            return [self._strip_stage(times)]
        if self.triangle.side == "right":
            return self._mirror.stages(times)
        if self._parts is None:
            return [self._strip_stage(times)]
        first, square, second = self._parts
        if isinstance(square, Leaf):
            m, k, n = self.sizes
            half, rest = m // 2, m - m // 2
            own = Leaf((rest, k, half) if self.triangle.side == "out" else (rest, half, n), self.dtype).stages(times)
        else:
            own = square.stages(times)
        if added := math.prod(self._sum_shape):
            own.append(Stage("adding halves", times * added, 3 * times * added * self._itemsize))
        both = first.stages(2 * times) if first.sizes == second.sizes else first.stages(times) + second.stages(times)
        return own + both

    def _strip_stage(self, times: int) -> Stage:
        m, k, n = self.sizes
        side = self.triangle.side
        strip = -(-(n if side == "right" else m) // self.strips)
        # The mean strip has half of the inner or of the outer size.
        mean = {"out": (strip, k, -(-n // 2)), "left": (strip, -(-k // 2), n), "right": (m, -(-k // 2), strip)}[side]
        moved = (m * k + k * n + m * n) * self._itemsize
        name = f"{times * self.strips} strips of {strip} of {m}x{k}x{n}"
        return Stage(name, times * self.flops, times * moved, product=mean)

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    @property
    def _real(self) -> int:
        """Number of real products in one product of two elements."""
        return dtype_of(self.dtype).parts ** 2

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        if self.triangle.side == "right":
            self._mirror.run(b.T, a.T, out.T, arena, threads)
        elif self._parts is not None:
            self._halves(self._parts, a, b, out, arena, threads)
        elif self.shared and threads > 1:
            pieces = list(self._pieces(a, b, out, arena))
            parallel_tasks(lambda i, _: self.blas.multiply(*pieces[i], self.dtype), len(pieces), threads)
        else:
            cleared = self.clean and self.triangle.side == "out"
            strips = ranges(len(out), self.strips)
            for strip, piece in zip(strips, self._pieces(a, b, out, arena), strict=True):
                self.blas.multiply(*piece, self.dtype)
                if cleared:
                    zero_outside_strip(out, *strip, self.triangle.upper)

    def _pieces(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena) -> Iterator[Piece]:
        """Yield the GEMMs of the strips; they write disjoint parts of `out`. A cleaned strip is reused by the next."""
        upper = self.triangle.upper
        for start, stop in ranges(len(out), self.strips):
            rows = slice(start, stop)
            reach = slice(start, None) if upper else slice(None, stop)
            if self.triangle.side == "out":
                yield a[rows], b[:, reach], out[rows, reach]
            else:
                diagonal = slice(None, stop - start) if upper else slice(start, stop)
                strip = a[rows, reach]
                yield self._cleaned(strip, diagonal, arena) if self.clean else strip, b[reach], out[rows]

    def _cleaned(self, strip: Matrix, diagonal: slice, arena: Arena) -> Matrix:
        """Return rows of a triangular operand: a view, or a zeroed copy if there are nonzeros outside the triangle."""
        upper = self.triangle.upper
        if not has_nonzero_outside_triangle(strip[:, diagonal], upper):
            return strip
        copy = arena.rest().array(strip.shape, strip.dtype)
        copy[...] = strip
        copy[:, diagonal][outside(len(strip), upper)] = 0
        return copy

    def _halves(
        self,
        parts: tuple[HalfProduct, StagedCore, HalfProduct],
        a: Matrix,
        b: Matrix,
        out: Matrix,
        arena: Arena,
        threads: int,
    ) -> None:
        (first, square, second), half = parts, len(out) // 2
        top, bottom = slice(None, half), slice(half, None)
        far, near = (top, bottom) if self.triangle.upper else (bottom, top)  # the square is [far, near]
        if self.triangle.side == "out":
            first.run(a[top], b[:, top], out[top, top], arena.rest(), threads)
            second.run(a[bottom], b[:, bottom], out[bottom, bottom], arena.rest(), threads)
            square.run(a[far], b[:, near], out[far, near], arena.rest(), threads)
            if self.clean:
                out[near, far] = 0
        else:
            first.run(a[top, top], b[top], out[top], arena.rest(), threads)
            second.run(a[bottom, bottom], b[bottom], out[bottom], arena.rest(), threads)
            added = self._buffer_like(out[far], arena)
            square.run(a[far, near], b[near], added, arena.rest(), threads)
            out[far] += added

    def _buffer_like(self, block: Matrix, arena: Arena) -> Matrix:
        """Return a buffer of the shape and layout of a block of the product."""
        if self.by_columns[2]:
            return arena.array(block.shape[::-1], block.dtype).T
        return arena.array(block.shape, block.dtype)
