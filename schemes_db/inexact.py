"""Coefficients that are not exact: rounded decimals, and powers of an infinitesimal e, as border schemes have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..errors import SchemeFormatError
from .gaussian import Gaussian, Number
from .ring import Ring
from .target import Target

EPSILON = {"e": 1, "eps": 1, "epsilon": 1, "x": 1, "lambda": 1, "xi": -1}
"""The names that files give to the infinitesimal, with the power of it that is meant: xi is 1/x."""

MAX_POWER = 100


@dataclass(frozen=True)
class Inexact:
    """value e^power. The value is complex where a decimal was rounded, else an exact fraction.

    Raises:
        SchemeFormatError: a power beyond 100, or (of a sum) powers that differ.
    """

    value: Fraction | complex
    power: int = 0

    def __post_init__(self) -> None:
        if abs(self.power) > MAX_POWER:
            raise SchemeFormatError(f"the infinitesimal to a power beyond {MAX_POWER}")

    def __bool__(self) -> bool:
        return bool(self.value)

    def __mul__(self, other: Coefficient) -> Inexact:
        other = inexact(other)
        x, y = self.value, other.value
        product = x * y if isinstance(x, Fraction) and isinstance(y, Fraction) else complex(x) * complex(y)
        return Inexact(product, self.power + other.power)

    def __add__(self, other: Coefficient) -> Inexact:
        other = inexact(other)
        if not (self and other):
            return self or other
        if self.power != other.power:
            raise SchemeFormatError("a coefficient that adds up different powers of the infinitesimal")
        x, y = self.value, other.value
        total = x + y if isinstance(x, Fraction) and isinstance(y, Fraction) else complex(x) + complex(y)
        return Inexact(total, self.power)

    def inverse(self) -> Inexact:
        """1 / self; ZeroDivisionError for 0."""
        return Inexact(1 / self.value, -self.power)


Coefficient = Number | Inexact
"""A coefficient of any kind."""


def inexact(value: Coefficient) -> Inexact:
    """Any coefficient as an inexact one."""
    if isinstance(value, Inexact):
        return value
    if isinstance(value, Gaussian):
        return Inexact(complex(value.real) + 1j * complex(value.imag) if value.imag else value.real)
    return Inexact(Fraction(value))


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
        return any(number.power for factor in self.factors for row in factor for _, number in row)
