"""A program above products of int8, or none: sums of blocks in int8, all products in one launch, C in int32."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import PlanError
from ...schemes_db.algebra import naive
from ...schemes_db.program import Program
from ...schemes_db.target import parse_target
from ..codegen.programs import program_for
from ..codegen.triton_text import Direction
from .combine import Combination, merge_of
from .flat_program import flat_program, kept
from .int8 import has_whole_rows, multiply_stack, vendor_sizes
from .naive import combine
from .nesting import nests_of
from .shape import Shape

Tensor = Any


class Int8TensorLevel:
    """A program whose levels are executed as one; with one product of whole matrices nothing is combined.

    Sums are stored in int8 and products in int32, so that the caller must ensure that they fit
    (`overflow.range_reason`). Products are combined modulo 2^32, and C is exact if it fits int32.

    Raises:
        PlanError: the program is not for general matrices.
    """

    def __init__(self, program: Program) -> None:
        flat = flat_program(program)
        maps, target = flat.maps, flat.program.target
        if not target.is_general:
            raise PlanError(f"int8 products are of whole matrices, and {target} is not; convert to float16")
        self.target, self.rank = target, flat.rank
        left, right, merge = nests_of(program)
        self.left = Combination(flat.left, Direction.SPLIT, maps.left_blocks, integers=True, nest=left)
        self.right = Combination(flat.right, Direction.SPLIT, maps.right_blocks, integers=True, nest=right)
        self.merge = merge_of(flat.merge, maps.stored, target.c, integers=True, nest=merge)

    @property
    def plain(self) -> bool:
        """True if the only product is that of A and B."""
        return self.rank == 1 and self.target.shape == (1, 1, 1)

    def blocks(self, m: int, k: int, n: int) -> tuple[int, int, int]:
        """Return the sizes of a block of A, B and C, in whole segments of 16 bytes."""
        bm, bk, bn = Shape.blocks_of((m, k, n), 1, self.target)
        return (m, bk, n) if self.plain else (bm, bk, bn)

    def workspace(self, m: int, k: int, n: int) -> int:
        """Return the bytes of all sums and products; of a plain product those of copies, an upper bound."""
        bm, bk, bn = self.blocks(m, k, n)
        return self.rank * (bm * bk + bk * bn + (0 if self.plain else 4 * bm * bn))

    def pack(self, b: Tensor) -> Tensor:
        """Return the sums of B (k, n) of any strides as (rank, bn, bk): B itself, transposed, where it can be read."""
        _, bk, bn = self.blocks(1, *b.shape)
        if self.plain and has_whole_rows(b.mT):
            return b.mT.unsqueeze(0)
        sums = b.new_empty((self.rank, bn, bk))
        combine(self.right, b.unsqueeze(0), sums.mT.unsqueeze(0))
        return sums

    def run(self, a: Tensor, packed: Tensor, out: Tensor) -> None:
        """Compute out (m, n) int32 = A B for A (m, k) int8 and the result of `pack`."""
        (m, k), n = a.shape, out.shape[1]
        bm, bk, bn = self.blocks(m, k, n)
        if self.plain and has_whole_rows(a):
            lefts = a.unsqueeze(0)
        else:
            lefts = a.new_empty((self.rank, bm, bk))
            combine(self.left, a.unsqueeze(0), lefts.unsqueeze(0))
        if self.plain:
            multiply_stack(lefts, packed, out.unsqueeze(0))
            return
        products = out.new_empty((self.rank, bm, bn))
        multiply_stack(lefts, packed, products)
        combine(self.merge, out.unsqueeze(0), products.unsqueeze(0))


def int8_level(program: Program | None) -> Int8TensorLevel:
    """Return the level of a program, or of the product without one; cached with its kernels.

    Raises:
        PlanError: as `Int8TensorLevel`.
    """
    given = _classical() if program is None else program
    return kept(("int8", given.digest), lambda: Int8TensorLevel(given))


def vendor_operand(b: Tensor, copies: bool) -> Tensor:
    """Return what torch's `_int_mm` multiplies instead of B (k, n): B itself, or a copy that is stored by columns.

    A B whose sizes its rules do not permit is copied with zeros to (k', n'), one that is not stored by columns if
    `copies`.
    """
    k, n = b.shape
    _, inner, cols = vendor_sizes(1, k, n)
    if (k, n) == (inner, cols) and (not copies or b.stride(0) == 1):
        return b
    turned = b.new_empty((1, cols, inner))
    combine(int8_level(None).right, b.unsqueeze(0), turned.mT.unsqueeze(0))
    return turned[0].mT


@lru_cache(maxsize=1)
def _classical() -> Program:
    return program_for(naive(parse_target("1x1x1")))
