"""Numbers of any kind as texts write them: read, added, multiplied and raised to powers, bounded in size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, TypeGuard

from ...errors import SchemeFormatError
from ..gaussian import MAX_BITS, Gaussian, bits, gaussian, simplest
from ..inexact import MAX_POWER, Coefficient, Inexact, epsilon_power, inexact

MAX_BINARY_PLACES = 20
"""Binary places up to which a decimal is an exact fraction."""

FAST = 1 << 62
"""Products of two integers below this need no look at their size."""

MAX_DIGITS = 1_000
"""Digits of one number: few enough to be cheap."""

_NUMBERS = frozenset((int, Fraction, Gaussian, Inexact))
IMAGINARY_UNIT = Gaussian(Fraction(0), Fraction(1))


class LinearForm(dict[Any, Coefficient]):
    """A sum of named things times numbers: name -> coefficient, without zeros."""


def is_number(value: object) -> TypeGuard[Coefficient]:
    return type(value) in _NUMBERS


def total(parts: Sequence[Any]) -> Any:
    """The sum of numbers, or of forms.

    Raises:
        SchemeFormatError: other things are added up.
    """
    if all(map(is_number, parts)):
        return reduce(plus, parts)
    found: dict[Any, Coefficient] = {}
    for part in parts:
        if isinstance(part, LinearForm):
            for key, value in part.items():
                found[key] = plus(found[key], value) if key in found else value
        elif not is_number(part) or part:
            form = any(isinstance(one, LinearForm) for one in parts)
            raise SchemeFormatError(
                "a bare number where a sum of blocks belongs" if form else "a sum of lists is no number"
            )
    return LinearForm({key: value for key, value in found.items() if value})


def times(x: Coefficient, y: Coefficient) -> Coefficient:
    """The product of two numbers of any kind.

    Raises:
        SchemeFormatError: it has more than MAX_BITS bits.
    """
    if type(x) is int and type(y) is int and -FAST < x < FAST and -FAST < y < FAST:
        return x * y
    if isinstance(x, Inexact) or isinstance(y, Inexact):
        return inexact(x) * y
    product = simplest(gaussian(x) * y if isinstance(x, Gaussian) or isinstance(y, Gaussian) else x * y)
    if bits(product) > MAX_BITS:
        raise SchemeFormatError(f"a coefficient or denominator beyond 2^{MAX_BITS}")
    return product


def plus(x: Coefficient, y: Coefficient) -> Coefficient:
    """The sum of two numbers of any kind."""
    if type(x) is int and type(y) is int:
        return x + y
    if isinstance(x, Inexact) or isinstance(y, Inexact):
        return inexact(x) + y
    return simplest(gaussian(x) + y if isinstance(x, Gaussian) or isinstance(y, Gaussian) else x + y)


def inverse(x: Coefficient) -> Coefficient:
    """1 / x.

    Raises:
        SchemeFormatError: it is 0.
    """
    if not x:
        raise SchemeFormatError("division by 0")
    return x.inverse() if isinstance(x, Inexact) else simplest(gaussian(x).inverse())


def power(base: Coefficient, exponent: object) -> Coefficient:
    """A whole power of a number.

    Raises:
        SchemeFormatError: the exponent is no whole number up to 100, or 0 is raised to a negative one.
    """
    if not isinstance(exponent, int) or abs(exponent) > MAX_POWER:
        raise SchemeFormatError(f"a power must be a whole number of at most {MAX_POWER}")
    result: Coefficient = 1
    factor = base if exponent >= 0 else inverse(base)
    for _ in range(abs(exponent)):
        result = times(result, factor)
    return result


@lru_cache(maxsize=1024)
def decimal(text: str) -> int | Fraction | Inexact:
    """A number as it is written: exact if it is an integer or a small binary fraction, else a rounded one.

    Raises:
        SchemeFormatError: it has more than MAX_DIGITS digits.
    """
    if len(text) > MAX_DIGITS:
        raise SchemeFormatError(f"a number of more than {MAX_DIGITS} digits")
    return int(text) if text.isdigit() else _nearest(Fraction(text))


@lru_cache(maxsize=1024)
def binary(value: complex) -> Coefficient:
    """A number of an array of floats: exact if its parts are small binary fractions, else rounded."""
    return plus(_nearest(Fraction(value.real)), times(_nearest(Fraction(value.imag)), IMAGINARY_UNIT))


def _nearest(number: Fraction) -> int | Fraction | Inexact:
    if number.denominator & (number.denominator - 1) or number.denominator > 1 << MAX_BINARY_PLACES:
        return Inexact.of(complex(float(number)))
    return int(number) if number.denominator == 1 else number


def unit_in_formulas(name: str) -> Coefficient | None:
    """The number that a name is in a formula: the imaginary unit i, or the infinitesimal eps; None for any other."""
    if name in ("i", "I"):
        return IMAGINARY_UNIT
    return Inexact.of(Fraction(1), 1) if name in ("eps", "epsilon") else None


def unit_in_arrays(name: str) -> Coefficient | None:
    """The number that a name is among coefficients: the imaginary unit, or a power of the infinitesimal."""
    if name in ("i", "I", "j", "J"):
        return IMAGINARY_UNIT
    exponent = epsilon_power(name)
    return None if exponent is None else Inexact.of(Fraction(1), exponent)
