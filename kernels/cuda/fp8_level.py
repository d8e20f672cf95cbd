"""Levels of a scheme above products in e4m3, in one pass: Combine A and Combine B quantise sums as they write them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ...errors import PlanError
from ...schemes_db.program import Program
from ..codegen.triton_text import Direction, EightBits
from ..codegen.triton_tiles import Tile, tile_of
from .combine import Combination, merge_of
from .flat_program import flat_program, kept
from .fp8 import TILE as PRODUCT_TILE
from .fp8 import Quantised, largest_of_blocks, multiply_quantised, packed_bytes, rows_bytes, unpacked
from .fp8_naive import BLOCK
from .tiles import Tile as ProductTile

Tensor = Any

TILE, COLUMNS_TILE = Tile(4, BLOCK, 2, 4), Tile(16, BLOCK, 8, 4)
"""The tiles of sums of A, and of a B stored by columns, that one program quantises: a thread reads 16 bytes. Not
measured."""

MOST_RANK = 64
"""Most products: sums of more blocks exceed the registers of a program."""


class Fp8Level:
    """A program whose products are in e4m3 with block scales; sums are in float32, H in the dtype of the operands.

    An entry that is not finite makes more of C non-finite than its row or column.

    Raises:
        PlanError: the program has half products or too many, or blocks of an operand are absent.
    """

    def __init__(self, program: Program) -> None:
        flat = flat_program(program)
        maps, target = flat.maps, flat.program.target
        if any(op.kind.half for op in flat.products) or not target.is_general:
            raise PlanError(f"products in e4m3 are general ones, not for {target}")
        if flat.rank > MOST_RANK:
            raise PlanError(f"a level in e4m3 has at most {MOST_RANK} products, not {flat.rank}")
        self.grid: tuple[int, int, int] = target.shape
        self.rank = flat.rank
        self.left = Combination(flat.left, Direction.SPLIT, maps.left_blocks, eight_bits=EightBits.ROWS)
        self.right = Combination(flat.right, Direction.SPLIT, maps.right_blocks, eight_bits=EightBits.BLOCKS)
        self.merge = merge_of(flat.merge, maps.stored, target.c)

    def blocks(self, m: int, k: int, n: int) -> tuple[int, int, int]:
        """Return the sizes of a block of A, B and C: of k and n whole blocks of scales."""
        bm, bk, bn = (-(-size // parts) for size, parts in zip((m, k, n), self.grid, strict=True))
        return bm, -(-bk // BLOCK) * BLOCK, -(-bn // BLOCK) * BLOCK

    def packed_bytes(self, k: int, n: int) -> int:
        """Return the bytes of the quantised sums of B."""
        _, bk, bn = self.blocks(1, k, n)
        return packed_bytes(bk, self.rank * bn)

    def workspace(self, m: int, k: int, n: int, itemsize: int) -> int:
        """Return the bytes of all sums and products."""
        bm, bk, bn = self.blocks(m, k, n)
        return self.packed_bytes(k, n) + rows_bytes(self.rank * bm, bk) + self.rank * bm * bn * itemsize

    def pack(self, b: Tensor) -> Tensor:
        """Return the sums of B (k, n) of any strides, quantised as they are written, as bytes; see `unpacked`.

        The scale of a block of a sum is computed from the largest magnitudes of the blocks of B that it adds.
        """
        import torch

        k, n = b.shape
        _, bk, bn = self.blocks(1, k, n)
        packed = torch.empty(self.packed_bytes(k, n), dtype=torch.uint8, device=b.device)
        # Stored by columns: the columns of all sums follow each other.
        found = unpacked(packed, bk, self.rank * bn)
        if found.scales.shape[1] > bk // BLOCK:
            found.scales.zero_()
        bits = found.bits.view(self.rank, bn, bk).mT
        scales = found.scales.view(self.rank, bn // BLOCK, -1)[..., : bk // BLOCK].mT
        by_columns = b.stride(1) != 1 and b.stride(0) == 1
        tile = COLUMNS_TILE if by_columns else tile_of(self.right.map, b.element_size(), transposed=True)
        with torch.cuda.device(b.device) if b.is_cuda else nullcontext():
            self.right.run(b.unsqueeze(0), bits.unsqueeze(0), tile, scales=scales, largest=largest_of_blocks(b))
        return packed

    def run(self, a: Tensor, packed: Tensor, out: Tensor, tile: ProductTile = PRODUCT_TILE) -> None:
        """Compute out (m, n) = A B for A (m, k) and the result of `pack`. A is copied if it is not stored by rows."""
        import torch

        (m, n), k = out.shape, a.shape[1]
        bm, bk, bn = self.blocks(m, k, n)
        a = a if a.stride(1) == 1 else a.contiguous()
        bits = torch.empty((self.rank, bm, bk), dtype=torch.float8_e4m3fn, device=a.device)
        scales = torch.empty((self.rank, bk // BLOCK, bm), dtype=torch.float32, device=a.device)
        with torch.cuda.device(a.device) if a.is_cuda else nullcontext():
            self.left.run(a.unsqueeze(0), bits.unsqueeze(0), TILE, scales=scales)
            products = out.new_empty((self.rank, bm, bn))
            left = Quantised(bits.view(self.rank * bm, bk), scales, bk)
            multiply_quantised(left, unpacked(packed, bk, self.rank * bn), products, tile)
            self.merge.run(out.unsqueeze(0), products.unsqueeze(0))


def fp8_level(program: Program) -> Fp8Level:
    """Return the level of a program, cached with its kernels.

    Raises:
        PlanError: as `Fp8Level`.
    """
    return kept(("fp8", program.digest), lambda: Fp8Level(program))
