"""Triangular products by halves: two triangles of half the size and the full product between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy.typing as npt

from ...schemes_db.program import Program
from ...schemes_db.symmetry import Triangle
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .executor import Core
from .leaf import Leaf
from .level import Level
from .strips import Sizes, Strips, check_triangle
from .workspace import Arena, aligned

Matrix = npt.NDArray[Any]
ByColumns = tuple[bool, bool, bool]

BASE = 128
"""Rows of a triangle that is not halved any more. Measured, float32, one and two threads."""


@dataclass(frozen=True)
class Halving:
    """A triangular product worked by halves down to `base` rows; a `Core`.

    `dense`: the program for the full products of triangles of more than `dense_above` rows; the
    others are GEMMs. `tidy` as in `Strips`. A right triangle is worked as the left one of the
    transposed product.
    """

    triangle: Triangle
    sizes: Sizes
    dtype: str
    base: int = BASE
    dense: Program | None = None
    dense_above: int = 0
    by_columns: ByColumns = (False, False, False)
    tidy: bool = True

    def __post_init__(self) -> None:
        check_triangle(self.triangle, self.sizes)

    @cached_property
    def _mirror(self) -> Halving:
        """The transposed product of a right triangle: C^T = B^T A^T."""
        a, b, c = self.by_columns
        flipped = (not b, not a, not c)
        triangle = Triangle("left", not self.triangle.upper)
        return replace(self, triangle=triangle, sizes=self.sizes[::-1], by_columns=flipped)

    @cached_property
    def _parts(self) -> tuple[Halving, Core, Halving] | None:
        """The first triangle, the full product and the second triangle; None where it is not halved."""
        m, k, n = self.sizes
        half = m // 2
        if m <= self.base or half == 0:
            return None
        rest = m - half
        far, near = (half, rest) if self.triangle.upper else (rest, half)
        out = self.triangle.side == "out"
        full = (far, k, near) if out else (far, near, n)
        square: Core = Leaf(dtype=self.dtype)
        if self.dense is not None and m > self.dense_above:
            square = Level(self.dense, full, self.dtype, self.by_columns)
        first, second = (replace(self, sizes=(size, k, size) if out else (size, size, n)) for size in (half, rest))
        return first, square, second

    @cached_property
    def _leaf(self) -> Strips:
        return Strips(self.triangle, self.sizes, self.dtype, 1, self.tidy)

    @property
    def _sum_shape(self) -> tuple[int, int]:
        """Of the buffer for the product that is added to another; of a wanted triangle nothing is."""
        m, _, n = self.sizes
        return (0, n) if self.triangle.side == "out" else (m - m // 2, n)

    def workspace(self, threads: int = 1) -> int:
        """See `Core.workspace`."""
        if self.triangle.side == "right":
            return self._mirror.workspace(threads)
        if self._parts is None:
            return self._leaf.workspace(threads)
        height, width = self._sum_shape
        own = aligned(height * width * self._itemsize)
        return own + max(part.workspace(threads) for part in self._parts)

    @cached_property
    def flops(self) -> int:
        """Operations of the GEMMs, in real numbers; a dense program's are counted as the classical product's."""
        if self.triangle.side == "right":
            return self._mirror.flops
        if self._parts is None:
            return self._leaf.flops
        m, k, n = self.sizes
        square = 2 * dtype_of(self.dtype).parts ** 2 * k * n * (m // 2) * (m - m // 2) // m
        return self._parts[0].flops + self._parts[2].flops + square

    def compile(self) -> None:
        """Have the code of all dense products at hand."""
        if self.triangle.side == "right":
            self._mirror.compile()
            return
        for part in self._parts or ():
            if isinstance(part, Level | Halving):
                part.compile()

    def stages(self, times: int = 1) -> list[Stage]:
        """What `times` runs cost, without seconds: the full products of every size, then the triangles left."""
        if self.triangle.side == "right":
            return self._mirror.stages(times)
        if self._parts is None:
            return self._leaf.stages(times)
        first, square, second = self._parts
        if isinstance(square, Level):
            own = square.stages(times)
        else:
            m, k, n = self.sizes
            half, rest = m // 2, m - m // 2
            shape = (rest, k, half) if self.triangle.side == "out" else (rest, half, n)
            moved = (shape[0] * shape[1] + shape[1] * shape[2] + shape[0] * shape[2]) * self._itemsize
            own = [
                Stage(
                    f"{times} products {'x'.join(map(str, shape))}",
                    times * 2 * dtype_of(self.dtype).parts ** 2 * math.prod(shape),
                    times * moved,
                    product=shape,
                )
            ]
        if added := math.prod(self._sum_shape):
            own.append(Stage("adding halves", times * added, 3 * times * added * self._itemsize))
        both = first.stages(2 * times) if first.sizes == second.sizes else first.stages(times) + second.stages(times)
        return own + both

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    def run(self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int = 1) -> None:
        """out = a b, or the wanted triangle of it."""
        if self.triangle.side == "right":
            self._mirror.run(b.T, a.T, out.T, arena, threads)
            return
        if self._parts is None:
            self._leaf.run(a, b, out, arena, threads)
            return
        (first, square, second), half = self._parts, len(out) // 2
        top, bottom = slice(None, half), slice(half, None)
        far, near = (top, bottom) if self.triangle.upper else (bottom, top)  # the full block is [far, near]
        if self.triangle.side == "out":
            first.run(a[top], b[:, top], out[top, top], arena.rest(), threads)
            second.run(a[bottom], b[:, bottom], out[bottom, bottom], arena.rest(), threads)
            square.run(a[far], b[:, near], out[far, near], arena.rest(), threads)
            if self.tidy:
                out[near, far] = 0
        else:
            first.run(a[top, top], b[top], out[top], arena.rest(), threads)
            second.run(a[bottom, bottom], b[bottom], out[bottom], arena.rest(), threads)
            more = self._sum_like(out[far], arena)
            square.run(a[far, near], b[near], more, arena.rest(), threads)
            out[far] += more

    def _sum_like(self, block: Matrix, arena: Arena) -> Matrix:
        """A buffer of the shape and layout of a block of the product."""
        if self.by_columns[2]:
            return arena.array(block.shape[::-1], block.dtype).T
        return arena.array(block.shape, block.dtype)
