"""Transposition of tensors by tiles, for any dtype, and products between two transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..cuda.launch import starter
from .blocks import alternating_rows, as_blocks, empty_result
from .pattern import Pattern
from .tensors import multiply_blocks
from .tiles import triton_reason

Tensor = Any

TILES = {2: (64, 64, 4), 4: (64, 32, 4), 8: (32, 32, 4), 16: (32, 16, 4)}
"""Rows and columns of a tile, and warps of its program, by bytes of an element."""

ALIGNED = 128
"""Slabs of the batch are multiples of this number of columns, if the bound on the workspace permits it."""


def naive_gather(source: Tensor, target: Tensor, inner: int = 1, d: int = 1) -> None:
    """Compute `gather_transposed` by torch."""
    natural = source.mT.unflatten(0, (-1, inner, d))
    target.unflatten(0, (-1, d, inner)).copy_(natural.transpose(1, 2))


def naive_scatter(source: Tensor, target: Tensor, inner: int = 1, d: int = 1) -> None:
    """Compute `scatter_transposed` by torch."""
    natural = target.mT.unflatten(0, (-1, inner, d))
    natural.copy_(source.unflatten(0, (-1, d, inner)).transpose(1, 2))


def gather_transposed(source: Tensor, target: Tensor, inner: int = 1, d: int = 1) -> None:
    """Compute target (a d inner, n) of source (n, a inner d): X^T with its rows (i, q, j) in the order (i, j, q).

    With d = 1 that is the transposition alone. Rows of both are contiguous. Bits are moved, so that any dtype of 2, 4,
    8 or 16 bytes can be transposed; 16 are moved as pairs of 8.
    """
    _launch(source, target, inner, d, gathers=d > 1)


def scatter_transposed(source: Tensor, target: Tensor, inner: int = 1, d: int = 1) -> None:
    """Compute target (n, a inner d) of source (a d inner, n): the inverse of `gather_transposed`."""
    _launch(source, target, inner, d, scatters=d > 1)


def _launch(source: Tensor, target: Tensor, inner: int, d: int, gathers: bool = False, scatters: bool = False) -> None:
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
        inner,
        D=d,
        GATHERS=gathers,
        SCATTERS=scatters,
        R=height,
        C=width,
        W=words,
        num_warps=warps,
    )


def gathered_blocks(matrix: Tensor, inner: int = 1, d: int = 1) -> Tensor:
    """Return the blocks (a d, inner, n) of a batch-first matrix (a inner d, n), contiguous; on a GPU by our kernel."""
    target = matrix.new_empty(matrix.shape)
    transpose = gather_transposed if _is_ours(matrix) else naive_gather
    transpose(matrix.mT, target, inner, d)
    return target.view(-1, inner, matrix.shape[1])


def batch_last(matrix: Tensor) -> Tensor:
    """Return the matrix (features, n) with contiguous rows; on a GPU a transposed one is copied by our kernel."""
    if matrix.is_contiguous() or not _is_ours(matrix):
        return matrix.contiguous()
    return gathered_blocks(matrix).view(matrix.shape)


def batch_first(blocks: Tensor, inner: int = 1, d: int = 1) -> Tensor:
    """Return the matrix (a inner d, n), batch-first, of contiguous blocks (a d, inner, n)."""
    source = blocks.reshape(-1, blocks.shape[-1])
    found = empty_result(source, len(source), first=True)
    transpose = scatter_transposed if _is_ours(found) else naive_scatter
    transpose(source, found.mT, inner, d)
    return found


def _is_ours(matrix: Tensor) -> bool:
    """Return whether our kernel transposes this batch-first matrix."""
    return matrix.is_cuda and matrix.stride(0) == 1 and matrix.itemsize in TILES and triton_reason() is None


@dataclass(frozen=True)
class TransposedProduct:
    """K1 ... KL X by slabs of the batch: the slab is transposed first (`first`), multiplied by all factors batch-last
    by GEMMs on views, and the result is transposed at the end (`last`).

    Transpositions gather the rows of every block (i, j), so that a factor between two of them is one batched GEMM of
    contiguous blocks. A slab has `slab` columns of the batch. The results between the steps are in two buffers.
    """

    patterns: tuple[Pattern, ...]
    first: bool
    last: bool
    slab: int

    @property
    def buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return alternating_rows(self.patterns, self.first, self.last)

    @property
    def calls(self) -> list[int]:
        """Batched GEMMs of every factor for a slab: one if the blocks of its input and its result are contiguous."""
        found = [min(one.a, one.d) for one in self.patterns]
        if len(found) == 1 and self.first and self.last:
            found = [1]
        return found

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

        a, _, c, d = self.patterns[-1].sizes
        if self.first:
            held = buffer(len(x))
            gather_transposed(x.mT, held, c, d)
            blocks = held.view(a, d, c, width)
        else:
            blocks = as_blocks(x, a, c, d)
        for place in reversed(range(1, len(factors))):
            held, after = buffer(self.patterns[place].rows), self.patterns[place - 1]
            self._multiply(factors, place, blocks, held)
            blocks = as_blocks(held, after.a, after.c, after.d)
        if not self.last:
            self._multiply(factors, 0, blocks, out)
            return
        a, b, _, d = self.patterns[0].sizes
        held = buffer(len(out))
        multiply_blocks(factors[0], blocks, held.view(a, d, b, width))
        scatter_transposed(held, out.mT, b, d)

    def _multiply(self, factors: Sequence[Tensor], place: int, blocks: Tensor, out: Tensor) -> None:
        a, b, _, d = self.patterns[place].sizes
        multiply_blocks(factors[place], blocks, as_blocks(out, a, b, d))


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
