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
from ..gpu.combine import Combination
from ..gpu.naive import apply_map
from .strips import ranges

Tensor = Any

HALF_STRIPS = 4
"""Strips of a half product: measured on an H200, float32, blocks of 2048."""


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
        sides = (
            (left, Direction.SPLIT, maps.left_blocks, target.a),
            (right, Direction.SPLIT, maps.right_blocks, target.b),
            (merge, Direction.MERGE, maps.stored, target.c),
        )
        self._combinations = tuple(
            Combination(linear, direction, blocks, tuple(kinds[i][j] for i, j in blocks))
            for linear, direction, blocks, kinds in sides
        )

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
        lefts, rights = a.new_empty((1, rank, bm, bk)), a.new_empty((1, rank, bk, bn))
        products = a.new_empty((1, rank, bm, bn))
        for combination, matrix, stack in zip(self._combinations, (a, b), (lefts, rights), strict=False):
            _split(combination, matrix, stack)
        self._multiply(lefts[0], rights[0], products[0])
        out.zero_()
        _merge(self._combinations[2], products, out)
        return out

    def _multiply(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        import torch

        kinds = [op.kind for op in self._products]
        for kind in dict.fromkeys(kinds):
            start, stop = kinds.index(kind), kinds.index(kind) + kinds.count(kind)
            x, y, z = lefts[start:stop], rights[start:stop], products[start:stop]
            if not kind.half:
                torch.bmm(x, y, out=z)
                continue
            size = z.shape[2] if kind.side == "right" else z.shape[1]
            for first, last in ranges(size, HALF_STRIPS):
                some = slice(first, last)
                before, after = slice(None, last), slice(first, None)
                if kind.side == "out":
                    cols = after if kind.of_upper else before
                    torch.bmm(x[:, some], y[:, :, cols], out=z[:, some, cols])
                elif kind.side == "left":
                    inner = after if kind.of_upper else before
                    torch.bmm(x[:, some, inner], y[:, inner], out=z[:, some])
                else:
                    inner = before if kind.of_upper else after
                    torch.bmm(x[:, :, inner], y[:, inner, some], out=z[:, :, some])


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


def _merge(combination: Combination, stack: Tensor, matrix: Tensor) -> None:
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
