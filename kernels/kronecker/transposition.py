"""Transposition of tensors by tiles, for any dtype, and products between two transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..cuda.launch import starter
from .blocks import alternating_rows
from .pattern import Pattern
from .tensors import multiply_strided
from .tiles import triton_reason

Tensor = Any

TILES = {2: (64, 64, 4), 4: (64, 32, 4), 8: (32, 32, 4), 16: (32, 16, 4)}
"""Rows and columns of a tile, and warps of its program, by bytes of an element."""

ALIGNED = 128
"""Slabs of the batch are multiples of this number of columns, if the bound on the workspace permits it."""


def naive_transpose(source: Tensor, target: Tensor) -> None:
    """Compute target = source^T by torch."""
    target.copy_(source.mT)


def transpose_into(source: Tensor, target: Tensor) -> None:
    """Compute target (cols, rows) = source (rows, cols)^T by our kernel; rows of both are contiguous.

    Bits are moved, so that any dtype of 2, 4, 8 or 16 bytes can be transposed; 16 are moved as pairs of 8.
    """
    import torch

    from .transposition_kernel import transpose_words

    words = 2 if source.itemsize == 16 else 1
    word = {2: torch.int16, 4: torch.int32}.get(source.itemsize, torch.int64)
    height, width, warps = TILES[source.itemsize]
    rows, cols = source.shape
    programs = -(-rows // height) * -(-cols // width)
    starter(transpose_words, (programs,), source)(
        source.view(word),
        target.view(word),
        rows,
        cols,
        words * source.stride(0),
        words * target.stride(0),
        R=height,
        C=width,
        W=words,
        num_warps=warps,
    )


@dataclass(frozen=True)
class TransposedProduct:
    """K1 ... KL X by slabs of the batch: the slab is transposed first (`first`), multiplied by all factors batch-last
    by GEMMs on views, and the result is transposed at the end (`last`).

    A slab has `slab` columns of the batch. The results between the steps are in two buffers.
    """

    patterns: tuple[Pattern, ...]
    first: bool
    last: bool
    slab: int

    @property
    def buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return alternating_rows(self.patterns, self.first, self.last)

    def workspace(self, n: int, item: int) -> int:
        """Return the bytes of the buffers."""
        return sum(self.buffer_rows) * min(self.slab, n) * item

    def run(self, factors: Sequence[Tensor], x: Tensor, out: Tensor) -> None:
        """Compute out (rows, n) = K1 ... KL x (cols, n). A call allocates the buffers once."""
        n = x.shape[1]
        memory = [x.new_empty(rows * min(self.slab, n)) for rows in self.buffer_rows]
        for start in range(0, n, self.slab):
            some = slice(start, start + self.slab)
            self._one(factors, x[:, some], out[:, some], memory)

    def _one(self, factors: Sequence[Tensor], x: Tensor, out: Tensor, memory: Sequence[Tensor]) -> None:
        width, turn = x.shape[1], 0

        def buffer(rows: int) -> Tensor:
            nonlocal turn
            held = memory[turn % 2][: rows * width].view(rows, width)
            turn += 1
            return held

        if self.first:
            held = buffer(len(x))
            transpose_into(x.mT, held)
            x = held
        for place in reversed(range(len(factors))):
            pattern = self.patterns[place]
            target = out if place == 0 and not self.last else buffer(pattern.rows)
            multiply_strided(factors[place], pattern, x, target)
            x = target
        if self.last:
            transpose_into(x, out.mT)


WHOLE, BOUNDED = 0, 1
"""Choices of a slab: the whole batch; the largest within the bound on the workspace. Slabs that fit the L2 cache of an
H200 took 1.9 to 8 times as long as the whole batch, for 50 of 51 patterns: their GEMMs are too small.
"""


def transposed_product(
    patterns: Sequence[Pattern], n: int, first: bool, last: bool, choice: int, item: int, most: int | None
) -> TransposedProduct | None:
    """Return the product by one of the choices for a slab; None if BOUNDED has no slab, or one of the whole batch.

    `first`, `last`: X and the result are batch-first. If d = 1 GEMMs read and write them in place. `most` is
    in bytes.
    """
    turned = first and patterns[-1].d > 1, last and patterns[0].d > 1
    whole = TransposedProduct(tuple(patterns), *turned, max(n, 1))
    if choice == WHOLE:
        return whole
    width = 0 if choice != BOUNDED or most is None else most // (max(1, sum(whole.buffer_rows)) * item)
    width = width // ALIGNED * ALIGNED or width
    return replace(whole, slab=width) if 0 < width < n else None


def transposed_reason(product: TransposedProduct | None) -> str | None:
    """Return the reason why a product cannot run between transpositions, or None."""
    if product is None:
        return "its slab is the whole batch, or too narrow"
    if not (product.first or product.last):
        return "X and the result can be read as they are: nothing is to be transposed"
    return triton_reason()
