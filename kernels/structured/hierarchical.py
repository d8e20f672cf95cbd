"""Dense to Kronecker-sparse: hierarchical factorisation by truncated SVDs of blocks, for chainable lists of patterns.

The factors are split off one by one from the left. Each split is optimal for its two factors: the blocks
that the pair can represent are disjoint, and a truncated SVD of each is optimal. The left factor has orthonormal
columns within every block, so that errors of later splits are not amplified.

Source: Le, Zheng, Riccietti, Gribonval, "Butterfly Factorization with Error Guarantees" (arXiv 2411.04506): two
chainable factors are optimal, and a list factorised from left to right is within sqrt(L - 1) of the least error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import PlanError
from ..cpu.threads import parallel_tasks, single_threaded_blas, thread_count
from ..ranges import ranges
from .blocks import Array, Matrix, contiguous, permuted
from .matrix import FactoredMatrix
from .naive import dense_factor, factor_parameters
from .pattern import Pattern, chain_pattern, chain_rank, chain_reason, check_composes

SVDS_AT_ONCE = 256
"""Number of blocks whose SVDs are computed by one call."""


@dataclass(frozen=True)
class Factorization:
    """Factors of an approximation of W, with errors relative to the Frobenius norm of W.

    For chainable lists: `bound` = sqrt(sum of e_l^2) over the splits l of the list in two, with e_l the
    least error of any product of the two parts, bounds the error; `least` = the largest e_l bounds it from below for
    any factors. None if unknown.
    """

    matrix: FactoredMatrix
    error: float
    bound: float | None = None
    least: float | None = None


def hierarchical(
    dense: Matrix, patterns: Sequence[Pattern], on_event: Callable[[str], None] = lambda line: None
) -> Factorization:
    """Compute factors whose product approximates a dense matrix (rows, cols) within sqrt(L - 1) of the least error.

    Computed in the matrix's own dtype, float32 at least.

    Raises:
        PlanError: the list is not chainable, or not of the matrix's size.
    """
    patterns = tuple(patterns)
    check_composes(patterns)
    if reason := chain_reason(patterns):
        raise PlanError(f'{reason}; factorize such a list by="alternating" or by="gradient"')
    check_size(dense, patterns)
    whole = chain_pattern(patterns)
    rest = factor_parameters(workable(dense), whole)
    squares = float(np.linalg.norm(dense)) ** 2
    outside = 0.0 if whole.density == 1 else float(np.linalg.norm(dense - dense_factor(rest, whole))) ** 2
    errors, factors = [], []
    lost = outside
    for place in range(len(patterns) - 1):
        on_event(f"factor {place + 1} of {len(patterns)}: {patterns[place]}")
        left, rest, dropped = two_factors(rest, patterns[place], chain_pattern(patterns[place + 1 :]))
        factors.append(left)
        errors.append(dropped)
        lost += dropped
    norm = math.sqrt(squares) or 1.0
    parts = [outside + lost for lost in errors[:1]]  # the first split is of the matrix itself
    parts += [outside + _least_error(dense, patterns, place) for place in range(2, len(patterns))]
    bound = math.sqrt(outside + sum(part - outside for part in parts)) / norm
    least = math.sqrt(max(parts, default=outside)) / norm
    found = FactoredMatrix.of(patterns, [*factors, rest])
    return Factorization(found, math.sqrt(lost) / norm, bound, least)


def two_factors(weights: Matrix, left: Pattern, right: Pattern) -> tuple[Matrix, Matrix, float]:
    """Compute the best two factors of a matrix with the pattern of their product; return them and the squared error.

    weights (a1, d2, b1 d1 / d2, a2 c2 / a1). The blocks of the product, one for each block row of the right factor and
    each diagonal place of the left one, are b1 x c2 and of rank r: their truncated SVDs are the factors.
    """
    blocks, rank = rank_blocks(weights, left, right)
    kept = min(rank, left.b, right.c)
    u = np.zeros((len(blocks), left.b, rank), weights.dtype)
    v = np.zeros((len(blocks), rank, right.c), weights.dtype)

    def one(some: slice) -> float:
        first, values, second = np.linalg.svd(blocks[some], full_matrices=False)
        u[some, :, :kept] = first[:, :, :kept]
        v[some, :kept] = values[:, :kept, None] * second[:, :kept]
        return float((values[:, kept:].astype(np.float64) ** 2).sum())

    dropped = _sum_over_pieces(one, len(blocks))
    return *factors_of_blocks(u, v, left, right), dropped


def rank_blocks(weights: Array, left: Pattern, right: Pattern) -> tuple[Array, int]:
    """Return the blocks (count, b1, c2) of a matrix of a product's pattern, and their rank in a product."""
    rank = chain_rank(left, right)
    assert rank is not None  # the list was checked before
    shape = left.a, right.d, left.b, left.d // right.d, right.a // left.a, right.c
    return permuted(weights.reshape(shape), (0, 4, 3, 1, 2, 5)).reshape(-1, left.b, right.c), rank


def factors_of_blocks(u: Array, v: Array, left: Pattern, right: Pattern) -> tuple[Array, Array]:
    """Return the parameters (a, d, b, c) of two factors whose product has the `rank_blocks` u v."""
    outer = left.a, right.a // left.a, left.d // right.d, right.d
    first = permuted(u.reshape(*outer, *u.shape[1:]), (0, 2, 3, 4, 1, 5)).reshape(left.parameter_shape)
    second = permuted(v.reshape(*outer, *v.shape[1:]), (0, 1, 3, 4, 2, 5)).reshape(right.parameter_shape)
    return contiguous(first), contiguous(second)


def _least_error(dense: Matrix, patterns: tuple[Pattern, ...], place: int) -> float:
    """Return the least squared error of two factors of the patterns of the first `place` and of the remaining ones."""
    left, right = chain_pattern(patterns[:place]), chain_pattern(patterns[place:])
    blocks, rank = rank_blocks(factor_parameters(workable(dense), chain_pattern(patterns)), left, right)

    def one(some: slice) -> float:
        values = np.linalg.svd(blocks[some], compute_uv=False)
        return float((values[:, rank:].astype(np.float64) ** 2).sum())

    return _sum_over_pieces(one, len(blocks))


def _sum_over_pieces(one: Callable[[slice], float], blocks: int) -> float:
    """Return the sum, in a fixed order, of `one` over slices of the blocks, each computed by one thread."""
    pieces = list(ranges(blocks, -(-blocks // SVDS_AT_ONCE)))
    found = [0.0] * len(pieces)

    def task(place: int, _: int) -> None:
        found[place] = one(slice(*pieces[place]))

    with single_threaded_blas():
        parallel_tasks(task, len(pieces), thread_count())
    return sum(found)


def check_size(dense: Matrix, patterns: Sequence[Pattern]) -> None:
    """Check that a dense matrix has the sizes of a product and finite entries.

    Raises:
        PlanError: it has not.
    """
    wanted = patterns[0].rows, patterns[-1].cols
    if dense.shape != wanted:
        raise PlanError(f"the patterns are of a {wanted[0]} x {wanted[1]} matrix, not of one of shape {dense.shape}")
    if not np.isfinite(dense).all():
        raise PlanError("the matrix has entries that are infinite or NaN; there is nothing near it")


def workable(dense: Matrix) -> Matrix:
    """Return a matrix in a dtype for sums."""
    return dense.astype(np.float32) if dense.dtype == np.float16 else dense
