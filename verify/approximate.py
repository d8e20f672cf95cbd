"""Schemes with rounded coefficients or powers of an infinitesimal: their error, and an exact scheme nearby.

None of them is valid. For the first kind the report states the largest residual of the Brent equations,
for the second (a border scheme: it computes A B + O(e)) the order at which they fail.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LcmaError, SchemeFormatError
from ..schemes_db import Certificate, Scheme
from ..schemes_db.display import line
from ..schemes_db.formats.reading import Entries, factor_of, ring_of
from ..schemes_db.gaussian import Gaussian, Number
from ..schemes_db.inexact import Approximation, Inexact, Row
from .exact import check_exact
from .outcome import Mismatch, Outcome
from .randomized import refuted

GRIDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Denominators d for which rounding to multiples of 1/d is tried."""

MAX_TERMS = 2_000_000
MAX_DENSE = 1 << 24
TINY = 1e-9
"""Coefficients below this count as rounding errors where decimals and powers of e occur together."""

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class ApproximateReport:
    """The verdict on a scheme that is not exact: never valid.

    `residual` is the largest magnitude of `got - wanted` over all Brent equations. With powers of e, `order` is
    the first power at which an equation fails and `first` that equation; 1 or more means a border
    scheme. `rounded` is an exact scheme that rounding gives (over multiples of 1/`grid`; with e = 1
    where all powers cancel), if one was found.
    """

    label: str
    format: str
    approximation: Approximation
    conventions: tuple[str, ...]
    residual: float
    seconds: float
    order: int | None = None
    first: Mismatch | None = None
    rounded: Scheme | None = None
    grid: int = 1
    notes: tuple[str, ...] = ()

    ok = False
    certificate: Certificate | None = None
    outcomes: tuple[Outcome, ...] = ()

    def __repr__(self) -> str:
        return line(f"report {self.headline()}")

    def headline(self) -> str:
        """Return the verdict in one line."""
        subject = f"FAIL {self.approximation.target} rank {self.approximation.rank}"
        close = ""
        if self.rounded is not None:
            how = f"rounded to multiples of 1/{self.grid}" if self.grid > 1 else "rounded to integers"
            how = "with e = 1" if self.approximation.has_powers else how
            close = f"; {how} it is exact over {self.rounded.ring}, digest {self.rounded.digest[:12]}"
        if not self.approximation.has_powers:
            return f"{subject}: coefficients are rounded, largest residual {self.residual:.1e}{close}"
        if self.order is None:
            return f"{subject}: coefficients have powers of e{close}"
        kind = "a border scheme, A B + O(e), " if self.order > 0 else "coefficients have powers of e, "
        return f"{subject}: {kind}first wrong at order {self.order}: {self.first}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "lcma_report": 1,
            "file": self.label,
            "ok": False,
            "target": self.approximation.target.name,
            "rank": self.approximation.rank,
            "format": self.format,
            "conventions": list(self.conventions),
            "approximate": "border" if self.approximation.has_powers else "float",
            "residual": self.residual if math.isfinite(self.residual) else None,
            "order": self.order,
            "rounded_digest": self.rounded.digest if self.rounded else None,
            "rounded_denominator": self.grid if self.rounded else None,
            "failure": self.headline().partition(": ")[2],
            "seconds": self.seconds,
            "certificate": None,
            "notes": list(self.notes),
        }


def judge_approximations(
    approximations: tuple[tuple[str, Approximation], ...], label: str, format: str, notes: tuple[str, ...] = ()
) -> ApproximateReport:
    """Report on the scheme of a file, read by the convention that gives the smallest error.

    Raises:
        LcmaError: the scheme or its numbers are too large to multiply out.
    """
    try:
        reports = [_judged(label, format, convention, one, notes) for convention, one in approximations]
    except OverflowError:
        raise SchemeFormatError("coefficients, or products of three, are beyond double precision", label) from None
    return min(reports, key=lambda report: (report.rounded is None, -(report.order or 0), report.residual))


def _judged(label: str, format: str, convention: str, one: Approximation, notes: tuple[str, ...]) -> ApproximateReport:
    start = time.perf_counter()
    order: int | None = None
    first: Mismatch | None = None
    rounded, grid = None, 1
    if one.has_powers:
        order, first, residual = _first_order(one)
        rounded = _rounded(one, 1) if order is None else None
    else:
        residual = _residual(one)
        for grid in GRIDS:
            rounded = _rounded(one, grid)
            if rounded is not None and not refuted(rounded) and check_exact(rounded).ok:
                break
            rounded = None
    elapsed = time.perf_counter() - start
    return ApproximateReport(label, format, one, (convention,), residual, elapsed, order, first, rounded, grid, notes)


def _residual(one: Approximation) -> float:
    """Return the largest |got - wanted| over all equations, in double precision."""
    u, v, w = (_dense(one, slot) for slot in range(3))
    terms, values = one.target.terms, one.target.term_values
    worst = 0.0
    with np.errstate(all="ignore"):
        for p in range(u.shape[1]):
            sums = (v * u[:, p : p + 1]).T @ w
            mine = terms[:, 0] == p
            sums[terms[mine, 1], terms[mine, 2]] -= values[mine]
            worst = max(worst, float(np.abs(sums).max())) if not np.isnan(sums).any() else math.inf
    return worst


def _dense(one: Approximation, slot: int) -> ComplexArray:
    m, k, n = one.target.shape
    blocks = (m * k, k * n, m * n)[slot]
    if one.rank * blocks > MAX_DENSE:
        raise LcmaError(f"{one.target} rank {one.rank} with rounded coefficients is too large to multiply out")
    array = np.zeros((one.rank, blocks), dtype=np.complex128)
    for r, row in enumerate(one.factors[slot]):
        for index, number in row:
            array[r, index] = complex(_at_one(number))
    return array


def _first_order(one: Approximation) -> tuple[int | None, Mismatch | None, float]:
    """Return the lowest power of e at which an equation fails, that equation, and the largest wrong coefficient."""
    sizes = [[len(row) for row in factor] for factor in one.factors]
    if sum(a * b * c for a, b, c in zip(*sizes, strict=True)) > MAX_TERMS:
        raise LcmaError(f"{one.target} rank {one.rank} with powers of e is too large to multiply out")
    sums: dict[tuple[int, int, int, int], Fraction | complex] = defaultdict(Fraction)
    for left, right, out in zip(*one.factors, strict=True):
        for p, x in left:
            for q, y in right:
                for s, z in out:
                    for power, value in (x * y * z).terms:
                        sums[power, p, q, s] += value
    for (p, q, s), value in zip(one.target.terms.tolist(), one.target.term_values.tolist(), strict=True):
        sums[0, p, q, s] -= value
    wrong = {
        place: value for place, value in sums.items() if _size(value) > (0 if isinstance(value, Fraction) else TINY)
    }
    if not wrong:
        return None, None, 0.0
    power, p, q, s = min(wrong)
    _, k, n = one.target.shape
    wanted = one.target.wanted(p, q, s) if power == 0 else 0
    got = _number(wrong[min(wrong)], 1 << 20) + Gaussian(Fraction(wanted), Fraction(0))
    first = Mismatch(divmod(p, k), divmod(q, n), divmod(s, n), got, wanted)
    return power, first, max(map(_size, wrong.values()))


def _size(value: Fraction | complex) -> float:
    return float(abs(value)) if isinstance(value, Fraction) else abs(value)


def _number(value: Fraction | complex, grid: int) -> Gaussian:
    """Round the real and the imaginary part to the nearest multiple of 1/grid; return an exact number unchanged."""
    if isinstance(value, Fraction):
        return Gaussian(value, Fraction(0))
    parts = (value.real, value.imag)
    if not all(math.isfinite(part) and abs(part) < 1 << 30 for part in parts):
        raise SchemeFormatError("a coefficient that is not finite, or beyond 2^30")
    return Gaussian(*(Fraction(round(part * grid), grid) for part in parts))


def _rounded(one: Approximation, grid: int) -> Scheme | None:
    """Return the scheme with coefficients rounded to multiples of 1/grid, or None where that is not possible."""
    m, k, n = one.target.shape
    try:
        u, v, w = (
            factor_of(Entries.of([_terms(row, cols, grid) for row in factor]), rows, cols, label)
            for factor, rows, cols, label in zip(one.factors, (m, k, m), (k, n, n), "UVW", strict=True)
        )
        return Scheme(one.target, u, v, w, one.ring or ring_of((u, v, w)))
    except SchemeFormatError:
        return None


def _terms(row: Row, cols: int, grid: int) -> list[tuple[int, int, Number]]:
    return [(*divmod(index, cols), _number(_at_one(number), grid)) for index, number in row]


def _at_one(number: Inexact) -> Fraction | complex:
    """Return the value of a coefficient where e is 1."""
    return sum((value for _, value in number.terms), Fraction(0))
