"""Approximation of a dense matrix by Kronecker-sparse factors.

Chainable lists are factorised by truncated SVDs of blocks, split off one by one from the left. Each split is optimal
for its two factors: the blocks that the pair can represent are disjoint, and a truncated SVD of each is optimal. The
left factor has orthonormal columns within every block, so that errors of later splits are not amplified. Any list that
composes is approximated by alternating least squares.

Source: Le, Zheng, Riccietti, Gribonval, "Butterfly Factorization with Error Guarantees" (arXiv 2411.04506): two
chainable factors are optimal, and a list factorised from left to right is within sqrt(L - 1) of the least error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.masks import refuse_masks
from .blocks import Array, Matrix, apply_factors, apply_transposed
from .chain import KroneckerSparse
from .matrix import FactoredMatrix
from .naive import dense_factor, factor_parameters
from .outer import outer_blocks
from .pattern import Pattern, chain_pattern, chain_reason, check_composes
from .truncation import dropped_squares, factors_of_blocks, rank_blocks, truncated


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
        PlanError: the list is not chainable.
    """
    if reason := chain_reason(patterns):
        raise PlanError(f'{reason}; factorize such a list by="alternating"')
    whole = chain_pattern(patterns)
    within = rest = factor_parameters(workable(dense), whole)
    squares = float(np.linalg.norm(dense)) ** 2
    outside = 0.0 if whole.density == 1 else float(np.linalg.norm(dense - dense_factor(rest, whole))) ** 2
    factors, parts = [], []
    lost = outside
    for place in range(1, len(patterns)):
        on_event(f"factor {place} of {len(patterns)}: {patterns[place - 1]}")
        first, second = chain_pattern(patterns[:place]), chain_pattern(patterns[place:])
        left, rest, dropped = two_factors(rest, patterns[place - 1], second)
        factors.append(left)
        lost += dropped
        # The first split is of the matrix itself.
        parts.append(dropped if place == 1 else dropped_squares(*rank_blocks(within, first, second)))
    norm = math.sqrt(squares) or 1.0
    bound = math.sqrt(outside + sum(parts)) / norm
    least = math.sqrt(outside + max(parts, default=0.0)) / norm
    found = FactoredMatrix.of(patterns, [*factors, rest])
    return Factorization(found, math.sqrt(lost) / norm, bound, least)


def two_factors(weights: Matrix, left: Pattern, right: Pattern) -> tuple[Matrix, Matrix, float]:
    """Return the best two factors of a matrix with the pattern of their product, and the squared error.

    The left one has orthonormal columns within every block.
    """
    u, v, dropped = truncated(*rank_blocks(weights, left, right), shared=False)
    return *factors_of_blocks(u, v, left, right), dropped


def workable(dense: Matrix) -> Matrix:
    """Return a matrix in a dtype for sums."""
    return dense.astype(np.float32) if dense.dtype == np.float16 else dense


Say = Callable[[str], None]

ALGORITHMS = ("hierarchical", "alternating")

SWEEPS, SOLVES = 10, 8
"""Rounds over all factors, and steps of conjugate gradients for each factor of a round."""

SILENT = 1e-14
"""A relative residual below this is rounding."""


def factorize(
    dense: npt.ArrayLike,
    patterns: Sequence[Pattern],
    by: str = "hierarchical",
    *,
    seed: int = 0,
    on_event: Say = lambda _: None,
) -> Factorization:
    """Compute factors K1 ... KL with these patterns whose product approximates a dense matrix (rows, cols).

    "hierarchical" is for chainable lists: optimal for two factors, within sqrt(L - 1) of the optimum for L.
    "alternating" (least squares for one factor after the other) accepts any list that composes, without guarantees;
    `seed` is for its random start.

    Raises:
        PlanError: the matrix is no floating-point matrix of the list's size, the list does not compose, or it is not
            chainable and `by` is "hierarchical".
    """
    need(str, by=by)
    need(INTEGER, least=0, seed=seed)
    check_composes(patterns)
    refuse_masks(dense=dense)
    matrix: npt.NDArray[Any] = np.asarray(dense)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fc":
        raise PlanError(f"a floating-point matrix is factorised, not {matrix.dtype} of shape {matrix.shape}")
    if matrix.shape != (wanted := (patterns[0].rows, patterns[-1].cols)):
        raise PlanError(f"the patterns are of a {wanted[0]} x {wanted[1]} matrix, not of one of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise PlanError("the matrix has entries that are infinite or NaN; there is nothing near it")
    if by == "hierarchical":
        return hierarchical(matrix, patterns, on_event)
    if by == "alternating":
        return alternating(matrix, patterns, seed=seed, on_event=on_event)
    if by == "gradient":
        raise PlanError("gradient was removed: another is faster (docs/benchmarks/removed.md); use alternating")
    raise PlanError(f"by must be one of {', '.join(ALGORITHMS)}, not {by!r}")


def alternating(
    dense: Matrix, patterns: Sequence[Pattern], *, seed: int = 0, on_event: Say = lambda _: None
) -> Factorization:
    """Approximate a dense matrix by least squares for one factor after the other, the others fixed.

    Each least-squares problem is solved by a few steps of conjugate gradients from the current factor, so that the
    error never increases. The result depends on the random start.
    """
    dense = workable(dense)
    factors = _start(dense, patterns, seed)
    norm = float(np.linalg.norm(dense)) or 1.0
    error = 1.0
    for sweep in range(SWEEPS):
        for place in range(len(patterns)):
            residual = _solve(dense, factors, patterns, place)
        error = residual / norm
        on_event(f"sweep {sweep + 1} of {SWEEPS}: relative error {error:.3e}")
    return Factorization(FactoredMatrix.of(patterns, factors), error)


def _start(dense: Matrix, patterns: Sequence[Pattern], seed: int) -> list[Matrix]:
    """Return random factors whose product has the norm of a matrix."""
    factors = list(KroneckerSparse(tuple(patterns)).draw(np.random.default_rng(seed), dense.dtype.name))
    drawn = float(np.linalg.norm(_product(factors, patterns)))
    scale = (float(np.linalg.norm(dense)) / drawn) ** (1 / len(factors)) if drawn else 1.0
    return [(weights * scale).astype(dense.dtype) for weights in factors]


def _product(factors: Sequence[Matrix], patterns: Sequence[Pattern], start: int = 0) -> Array:
    """Return the product of the factors from one on as a dense matrix."""
    eye = np.eye(patterns[-1].cols, dtype=factors[0].dtype)
    return apply_factors(factors[start:], patterns[start:], eye)


def _solve(dense: Matrix, factors: list[Matrix], patterns: Sequence[Pattern], place: int) -> float:
    """Improve one factor by conjugate gradients on min |P K Q - W|; returns the norm of the residual."""
    one, right = patterns[place], _product(factors, patterns, place + 1)

    def forward(weights: Matrix) -> Array:
        return apply_factors([*factors[:place], weights], patterns[: place + 1], right)

    def backward(residual: Matrix) -> Matrix:
        left = apply_transposed(factors[:place], patterns[:place], residual)
        return outer_blocks(left, right.conj(), one.a, one.d)

    residual = dense - forward(factors[place])
    slope = backward(residual)
    search, size = slope, float(np.vdot(slope, slope).real)
    limit = (SILENT * float(np.linalg.norm(dense))) ** 2
    for _ in range(SOLVES):
        image = forward(search)
        length = float(np.vdot(image, image).real)
        if size <= limit * 1e-6 or length <= limit * 1e-6:
            break
        step = size / length
        factors[place] = factors[place] + step * search
        residual = residual - step * image
        slope = backward(residual)
        size, before = float(np.vdot(slope, slope).real), size
        search = slope + (size / before) * search
    return float(np.linalg.norm(residual))
