"""From real solutions of the equations to rational ones: in a sparse basis entries are fixed at simple values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...schemes_db import Scheme, Target
from .arrays import Arrays, FloatArray
from .equations import Equations
from .rational import scheme_of

SOLVED = 1e-21
"""Sum of squares below which the equations hold: rounding errors leave 1e-28."""

LARGEST_DENOMINATOR = 24

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
            if self._free.sum() < len(self._x) // 4 and (exact := self._exact()) is not None:
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

    def _exact(self) -> Scheme | None:
        """Return the scheme of the entries rounded to small fractions, if they solve the equations."""
        factors = [
            np.vectorize(lambda value: Fraction(value).limit_denominator(LARGEST_DENOMINATOR), otypes=[object])(factor)
            for factor in self._equations.factors(self._x)
        ]
        return scheme_of(self._target, factors)
