"""Transposition of tensors by tiles, for any dtype, and products between two transpositions."""

from __future__ import annotations

from ..cuda.launch import starter
from .blocks import Factors, Tensor, empty_result
from .chain import FactorChain
from .tiles import triton_reason
from .views import PERMUTED, Ends, ViewChain, copied_ends, tensors_like

TILES = {2: (64, 64, 4), 4: (64, 32, 4), 8: (32, 32, 4), 16: (32, 16, 4)}
"""Rows and columns of a tile, and warps of its program, by bytes of an element."""


def transpose(source: Tensor, target: Tensor, inner: int = 1, d: int = 1, scatters: bool = False) -> None:
    """Compute target (a d inner, n) of source (n, a inner d): X^T with its rows (i, q, j) in the order (i, j, q).

    With d = 1 that is the transposition alone. `scatters`: the inverse, target (n, a inner d) of source (a d inner, n).
    Rows of both are contiguous. Bits are moved, so that any dtype of 2, 4, 8 or 16 bytes can be transposed; 16 are
    moved as pairs of 8.
    """
    import torch

    from .movement_kernels import transpose_words

    words = 2 if source.itemsize == 16 else 1
    word = {2: torch.int16, 4: torch.int32}.get(source.itemsize, torch.int64)
    height, width, warps = TILES[source.itemsize]
    rows, cols = source.shape
    programs = -(-rows // height) * -(-cols // width)
    starter(transpose_words, (programs,), source)(
        *(source.view(word), target.view(word), rows, cols, words * source.stride(0), words * target.stride(0), inner),
        **{"D": d, "GATHERS": d > 1 and not scatters, "SCATTERS": d > 1 and scatters},
        **{"R": height, "C": width, "W": words},
        num_warps=warps,
    )


TRANSPOSED_ENDS = Ends(
    lambda x, packed, outer, inner, d: transpose(x.mT, packed, inner, d),
    lambda packed, y, outer, inner, d: transpose(packed, y.mT, inner, d, scatters=True),
    first=False,
)
"""Batch-first ends are transposed, with the rows of every block (i, j) gathered: a factor between two transpositions is
one batched GEMM of contiguous blocks."""


def gathered_blocks(matrix: Tensor, inner: int = 1, d: int = 1) -> Tensor:
    """Return the blocks (a d, inner, n) of a batch-first matrix (a inner d, n), contiguous; on a GPU by our kernel."""
    target = matrix.new_empty(matrix.shape)
    _ends_of(matrix).gather(matrix, target, len(matrix) // (inner * d), inner, d)
    return target.view(-1, inner, matrix.shape[1])


def batch_last(matrix: Tensor) -> Tensor:
    """Return the matrix (features, n) with contiguous rows; on a GPU a transposed one is copied by our kernel."""
    if matrix.is_contiguous() or _ends_of(matrix) is PERMUTED:
        return matrix.contiguous()
    return gathered_blocks(matrix).view(matrix.shape)


def batch_first(blocks: Tensor, inner: int = 1, d: int = 1) -> Tensor:
    """Return the matrix (a inner d, n), batch-first, of contiguous blocks (a d, inner, n)."""
    source = blocks.reshape(-1, blocks.shape[-1])
    found = empty_result(source, len(source), first=True)
    _ends_of(found).scatter(source, found, len(source) // (inner * d), inner, d)
    return found


def _ends_of(matrix: Tensor) -> Ends:
    """Return how this batch-first matrix is copied: by our kernel, or by torch where it does not transpose it."""
    ours = matrix.is_cuda and matrix.stride(0) == 1 and matrix.itemsize in TILES and triton_reason() is None
    return TRANSPOSED_ENDS if ours else PERMUTED


def multiply_transposed(chain: ViewChain, factors: Factors, x: Tensor, out: Tensor) -> None:
    """Compute out (rows, n) = W x (cols, n) between transpositions of the ends that the chain's GEMMs do not read."""
    chain.run(factors, x, out, TRANSPOSED_ENDS, tensors_like(x, int))


def transposed_reason(structure: FactorChain, first: bool, last: bool) -> str | None:
    """Return the reason why a product cannot run between transpositions of batch-first ends, or None."""
    if not any(copied_ends(structure, first, last)):
        return "X and the result can be read as they are: nothing is to be transposed"
    return triton_reason()
