"""Exact conversion between block low-rank matrices and Kronecker-sparse chains: the same parameters, reshaped."""

from __future__ import annotations

from collections.abc import Sequence

from ...arguments import need
from ...errors import PlanError
from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from .matrix import FactoredMatrix
from .pattern import Pattern


def to_kronecker(matrix: FactoredMatrix) -> FactoredMatrix:
    """Convert a low-rank, interleaved Monarch or BLAST matrix to the chain of its structure, see `Chain.patterns`.

    Raises:
        PlanError: a Monarch matrix is not interleaved.
    """
    need(FactoredMatrix, matrix=matrix)
    return matrix.kronecker


def block_low_rank_of(patterns: Sequence[Pattern]) -> BlockLowRank | None:
    """Return the low-rank, interleaved Monarch or BLAST structure that has these patterns; None if none has."""
    left, right = patterns[0], patterns[-1]
    rows, cols = left.rows, right.cols
    guess: tuple[type[BlockLowRank], tuple[int, ...]]
    if len(patterns) == 3:
        guess = Blast, (rows, cols, right.a, left.a, left.c)
    elif len(patterns) == 2 and left.d == right.a == 1:
        guess = LowRank, (rows, cols, left.c)
    elif len(patterns) == 2:
        guess = Monarch, (rows, cols, right.a, left.d, left.c // right.a, True)
    else:
        return None
    try:
        found = guess[0](*guess[1])
    except PlanError:  # the rank exceeds its bound, or blocks do not divide a side
        return None
    return found if found.patterns == tuple(patterns) else None


def monarch_of(patterns: Sequence[Pattern]) -> Monarch | None:
    """Return the interleaved Monarch structure (1, q, b1 r, b2)(b1, b2 r, p, 1) with these patterns; None if none has.

    Its factors are theirs, reshaped. A low-rank chain is a Monarch matrix of one block.
    """
    found = block_low_rank_of(patterns)
    if isinstance(found, LowRank):
        return Monarch(found.rows, found.cols, 1, 1, found.rank, interleaved=True)
    return found if isinstance(found, Monarch) else None


def from_kronecker(matrix: FactoredMatrix) -> FactoredMatrix:
    """Invert `to_kronecker`.

    Raises:
        PlanError: the patterns are those of no low-rank, Monarch or BLAST matrix.
    """
    need(FactoredMatrix, matrix=matrix)
    structure = block_low_rank_of(matrix.patterns)
    if structure is None:
        raise PlanError(
            f"{matrix!r} is no low-rank, Monarch or BLAST matrix; (1, rows, r, 1)(1, r, cols, 1), "
            "(1, q, b1 r, b2)(b1, b2 r, p, 1) or (b2, q, r, 1)(1, b2, b1, r)(b1, r, p, 1) is needed"
        )
    factors = (weights.reshape(shape) for weights, shape in zip(matrix.factors, structure.factor_shapes, strict=True))
    return FactoredMatrix(structure, tuple(factors), matrix.dtype)
