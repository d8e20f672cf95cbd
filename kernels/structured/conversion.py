"""Exact conversion between block low-rank matrices and Kronecker-sparse chains: the same parameters, reshaped."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import PlanError
from .block_low_rank import LowRank, Monarch
from .block_low_rank_matrix import BlockLowRankMatrix
from .matrix import KroneckerMatrix
from .pattern import Pattern


def to_kronecker(matrix: BlockLowRankMatrix) -> KroneckerMatrix:
    """Convert a low-rank matrix to (1, M, r, 1)(1, r, N, 1), a Monarch matrix to (1, q, b1 r, b2)(b1, b2 r, p, 1).

    Raises:
        PlanError: BLAST is no Kronecker-sparse chain of these, or the Monarch matrix is not interleaved.
    """
    structure = matrix.structure
    if isinstance(structure, LowRank):
        first, second = Pattern(1, structure.rows, structure.rank, 1), Pattern(1, structure.rank, structure.cols, 1)
    elif isinstance(structure, Monarch):
        if not structure.interleaved:
            raise PlanError("a Monarch matrix is a Kronecker-sparse chain where it is interleaved; permute its outputs")
        b1, b2, r = structure.b1, structure.b2, structure.rank
        first, second = Pattern(1, structure.q, b1 * r, b2), Pattern(b1, b2 * r, structure.p, 1)
    else:
        raise PlanError(f"{structure.name} is no Kronecker-sparse chain of two factors")
    pairs = zip(matrix.factors, (first, second), strict=True)
    factors = tuple(weights.reshape(pattern.parameter_shape) for weights, pattern in pairs)
    return KroneckerMatrix((first, second), factors, matrix.dtype)


def monarch_of(patterns: Sequence[Pattern]) -> Monarch | None:
    """Return the interleaved Monarch structure that two Kronecker-sparse patterns are; None if they are none.

    Its factors are those of the patterns, reshaped.
    """
    if len(patterns) != 2:
        return None
    left, right = patterns
    if left.a != 1 or right.d != 1 or left.c % right.a or right.b != left.d * (left.c // right.a):
        return None
    rank = left.c // right.a
    if rank > min(left.b, right.c):
        return None
    return Monarch(left.rows, right.cols, right.a, left.d, rank, interleaved=True)


def from_kronecker(matrix: KroneckerMatrix) -> BlockLowRankMatrix:
    """Invert `to_kronecker`.

    Raises:
        PlanError: the patterns are neither those of a low-rank nor of a Monarch matrix.
    """
    if len(matrix.patterns) != 2:
        raise PlanError(f"{matrix!r} has {len(matrix.patterns)} factors; low-rank and Monarch matrices have two")
    left, right = matrix.patterns
    if left.a == left.d == right.a == right.d == 1:
        low = LowRank(left.rows, right.cols, left.c)
        return BlockLowRankMatrix(low, tuple(w.reshape(w.shape[2:]) for w in matrix.factors), matrix.dtype)
    structure = monarch_of(matrix.patterns)
    if structure is None:
        raise PlanError(f"{matrix!r} is no Monarch matrix; (1, q, b1 r, b2)(b1, b2 r, p, 1) is needed")
    shapes = structure.factor_shapes
    return BlockLowRankMatrix(
        structure, tuple(w.reshape(shape) for w, shape in zip(matrix.factors, shapes, strict=True)), matrix.dtype
    )
