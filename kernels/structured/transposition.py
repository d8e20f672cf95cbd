"""Transposition of tensors by tiles, for any dtype, and products between two transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..cuda.launch import starter
from .blocks import Tensor, alternating_rows, empty_result
from .chain import FactorChain
from .tiles import triton_reason
from .views import Ends, FactorStep, ViewChain, copied_ends, steps_of, tensors_like, view_chain

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
        *(source.view(word), target.view(word), rows, cols, words * source.stride(0), words * target.stride(0), inner),
        **{"D": d, "GATHERS": gathers, "SCATTERS": scatters, "R": height, "C": width, "W": words},
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


TRANSPOSED_ENDS = Ends(
    lambda x, packed, outer, inner, d: gather_transposed(x.mT, packed, inner, d),
    lambda packed, y, outer, inner, d: scatter_transposed(packed, y.mT, inner, d),
    first=False,
)
"""Batch-first ends are transposed, with the rows of every block (i, j) gathered: a factor between two transpositions is
one batched GEMM of contiguous blocks."""


@dataclass(frozen=True)
class TransposedProduct:
    """W X between transpositions of the ends that no GEMM reads (`first`, `last`), by slabs of the batch."""

    structure: FactorChain
    first: bool
    last: bool
    slab: int

    @property
    def steps(self) -> tuple[FactorStep, ...]:
        """The steps between the transpositions."""
        return steps_of(self.structure, self.first, self.last)

    @cached_property
    def _chain(self) -> ViewChain:
        return view_chain(self.structure, self.first, self.last)

    @property
    def buffer_rows(self) -> tuple[int, int]:
        """Rows of the two buffers that a slab alternates between."""
        return alternating_rows(self.structure.patterns, self.first, self.last)

    def workspace(self, n: int, item: int) -> int:
        """Return the bytes of the buffers."""
        return sum(self.buffer_rows) * min(self.slab, n) * item

    def run(self, factors: Sequence[Tensor], x: Tensor, out: Tensor) -> None:
        """Compute out (rows, n) = W x (cols, n)."""
        for start in range(0, x.shape[1], self.slab):
            some = slice(start, start + self.slab)
            self._chain.run(factors, x[:, some], out[:, some], TRANSPOSED_ENDS, tensors_like(x, int))


WHOLE, BOUNDED = 0, 1
"""Choices of a slab: the whole batch; the largest within the bound on the workspace. Slabs that fit the L2 cache of an
H200 took 1.9 to 8 times as long as the whole batch, for 50 of 51 patterns: their GEMMs are too small.
"""


def transposed_product(
    structure: FactorChain, n: int, first: bool, last: bool, choice: int, item: int, most: int | None
) -> TransposedProduct | None:
    """Return the product by one of the choices for a slab; None if BOUNDED has no slab, or one of the whole batch.

    `first`, `last`: X and the result are batch-first. `most` is in bytes.
    """
    whole = TransposedProduct(structure, *copied_ends(structure, first, last), max(n, 1))
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
