"""From real solutions of the equations to schemes: in a sparse basis entries are fixed at simple values.

The numerators of a rational solution become as small as scalings of products and of bases allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schemes_db import Q, Scheme, Target, Z
from .arrays import Arrays, FloatArray
from .equations import Equations

SOLVED = 1e-21
"""Sum of squares below which the equations hold: rounding errors leave 1e-28."""

LARGEST = 1 << 15
"""Largest numerator or denominator: larger ones are no simple values, and their products may not fit 64 bits."""

RATIOS = (Fraction(2), Fraction(1, 2), Fraction(3), Fraction(1, 3))
"""What a basis vector is multiplied by, if that leaves smaller denominators."""

Rationals = npt.NDArray[Any]
"""(R, blocks) of Fractions."""

LARGEST_DENOMINATOR = 24

_rounded = np.vectorize(lambda entry: Fraction(entry).limit_denominator(LARGEST_DENOMINATOR), otypes=[object])
"""Round entries to small fractions."""

SPARSE_STEPS = 110
LOG_WEIGHT, WIDE, NARROW = 4e-4, 0.4, 0.02
"""Weight of sum log(1 + (x/e)^2) while a basis becomes sparse, and the first and last e. With a weight of 3e-3 products
vanish. At 3x3x4:29, of 957 entries, 700 to 750 become 0 so, and three of four attempts give rational factors; without a
sparse basis none of four does."""

FIRST_VALUES = (0.0, 1.0, -1.0)
VALUES = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.25, -0.25)
"""Values that entries are fixed at: the first until none fits any more, then all."""

MANY_STEPS, FEW_STEPS = 60, 22
FAILURES, KICKS = 8, 20
"""Failures with a single entry until entries are released again, and how often they are."""


def discretised(target: Target, x: FloatArray, rank: int, rng: np.random.Generator) -> Scheme | None:
    """Return a rational scheme near a real solution in some basis, or None.

    Args:
        target: a full product.
        x: (size,), factors as in `Equations`.
        rng: of the random basis that the search for a sparse one starts from.
    """
    equations = Equations(target, rank, Arrays())
    sparse = _scaled(equations, _sparse(equations, _turned(equations, x, rng)))
    return _Rounding(target, equations, sparse, rng).run()


def _turned(equations: Equations, x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return x in random orthogonal bases of the three sides."""
    m, k, n = equations.shape
    p, q, s = (np.linalg.qr(rng.standard_normal((side, side)))[0] for side in (m, k, n))
    u, v, w = equations.factors(x)
    u = np.einsum("pi,rij,qj->rpq", p, u.reshape(-1, m, k), q)
    v = np.einsum("qj,rjl,sl->rqs", q, v.reshape(-1, k, n), s)
    w = np.einsum("pi,ril,sl->rps", p, w.reshape(-1, m, n), s)
    return equations.flat([factor.reshape(equations.rank, -1) for factor in (u, v, w)])


def _balanced(equations: Equations, x: FloatArray) -> FloatArray:
    """Return x with factors of a product scaled to the same norm."""
    parts = equations.split(x[None])
    norms = [np.linalg.norm(part, axis=2, keepdims=True) for part in parts]
    mean = np.cbrt(np.prod(norms, axis=0))
    return np.asarray(equations.join(*(part * (mean / norm) for part, norm in zip(parts, norms, strict=True)))[0])


def _scaled(equations: Equations, x: FloatArray) -> FloatArray:
    """Return x with the largest entry of the first two factors of every product scaled to 1."""
    u, v, w = equations.split(x[None])
    for part in (u, v):
        largest = np.take_along_axis(part, abs(part).argmax(2)[:, :, None], 2)
        part /= largest
        w = w * largest
    return np.asarray(equations.join(u, v, w)[0])


def _sparse(equations: Equations, x: FloatArray) -> FloatArray:
    """Return a solution near x that is sparse: Levenberg-Marquardt on |residual|^2 + weight sum log(1 + (x/e)^2)."""
    x = _balanced(equations, x)
    damping, growth, weight = 1e-2, 2.0, LOG_WEIGHT

    def cost(x: FloatArray, residual: FloatArray) -> float:
        excess = (abs(x) - 1.3).clip(0)
        return float((residual**2).sum() + 0.3 * (excess**2).sum() + weight * np.log1p((x / width) ** 2).sum())

    for step in range(SPARSE_STEPS):
        width = WIDE * (NARROW / WIDE) ** min(1, step / (0.8 * SPARSE_STEPS))
        if step > 0.85 * SPARSE_STEPS:
            weight *= 0.6
        residual = equations.residual(x[None])
        slope, excess = weight / (x * x + width * width), (abs(x) - 1.3).clip(0)
        gradient = equations.gradient(x[None], residual)[0] + slope * x + 0.3 * excess * np.sign(x)
        matrix = equations.normal(x[None])[0]
        matrix[np.diag_indices_from(matrix)] += slope + damping + 0.3 * (excess > 0)
        moved = x - np.linalg.solve(matrix, gradient)
        if cost(moved, equations.residual(moved[None])) < cost(x, residual):
            x, damping, growth = moved, max(0.4 * damping, 1e-9), 2.0
        else:
            damping, growth = min(growth * damping, 1e3), min(2 * growth, 32)
    return x


class _Rounding:
    """A solution of which more and more entries are fixed at simple values while the others keep the equations."""

    def __init__(self, target: Target, equations: Equations, x: FloatArray, rng: np.random.Generator) -> None:
        self._target, self._equations, self._rng, self._x = target, equations, rng, x
        self._free = np.ones(len(x), dtype=bool)

    def run(self) -> Scheme | None:
        """Return an exact scheme, or None after KICKS releases in vain."""
        polished = self._solve(self._x, self._free, MANY_STEPS)
        if polished is None:
            return None
        self._x = polished
        self._best = (self._x, self._free)
        zeros_first = 1.0
        for _ in range(KICKS):
            for values in (FIRST_VALUES, VALUES):
                self._fix(np.array(values), zeros_first)
            if self._free.sum() < len(self._x) // 4:
                exact = scheme_of(self._target, [_rounded(factor) for factor in self._equations.factors(self._x)])
                if exact is not None:
                    return exact
            self._release()
            zeros_first = self._rng.choice((0.4, 1.0))
        return None

    def _fix(self, values: FloatArray, zeros_first: float) -> None:
        """Fix entries at the nearest values, many at once, until FAILURES single ones in a row fail.

        Distances to 0 are multiplied by `zeros_first`.
        """
        x, free = self._x, self._free
        refused = np.zeros_like(free)
        count, failures = max(4, len(x) // 60), 0
        while failures < FAILURES and (open_ := np.flatnonzero(free & ~refused)).size:
            distances = abs(x[open_, None] - values)
            distances[:, 0] *= zeros_first
            distances[:, 3:] += 0.02
            nearest, distances = distances.argmin(1), distances.min(1)
            order = np.argsort(distances, kind="stable")
            chosen = order[: max(count, int((distances < 1e-8).sum()))]
            trial, rest = x.copy(), free.copy()
            trial[open_[chosen]], rest[open_[chosen]] = values[nearest[chosen]], False
            solved = self._solve(trial, rest, FEW_STEPS)
            if solved is not None and abs(solved).max() < 6:
                x, free, failures = solved, rest, 0
                count = int(1.5 * count) + 1
                if len(chosen) > 1:
                    refused[:] = False
            elif len(chosen) == 1:
                refused[open_[chosen]] = True
                failures += 1
            else:
                count = max(1, len(chosen) // 3)
        self._x, self._free = x, free
        if free.sum() < self._best[1].sum():
            self._best = (x, free)

    def _release(self) -> None:
        """Release a random share of the fixed entries, mostly of the state with the fewest free ones."""
        if self._rng.random() < 0.6:
            self._x, self._free = self._best
        self._free = self._free | (self._rng.random(len(self._x)) < 0.1 + 0.4 * self._rng.random())

    def _solve(self, x: FloatArray, free: FloatArray, steps: int) -> FloatArray | None:
        """Return the solution near x with the entries that are not free as they are, or None."""
        equations, which = self._equations, np.flatnonzero(free)
        damping, growth = 1e-5, 2.0
        residual = equations.residual(x[None])
        square = float((residual**2).sum())
        for step in range(steps):
            if square < SOLVED:
                return x
            if step == steps // 2 and square > 1e-3:
                return None
            gradient = equations.gradient(x[None], residual)[0][which]
            matrix = equations.normal(x[None])[0][np.ix_(which, which)]
            matrix[np.diag_indices_from(matrix)] += damping
            try:
                direction = np.linalg.solve(matrix, -gradient)
            except np.linalg.LinAlgError:
                return None
            moved = x.copy()
            moved[which] += direction
            its_residual = equations.residual(moved[None])
            its_square = float((its_residual**2).sum())
            if its_square < square:
                damping, growth = max(damping * (0.1 if its_square < 0.1 * square else 0.4), 1e-12), 2.0
                x, residual, square = moved, its_residual, its_square
            else:
                damping, growth = damping * growth, 2 * growth
        return x if square < SOLVED else None


def scheme_of(target: Target, factors: Sequence[Rationals]) -> Scheme | None:
    """Return the scheme of the factors U, V and W of a full product, in a basis with small denominators, or None.

    None means that the factors do not solve the equations, which integers decide, or a coefficient beyond LARGEST.
    """
    if any(not factor.any(axis=1).all() for factor in factors):
        return None  # a product without an entry
    numerators, denominators = [], []
    for factor in _simplest(target, factors):
        common = lcm(*(entry.denominator for entry in factor.flat))
        if max(common, *(abs(entry.numerator) for entry in factor.flat)) > LARGEST:
            return None
        numerators.append(np.array((factor * common).tolist(), dtype=np.int64))
        denominators.append(common)
    wanted = np.zeros(tuple(factor.shape[1] for factor in numerators), dtype=np.int64)
    wanted[tuple(target.terms.T)] = target.term_values
    if not np.array_equal(np.einsum("ra,rb,rc->abc", *numerators, optimize=True), wanted * prod(denominators)):
        return None
    u, v, w = (f.reshape(-1, *kinds.shape) for f, kinds in zip(numerators, target.kind_arrays, strict=True))
    a, b, c = denominators
    return Scheme.from_arrays(target, u, v, w, Z if a * b * c == 1 else Q, denominators=(a, b, c))


def _simplest(target: Target, factors: Sequence[Rationals]) -> list[Rationals]:
    """Return factors with primitive integers in U and V and, after scalings of the bases, small denominators in W."""
    best = _primitive(factors)
    price = _price(best)
    improved = True
    while improved and price:
        improved = False
        for side in range(3):
            for index in range(target.shape[side]):
                for ratio in RATIOS:
                    scaled = _primitive(_rescaled(target, best, side, index, ratio))
                    if (its_price := _price(scaled)) < price:
                        best, price, improved = scaled, its_price, True
    return best


def _primitive(factors: Sequence[Rationals]) -> list[Rationals]:
    """Return the factors with the rows of U and V scaled to coprime integers, which W makes up for."""
    u, v, w = (factor.copy() for factor in factors)
    for factor in (u, v):
        for row, other in zip(factor, w, strict=True):
            entries = [entry for entry in row if entry]
            content = Fraction(
                gcd(*(entry.numerator for entry in entries)), lcm(*(entry.denominator for entry in entries))
            )
            row /= content
            other *= content
    return [u, v, w]


def _price(factors: Sequence[Rationals]) -> int:
    """Return how far W is from integers: the sum over the products of the bits of its denominators."""
    return sum(lcm(*(entry.denominator for entry in row)).bit_length() - 1 for row in factors[2])


def _rescaled(target: Target, factors: Sequence[Rationals], side: int, index: int, ratio: Fraction) -> list[Rationals]:
    """Return the factors with a basis vector of the side m, k or n multiplied: one operand by `ratio`, one by 1/ratio.

    A row of A and the same row of C; a column of A and the row of B; a column of B and the same column of C.
    """
    u, v, w = (f.reshape(-1, *kinds.shape).copy() for f, kinds in zip(factors, target.kind_arrays, strict=True))
    (one, first), (other, second) = (((u, 1), (w, 1)), ((u, 2), (v, 1)), ((v, 2), (w, 2)))[side]
    one.swapaxes(0, first)[index] *= ratio
    other.swapaxes(0, second)[index] /= ratio
    return [factor.reshape(len(factor), -1) for factor in (u, v, w)]
