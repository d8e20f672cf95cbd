"""A structured scheme on a GPU: generated sums, full products in one batched call, half ones in strips."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.program import Product, ProductKind, Program
from ..codegen.flatten import flatten
from ..codegen.maps import LinearMap, maps_of
from ..codegen.triton_text import Direction
from ..cpu.strips import ranges
from .combine import Combination, merge_of
from .naive import apply_map

Tensor = Any

HALF_STRIPS = 8
"""Strips of a product with a triangular factor: measured on an H200, float32 and float64, blocks of 2048."""

LONGEST = 1024
"""Terms of a float32 sum, where a factor is triangular. The vendor works some of these products in such pieces when
they are whole: at 8192 x 8192 x 4096 a scheme with longer sums is 3.4 times as far off, with these 2.4 times."""

DIAGONAL = 128
"""Rows of the squares on the diagonal of a wanted triangle that are worked whole: measured like HALF_STRIPS."""


class CudaLevel:
    """A program, its levels worked as one, for tensors whose sizes its grid divides.

    Products are ordered by kind, so that those of one kind are a range of the stacks. On tensors of
    a processor the sums are made by plain torch: the twin that tests run.

    Raises:
        PlanError: of a program with inner levels one kind of product has none, or their grids differ.
    """

    def __init__(self, program: Program) -> None:
        if inner := dict(program.inner):
            outer = Program(program.target, program.ring, program.ops)
            program = flatten(outer, inner.pop(ProductKind.FULL), inner)
        maps, target = maps_of(program), program.target
        self.target = target
        order = sorted(range(len(maps.products)), key=lambda r: (maps.products[r].kind.half, maps.products[r].kind))
        self._products: list[Product] = [maps.products[r] for r in order]
        place = {r: i for i, r in enumerate(order)}
        left = LinearMap(maps.left.sources, maps.left.lins, tuple(maps.left.results[maps.left_of[r]] for r in order))
        right = LinearMap(
            maps.right.sources, maps.right.lins, tuple(maps.right.results[maps.right_of[r]] for r in order)
        )
        count = maps.merge.sources
        merge = LinearMap(
            count,
            *(
                tuple(tuple((c, place[src] if src < count else src) for c, src in terms) for terms in several)
                for several in (maps.merge.lins, maps.merge.results)
            ),
        )
        sides = (left, maps.left_blocks, target.a), (right, maps.right_blocks, target.b)
        self._left, self._right = (
            Combination(linear, Direction.SPLIT, blocks, tuple(kinds[i][j] for i, j in blocks))
            for linear, blocks, kinds in sides
        )
        self._summed = all(kind is Kind.FULL for row in target.c for kind in row)
        self._merge = merge_of(merge, maps.stored, target.c, tuple(map(_needed, self._products)))

    @property
    def kinds(self) -> dict[ProductKind, int]:
        """How many products there are of each kind."""
        found = [op.kind for op in self._products]
        return {kind: found.count(kind) for kind in dict.fromkeys(found)}

    def blocks(self, m: int, k: int, n: int) -> tuple[int, int, int]:
        """The sizes of a block of A, B and C."""
        bm, bk, bn = (-(-size // parts) for size, parts in zip((m, k, n), self.target.shape, strict=True))
        return bm, bk, bn

    def fits(self, m: int, k: int, n: int) -> bool:
        """Whether the grid divides the sizes."""
        return not any(size % parts for size, parts in zip((m, k, n), self.target.shape, strict=True))

    def run(self, a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        """out = a b for a (m, k), b (k, n); what the target does not want comes out zero."""
        (m, k), n = a.shape, b.shape[1]
        if not self.fits(m, k, n):
            raise PlanError(f"{m} x {k} x {n} is not a multiple of the grid of {self.target}")
        bm, bk, bn = (size // parts for size, parts in zip((m, k, n), self.target.shape, strict=True))
        rank = len(self._products)
        lefts, rights, products = stacks(a, rank, bm, bk, bn)
        _split(self._left, a, lefts[None])
        _split(self._right, b, rights[None])
        self._multiply(lefts, rights, products)
        _joined(self._merge, products[None], out)
        return out

    def _multiply(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        kinds = [op.kind for op in self._products]
        longest = LONGEST if lefts.element_size() == 4 and self._summed else lefts.shape[2]
        for kind in dict.fromkeys(kinds):
            start, stop = kinds.index(kind), kinds.index(kind) + kinds.count(kind)
            x, y, z = lefts[start:stop], rights[start:stop], products[start:stop]
            if not kind.half:
                _multiply(x, y, z, longest)
            elif kind.side == "out":
                _triangles(x, y, z, kind.of_upper)
            else:
                _strips(x, y, z, kind, longest)


def _multiply(x: Tensor, y: Tensor, z: Tensor, longest: int) -> None:
    """z = x y, the inner dimension in pieces of at most `longest`."""
    import torch

    count = -(-x.shape[2] // longest)
    for i, (start, stop) in enumerate(ranges(x.shape[2], count)):
        some = slice(start, stop)
        torch.baddbmm(z, x[:, :, some], y[:, some], beta=int(i > 0), out=z)


def stacks(like: Tensor, rank: int, bm: int, bk: int, bn: int) -> tuple[Tensor, Tensor, Tensor]:
    """Left factors (rank, bm, bk), right factors (rank, bk, bn) and products (rank, bm, bn), by rows.

    By rows, as the vendor's float64 product is 9 to 16% slower on an H200 where one factor lies by columns.
    Right factors lie side by side, and a product has a column more than it needs: see `_triangles`.
    """
    lefts, rights = like.new_empty((rank, bm, bk)), like.new_empty((bk, rank, bn)).transpose(0, 1)
    products = like.new_empty(rank * bm * (bn + 1)).as_strided((rank, bm, bn), (bm * (bn + 1), bn, 1))
    return lefts, rights, products


def _needed(product: Product) -> Kind:
    """How much of a product its results take."""
    if product.kind.side != "out":
        return Kind.FULL
    return Kind.UPPER if product.kind.of_upper else Kind.LOWER


def _strips(x: Tensor, y: Tensor, z: Tensor, kind: ProductKind, longest: int) -> None:
    """Products with a triangular factor: each strip reaches as far as the triangle does."""
    size = z.shape[2] if kind.side == "right" else z.shape[1]
    for first, last in ranges(size, HALF_STRIPS):
        some = slice(first, last)
        before, after = slice(None, last), slice(first, None)
        if kind.side == "left":
            inner = after if kind.of_upper else before
            _multiply(x[:, some, inner], y[:, inner], z[:, some], longest)
        else:
            inner = before if kind.of_upper else after
            _multiply(x[:, :, inner], y[:, inner, some], z[:, :, some], longest)


def _triangles(x: Tensor, y: Tensor, z: Tensor, upper: bool) -> None:
    """One triangle of each x[i] y[i]: the squares beside the diagonal of every size, one batched call a size.

    Blocks along the diagonal of a slab, and on along that of the next, are evenly spaced in the stacks of `stacks`.
    """
    size = z.shape[1]
    while size > DIAGONAL and size % 2 == 0:
        size //= 2
        _along(x, y, z, size, 2 * size, int(not upper), int(upper))
    _along(x, y, z, size, size, 0, 0)


def _along(x: Tensor, y: Tensor, z: Tensor, size: int, step: int, row: int, col: int) -> None:
    """All square blocks of this size at block (row, col) of every `step` rows and columns."""
    import torch

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


def _split(combination: Combination, matrix: Tensor, stack: Tensor) -> None:
    if matrix.is_cuda or matrix.is_meta:
        combination.run(matrix[None], stack)
        return
    height, width = stack.shape[2:]
    blocks = [
        _part(matrix[i * height : (i + 1) * height, j * width : (j + 1) * width], kind)
        for (i, j), kind in zip(combination.blocks, combination.kinds, strict=True)
    ]
    for slab, result in zip(stack[0], apply_map(combination.map, blocks), strict=True):
        slab.copy_(result)


def _joined(combination: Combination, stack: Tensor, matrix: Tensor) -> None:
    if matrix.is_cuda or matrix.is_meta:
        combination.run(matrix[None], stack)
        return
    height, width = stack.shape[2:]
    results = apply_map(combination.map, list(stack[0]))
    for (i, j), kind, result in zip(combination.blocks, combination.kinds, results, strict=True):
        matrix[i * height : (i + 1) * height, j * width : (j + 1) * width] = _part(result, kind)


def _part(block: Tensor, kind: Kind) -> Tensor:
    if kind is Kind.LOWER:
        return block.tril()
    return block.triu() if kind is Kind.UPPER else block


@lru_cache(maxsize=32)
def cuda_level(program: Program) -> CudaLevel:
    """The level of a program, kept with its kernels."""
    return CudaLevel(program)
