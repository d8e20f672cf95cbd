"""Coefficients that are not exact: rounded decimals, and sums of powers of an infinitesimal e (border schemes)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..errors import SchemeFormatError
from .gaussian import Gaussian, Number
from .ring import Ring
from .target import Target

MAX_POWER = 100
"""The largest power of the infinitesimal, and the most powers in one coefficient."""

_EPSILON = re.compile(r"(?:e|eps|epsilon|x|lambda)(\d{1,2})?(i)?")


@lru_cache(maxsize=1024)
def epsilon_power(name: str) -> int | None:
    """The power of the infinitesimal that a name is: e, eps, x, lambda; x2 its square, xi and x2i inverses; or None."""
    match = _EPSILON.fullmatch(name)
    return None if match is None else (-1 if match[2] else 1) * int(match[1] or 1)


@dataclass(frozen=True)
class Inexact:
    """A sum of value e^power. Values are complex where a decimal was rounded, else exact fractions.

    Raises:
        SchemeFormatError: a power beyond 100, or more than 100 of them.
    """

    terms: tuple[tuple[int, Fraction | complex], ...]
    """(power, value), by power, without zeros."""

    def __post_init__(self) -> None:
        if len(self.terms) > MAX_POWER or any(abs(power) > MAX_POWER for power, _ in self.terms):
            raise SchemeFormatError(f"the infinitesimal to a power beyond {MAX_POWER}")

    @classmethod
    def of(cls, value: Fraction | complex, power: int = 0) -> Inexact:
        return cls(((power, value),) if value else ())

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __mul__(self, other: Coefficient) -> Inexact:
        products = [(p + q, x * y) for p, x in self.terms for q, y in inexact(other).terms]
        return _collected(products)

    def __add__(self, other: Coefficient) -> Inexact:
        return _collected([*self.terms, *inexact(other).terms])

    def inverse(self) -> Inexact:
        """1 / self.

        Raises:
            ZeroDivisionError: it is 0.
            SchemeFormatError: it is a sum of powers.
        """
        if len(self.terms) > 1:
            raise SchemeFormatError("division by a sum of powers of the infinitesimal")
        if not self.terms:
            raise ZeroDivisionError
        ((power, value),) = self.terms
        return Inexact(((-power, 1 / value),))


def _collected(terms: list[tuple[int, Fraction | complex]]) -> Inexact:
    """The sum of terms, those of one power added up."""
    total: dict[int, Fraction | complex] = {}
    for power, value in terms:
        total[power] = total.get(power, Fraction(0)) + value
    return Inexact(tuple(sorted((power, value) for power, value in total.items() if value)))


Coefficient = Number | Inexact
"""A coefficient of any kind."""


def inexact(value: Coefficient) -> Inexact:
    """Any coefficient as an inexact one."""
    if isinstance(value, Inexact):
        return value
    if isinstance(value, Gaussian):
        return Inexact.of(complex(value.real) + 1j * complex(value.imag) if value.imag else value.real)
    return Inexact.of(Fraction(value))


Row = tuple[tuple[int, Inexact], ...]
"""One product of a factor: flat index and coefficient of every entry."""


@dataclass(frozen=True)
class Approximation:
    """The content of a file of inexact coefficients: three factors of R products each, the third by C.

    It is no `Scheme`, so that nothing unproven can pass as one.
    """

    target: Target
    factors: tuple[tuple[Row, ...], tuple[Row, ...], tuple[Row, ...]]
    ring: Ring | None = None

    @property
    def rank(self) -> int:
        return len(self.factors[0])

    @property
    def has_powers(self) -> bool:
        """True if some coefficient has a power of e."""
        return any(power for factor in self.factors for row in factor for _, number in row for power, _ in number.terms)
