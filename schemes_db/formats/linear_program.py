"""Straight-line programs of sums: outputs as linear forms of inputs, by way of named intermediate sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...errors import SchemeFormatError
from ..gaussian import MAX_BITS
from ..inexact import Coefficient
from ..target import Target
from .arithmetic import LinearForm, plus, times

MAX_TERMS = 4_000_000
"""Terms of all sums together once expanded; shared sums of shared sums can double without end."""

Rows = list[list[tuple[int, Coefficient]]]
"""The nonzero entries of every product of a factor."""

Statement = tuple[tuple[Coefficient, int], ...]
"""A sum of (coefficient, value)."""


@dataclass(frozen=True)
class LinearProgram:
    """Values 0 to inputs - 1 are the inputs; statement s sets value inputs + s. `outputs` are values, in order."""

    inputs: int
    statements: tuple[Statement, ...]
    outputs: tuple[int, ...]

    @property
    def rational(self) -> bool:
        """True if all coefficients are exact and real."""
        return all(isinstance(c, int | Fraction) for statement in self.statements for c, _ in statement)

    def expanded(self, budget: list[int]) -> list[LinearForm] | None:
        """The outputs as forms over the inputs; None where all sums together have more terms than `budget` holds.

        Raises:
            SchemeFormatError: a coefficient has more than MAX_BITS bits.
        """
        forms = [LinearForm({index: 1}) for index in range(self.inputs)]
        for statement in self.statements:
            total: dict[int, Coefficient] = {}
            for coefficient, source in statement:
                budget[0] -= len(forms[source]) + 1
                if budget[0] < 0:
                    return None
                for index, value in forms[source].items():
                    total[index] = plus(total.get(index, 0), times(coefficient, value))
            forms.append(LinearForm({index: value for index, value in total.items() if value}))
        return [forms[output] for output in self.outputs]

    def evaluated(self, values: list[int], prime: int) -> list[int]:
        """The outputs of a rational program modulo a prime that divides no denominator."""
        found = list(values)
        coefficients = {c for statement in self.statements for c, _ in statement}
        residues: dict[Coefficient, int] = {
            c: c.numerator * pow(c.denominator, -1, prime) % prime
            for c in coefficients
            if isinstance(c, int | Fraction)
        }
        for statement in self.statements:
            found.append(sum([residues[c] * found[source] for c, source in statement]) % prime)
        return [found[output] for output in self.outputs]

    def size(self) -> tuple[int, int]:
        """For a rational program: bits of the sum of absolute values of an output's coefficients, and an integer that
        all denominators divide.

        Raises:
            SchemeFormatError: the denominators multiply up beyond 2^MAX_BITS.
        """
        norms, below = [0.0] * self.inputs, [1] * self.inputs
        for statement in self.statements:
            exact = [(Fraction(c), source) for c, source in statement if isinstance(c, int | Fraction)]
            terms = [norms[source] + _log2(c) for c, source in exact if c]
            peak = max(terms, default=0.0)
            norms.append(peak + math.log2(sum(2.0 ** (term - peak) for term in terms) or 1))
            below.append(math.lcm(*(c.denominator * below[source] for c, source in exact)))
            if below[-1].bit_length() > MAX_BITS:
                raise SchemeFormatError(f"the denominators multiply up beyond 2^{MAX_BITS}")
        return math.ceil(max((norms[output] for output in self.outputs), default=0.0)) + 1, math.lcm(*below)


def _log2(value: Fraction) -> float:
    """The logarithm of the absolute value, of integers of any length."""
    return math.log2(abs(value.numerator)) - math.log2(value.denominator)


@dataclass(frozen=True)
class BilinearPrograms:
    """C = third(left(A) * right(B)) entry by entry, matrices flat by rows: a scheme that is not expanded."""

    target: Target
    left: LinearProgram
    right: LinearProgram
    third: LinearProgram

    @property
    def parts(self) -> tuple[LinearProgram, LinearProgram, LinearProgram]:
        return self.left, self.right, self.third

    @property
    def rank(self) -> int:
        return len(self.left.outputs)


def expanded_rows(programs: Sequence[LinearProgram], rank: int) -> tuple[Rows, Rows, Rows] | None:
    """The terms of U, V and W, product by product, of their programs; None where they have too many terms."""
    budget = [MAX_TERMS]
    forms = [found for part in programs if (found := part.expanded(budget)) is not None]
    if len(forms) < 3:
        return None
    products: Rows = [[] for _ in range(rank)]
    for entry, form in enumerate(forms[2]):
        for r, value in form.items():
            products[r].append((entry, value))
    return [list(form.items()) for form in forms[0]], [list(form.items()) for form in forms[1]], products
