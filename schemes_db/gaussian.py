"""Gaussian rationals: the coefficients of schemes over Q(i), as exact numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_PATTERN = re.compile(r"(?P<real>[-+]?\d+(?:/\d+)?)?(?:(?P<imag>[-+]?(?:\d+(?:/\d+)?)?)[ij])?")


@dataclass(frozen=True)
class Gaussian:
    """real + imag i, both fractions."""

    real: Fraction
    imag: Fraction

    def __add__(self, other: Number) -> Gaussian:
        other = gaussian(other)
        return Gaussian(self.real + other.real, self.imag + other.imag)

    def __mul__(self, other: Number) -> Gaussian:
        other = gaussian(other)
        return Gaussian(
            self.real * other.real - self.imag * other.imag, self.real * other.imag + self.imag * other.real
        )

    def inverse(self) -> Gaussian:
        """1 / self; ZeroDivisionError for 0."""
        norm = self.real**2 + self.imag**2
        return Gaussian(self.real / norm, -self.imag / norm)

    def __bool__(self) -> bool:
        return bool(self.real or self.imag)

    def __str__(self) -> str:
        """Such as 1/2-3i, i, or 2 for a real one; `parse_number` reads it back."""
        if not self.imag:
            return str(self.real)
        size = "" if abs(self.imag) == 1 else str(abs(self.imag))
        sign = "-" if self.imag < 0 else "+" if self.real else ""
        return f"{self.real or ''}{sign}{size}i"


Number = int | Fraction | Gaussian
"""An exact coefficient."""


MAX_BITS = 1 << 13
"""Bits of a numerator or denominator that readers accept: far more than int64, few enough to be cheap."""


def bits(value: Number) -> int:
    """The bits of the longest integer in a number."""
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, Fraction):
        return max(value.numerator.bit_length(), value.denominator.bit_length())
    return max(bits(value.real), bits(value.imag))


def gaussian(value: Number) -> Gaussian:
    """Any exact coefficient as a Gaussian rational."""
    return value if isinstance(value, Gaussian) else Gaussian(Fraction(value), Fraction(0))


def simplest(value: Number) -> int | Fraction | Gaussian:
    """The same number as an int if it is one, else as a Fraction if it is real."""
    if isinstance(value, Gaussian):
        if value.imag:
            return value
        value = value.real
    return value.numerator if value.denominator == 1 else value


@lru_cache(maxsize=1024)
def parse_number(text: str) -> Number:
    """The number of a text such as -3, 1/2, i, 1/2-3/4i.

    Raises:
        ValueError: it is none.
        ZeroDivisionError: a denominator is 0.
    """
    compact = text.replace(" ", "")
    if re.fullmatch(r"[-+]?\d{1,18}", compact, re.ASCII):
        return int(compact)
    match = _PATTERN.fullmatch(compact)
    if not match or not compact:
        raise ValueError(f"not a number: {text!r}")
    real, imag = match.group("real") or "", match.group("imag")
    if imag is None:
        return simplest(Fraction(real))
    if real and imag[:1] not in ("+", "-"):
        if imag:
            raise ValueError(f"not a number: {text!r}")
        real, imag = "", real  # "3i": the digits are the imaginary part
    unit = imag in ("", "+", "-")
    return simplest(Gaussian(Fraction(real or 0), Fraction(f"{imag}1" if unit else imag)))
