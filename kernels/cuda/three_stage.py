"""Combine, multiply, merge: a program on tensors through generated kernels and the vendor's products."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from ...schemes_db.grids import Kind
from ...schemes_db.program import Program
from ..codegen.maps import Block, LinearMap
from ..codegen.triton_text import Direction
from .combine import Combination, merge_of
from .flat_program import Spread, kept, spread
from .shape import Piece, Shape
from .stack import multiply_stack

Tensor = Any


class Way(StrEnum):
    """How the products of a stage are run: one batched call, a call each with B~ transposed, or by our own kernel."""

    BATCHED = "batched"
    LOOP = "loop"
    STACK = "stack"


@dataclass(frozen=True)
class Packed:
    """B~ of a static operand k x n: (rights, slabs, height, width), as `ThreeStage.pack` made it."""

    stack: Tensor
    k: int
    n: int


class ThreeStage:
    """A program and the way its products are run, for matrices of any size in any floating dtype.

    LOOP takes the products one by one, reads every distinct sum once, and stores B~ by columns:
    measured faster for tf32, whose tensor cores take operands with the inner index adjacent.
    STACK takes `multiply_stack` where it fits, which is faster in half precision, else the batched call.

    Raises:
        PlanError: as `Spread`.
    """

    def __init__(self, program: Program, way: Way) -> None:
        self.way = way
        self.spread: Spread = spread(program)
        self.target = self.spread.program.target
        maps, target = self.spread.maps, self.target
        looped = way is Way.LOOP
        self._left_of = maps.left_of if looped else tuple(range(self.spread.rank))
        self._right_of = maps.right_of if looped else tuple(range(self.spread.rank))
        left, right = (maps.left, maps.right) if looped else (self.spread.left, self.spread.right)

        def split(linear: LinearMap, blocks: tuple[Block, ...], grid: tuple[tuple[Kind, ...], ...]) -> Combination:
            return Combination(linear, Direction.SPLIT, blocks, tuple(grid[i][j] for i, j in blocks))

        self.left, self.right = split(left, maps.left_blocks, target.a), split(right, maps.right_blocks, target.b)
        self.merge = merge_of(maps.merge, maps.stored, target.c)
        self.slabs = (len(left.results), len(right.results), self.spread.rank)
        self._blocks = lru_cache(maxsize=64)(self._blocks_of)

    def _blocks_of(self, m: int, k: int, n: int, dtype: str) -> tuple[int, int, int]:
        """Sizes of a block of A, B and C."""
        return Shape(m, k, n, dtype).blocks(self.target)

    def pack(self, b: Tensor, dtype: str) -> Packed:
        """B~ of matrices (rights, k, n)."""
        rights, k, n = b.shape
        _, bk, bn = self._blocks(1, k, n, dtype)
        stack = self._empty_right(rights, bk, bn, b)
        self.right.run(b, stack)
        return Packed(stack, k, n)

    def packed_shape(self, k: int, n: int, dtype: str) -> tuple[int, int, int, int]:
        """The shape of B~ of one k x n operand."""
        _, bk, bn = self._blocks(1, k, n, dtype)
        return 1, self.slabs[1], bk, bn

    def run(self, a: Tensor, b: Tensor | Packed, out: Tensor, dtype: str, pieces: int = 1) -> None:
        """out = a b for a (lefts, m, k), b (rights, k, n) or its `pack`, out (items, m, n).

        `lefts` and `rights` are `items` or 1. `out` overlaps neither.
        """
        rights = b.stack.shape[0] if isinstance(b, Packed) else b.shape[0]
        packed = self.pack(b, dtype) if rights == 1 and not isinstance(b, Packed) else b
        if pieces == 1:
            self._piece(a, packed, out, dtype)
            return
        items, m, n = out.shape
        shape = Shape(m, a.shape[2], n, dtype, items, a.shape[0], rights)
        for piece in shape.pieces(self.target, pieces):
            some = packed
            if rights > 1:
                some = (
                    Packed(packed.stack[piece.items], packed.k, packed.n)
                    if isinstance(packed, Packed)
                    else packed[piece.items]
                )
            self._piece(_items(a, piece)[:, piece.rows], some, out[piece.items, piece.rows], dtype)

    def _piece(self, a: Tensor, b: Tensor | Packed, out: Tensor, dtype: str) -> None:
        items, m, n = out.shape
        bm, bk, bn = self._blocks(m, a.shape[2], n, dtype)
        lefts = a.new_empty((a.shape[0], self.slabs[0], bm, bk))
        self.left.run(a, lefts)
        if isinstance(b, Packed):
            rights = b.stack
        else:
            rights = self._empty_right(b.shape[0], bk, bn, b)
            self.right.run(b, rights)
        products = a.new_empty((items, self.spread.rank, bm, bn))
        self._multiply(lefts, rights, products)
        self.merge.run(out, products)

    def _multiply(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        import torch

        items, rank = products.shape[:2]
        if self.way is not Way.LOOP and lefts.shape[0] == rights.shape[0] == items:
            self._batch(lefts.flatten(0, 1), rights.flatten(0, 1), products.flatten(0, 1))
            return
        for i in range(items):
            left, right = lefts[i % lefts.shape[0]], rights[i % rights.shape[0]]
            if self.way is Way.LOOP:
                for r in range(rank):
                    torch.mm(left[self._left_of[r]], right[self._right_of[r]], out=products[i, r])
            else:
                self._batch(left, right, products[i])

    def _batch(self, lefts: Tensor, rights: Tensor, products: Tensor) -> None:
        import torch

        if self.way is Way.BATCHED or not multiply_stack(lefts, rights, products):
            torch.bmm(lefts, rights, out=products)

    def _empty_right(self, rights: int, bk: int, bn: int, like: Tensor) -> Tensor:
        if self.way is Way.LOOP:
            return like.new_empty((rights, self.slabs[1], bn, bk)).transpose(2, 3)
        return like.new_empty((rights, self.slabs[1], bk, bn))


def _items(x: Tensor, piece: Piece) -> Tensor:
    return x if x.shape[0] == 1 else x[piece.items]


def three_stage(program: Program, way: Way) -> ThreeStage:
    """The stages of a program, kept with their kernels.

    Raises:
        PlanError: as `Spread`.
    """
    return kept((way, program.digest), lambda: ThreeStage(program, way))
