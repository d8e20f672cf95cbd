"""Levels of a scheme above products of pairs of float16: float32 in, float32 out, as accurate as float32.

A and B are scaled by powers of two, by row and column of the whole matrices. Combine A and Combine B read float32 once
and write each sum of blocks as a pair; products are in float32, and the last combination divides by the powers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.program import Program
from ..arrays import Tensor, torch
from ..codegen.triton_text import Scale
from . import float16_pairs as pairs
from .flat_program import FlatProgram, flat_program, per_program
from .launch import on_device, starter
from .level import CudaLevel
from .packed_product import PackedArithmetic
from .stack import missing_accelerator
from .tiles import Tile

SPREAD = 3.0
"""A scheme mixes the errors of rows (and of columns) that share blocks. If the bound of a row's error is more than
this multiple of that for a matrix of equal entries, the product is computed without the scheme.
"""

PAIRS = {"scale": Scale.ROWS, "halves": True}, {"scale": Scale.COLS, "halves": True}, {"scale": Scale.BOTH}
"""What `Combine` takes for sums of A and B, scaled and stored as pairs, and for sums of C, scaled back."""


class PairsProduct:
    """Products of float32 by the levels of a program, whose block products are of pairs of float16.

    See `float16_pairs.pairs_product` for the accuracy.

    Raises:
        PlanError: the program has half products, or blocks of an operand are absent.
    """

    def __init__(self, program: Program) -> None:
        flat = flat_program(program)
        target = flat.program.target
        m, k, n = target.shape
        if any(op.kind.half for op in flat.products) or not target.is_general:
            raise PlanError(f"pairs of float16 are for general products, not for {target}")
        self.level = CudaLevel(program, others=PAIRS)
        left, right, merge = (_sizes(flat, side, grid) for side, grid in enumerate(((m, k), (k, n), (m, n))))
        rows, cols = (np.einsum("rp,rik,rlj->piklj", merge.sum(axis), left, right).max(axis=0) for axis in (2, 1))
        self._rows, self._cols = rows, cols
        self._weights: dict[Any, tuple[Tensor, Tensor]] = {}
        self._growth = float(rows.sum()) / (k * n), float(cols.sum()) / (k * m)
        largest = max(side.sum(axis=(1, 2)).max() for side in (left, right))
        # Sums of scaled entries stay below 2^15, so that no part is infinite.
        self._top = min(pairs.TOP, 15 - math.ceil(math.log2(largest)))
        lost = max((merge.sum(axis).T @ side.sum(axis=(1, 2))).max() for axis in (1, 2) for side in (left, right))
        self._lost = float(pairs.LOST * lost)

    def blocks(self, m: int, k: int, n: int) -> tuple[int, int, int]:
        """Return the sizes of a block of A, B and C, with rows of pairs in whole segments."""
        bm, bk, bn = (-(-size // parts) for size, parts in zip((m, k, n), self.level.target.shape, strict=True))
        return bm, pairs.pitch_of(bk), pairs.pitch_of(bn)

    def workspace(self, m: int, k: int, n: int) -> int:
        """Return the bytes of the stacks of sums and products."""
        bm, bk, bn = self.blocks(m, k, n)
        return 4 * self.level.rank * (bm * bk + bk * bn + bm * bn)

    def run(self, a: Tensor, b: Tensor, out: Tensor, tile: Tile = pairs.TILE) -> bool:
        """Compute out = a b for float32 matrices (m, k) and (k, n) of any strides; return whether the scheme was used.

        `out` shares no memory with a or b.

        Raises:
            PlanError: as `pairs_product`.
        """
        level = self.level
        with on_device(a):
            largest = pairs.largest_of(a, 0), pairs.largest_of(b, 1)
            shifts = self._shifts(largest[0]), self._shifts(largest[1])
            bm, bk, bn = self.blocks(a.shape[0], a.shape[1], b.shape[1])
            lefts = pairs.stack_of_pairs(a, level.rank, bm, bk)
            rights = pairs.stack_of_pairs(b, level.rank, bk, bn)
            level.left.run(a.unsqueeze(0), lefts.unsqueeze(0), shifts=shifts)
            level.right.run(b.unsqueeze(0), rights.unsqueeze(0), shifts=shifts)
            products = a.new_empty((level.rank, bm, bn))
            pairs.multiply_pairs(lefts, rights, products, None, tile)
            level.merge.run(out.unsqueeze(0), products.unsqueeze(0), shifts=shifts)
            # The kernels of the check are queued after the products, which run meanwhile.
            found = None if a.is_meta else self._found(a, b, largest, shifts).tolist()
        if found is None:
            return True
        pairs.require_finite(found[0] < pairs.INFINITE)
        if found[1]:
            pairs.pairs_product(a, b, out, tile)
        return not found[1]

    def _shifts(self, largest: Tensor) -> Tensor:
        from .float16_pairs_kernel import line_shifts

        parts, lines = largest.shape
        shifts = torch.empty(lines, dtype=torch.int32, device=largest.device)
        starter(line_shifts, (-(-lines // pairs.LONG),), largest)(
            largest, shifts, lines, parts, TOP=self._top, MOST=pairs.MOST_SHIFT, SIZE=pairs.LONG
        )
        return shifts

    def _weights_on(self, device: Any) -> tuple[Tensor, Tensor]:
        """Return the weights of sums of |B| and of |A| for blocks (i, k) of A, and (k, j) of B.

        Copied to a device once: a copy would wait for the products.
        """
        if device not in self._weights:
            m, k, n = self.level.target.shape
            rows, cols = (x.reshape(m * k, k * n).astype(np.float32) for x in (self._rows, self._cols))
            self._weights[device] = torch.from_numpy(rows).to(device), torch.from_numpy(cols.T.copy()).to(device)
        return self._weights[device]

    def _found(self, a: Tensor, b: Tensor, sums: tuple[Tensor, Tensor], shifts: tuple[Tensor, Tensor]) -> Tensor:
        """Return the bits of the largest magnitude, and how many rows and columns are unlike those in their blocks.

        With E = |A| |B| of the scaled matrices, an element of C has an error of the order of ROUNDING times the sum
        over products of |W| (|U| |A|) (|V| |B|): its sums over a row, the largest of all rows of blocks, are compared
        with those of E. See `float16_pairs.loses` for the loss by small entries.
        """
        m, k, n = self.level.target.shape
        bm, bk, bn = self.blocks(a.shape[0], a.shape[1], b.shape[1])
        left = self._block_sums(a, shifts[0], 1, bm, m, bk * k)
        right = self._block_sums(b, shifts[1], 0, bn, n, bk * k)
        of_rows, of_cols = self._weights_on(a.device)
        # (m k, k n) times (k n, bk): the weights of the inner indices of each row of blocks of A.
        for_a = of_rows @ right.view(n, k, bk).transpose(0, 1).reshape(k * n, bk)
        for_b = of_cols @ left.view(m, k, bk).reshape(m * k, bk)
        blocks_a, blocks_b = for_a.view(m, k * bk), for_b.view(k, n, bk).transpose(0, 1).reshape(n, k * bk)
        plain_a, e_a, mixed_a = self._line_sums(a, 0, shifts[0], right.sum(0), blocks_a, bm)
        plain_b, e_b, mixed_b = self._line_sums(b, 1, shifts[1], left.sum(0), blocks_b, bn)
        unlike_a, unlike_b = mixed_a > SPREAD * self._growth[0] * e_a, mixed_b > SPREAD * self._growth[1] * e_b
        some_a, some_b = (largest.amax(0) > 0 for largest in sums)
        unlike_a |= self._lost * (plain_b.sum() + some_b.sum() * plain_a) > pairs.ROUNDING * e_a
        unlike_b |= self._lost * (plain_a.sum() + some_a.sum() * plain_b) > pairs.ROUNDING * e_b
        count = ((unlike_a & some_a).sum() + (unlike_b & some_b).sum()) * (some_a.any() & some_b.any())
        return torch.stack((torch.maximum(sums[0].amax(), sums[1].amax()).long(), count))

    @staticmethod
    def _block_sums(x: Tensor, shifts: Tensor, axis: int, span: int, blocks: int, inner: int) -> Tensor:
        """Sum scaled magnitudes over rows of a block of A (axis 1) or columns of one of B (0): (blocks, inner)."""
        (found,) = pairs.line_sums_of(x, axis, shifts, span=span)
        return torch.nn.functional.pad(found, (0, inner - found.shape[1], 0, blocks - found.shape[0]))

    @staticmethod
    def _line_sums(
        x: Tensor, axis: int, shifts: Tensor, weights: Tensor, by_blocks: Tensor, block: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return by row of A (axis 0) or column of B the sums of magnitudes, of E, and of the blocks that share it."""
        lines, inner = x.shape[axis], x.shape[1 - axis]
        given = weights[:inner].contiguous(), by_blocks[:, :inner].contiguous()
        plain, exact, mixed = (one.sum(0) for one in pairs.line_sums_of(x, axis, shifts, given, block=block))
        blocks = by_blocks.shape[0]
        shared = torch.nn.functional.pad(mixed, (0, blocks * block - lines)).view(blocks, block).sum(0)
        return plain, exact, shared.repeat(blocks)[:lines]


pairs_by_level = per_program(PairsProduct)
"""The products by a program, cached with its kernels."""


def pairs_arithmetic(by_level: PairsProduct | None = None) -> PackedArithmetic:
    """Return the arithmetic of pairs, with or without levels of a scheme."""
    product: Callable[[Tensor, Tensor, Tensor], object] = pairs.pairs_product if by_level is None else by_level.run
    return PackedArithmetic(lambda a, b, packed, out: product(a, b, out), missing=missing_accelerator)


def _sizes(flat: FlatProgram, side: int, grid: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return |coefficients| of the blocks of A, B or C (`side`) in each product: (rank, rows, cols) of the grid."""
    sizes = np.zeros((flat.rank, *grid))
    rows, cols = np.array(flat.sides[side][1]).T
    sizes[:, rows, cols] = np.abs(np.array(flat.coefficients(side), float))
    return sizes
