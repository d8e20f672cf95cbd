"""Check of a scheme in noncommutative symbols: expanded by sympy and compared term by term.

Slow, and independent of the other methods: another library, another arithmetic, no matrices.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from ..errors import LcmaError
from ..schemes_db import Proof, Scheme
from ..schemes_db.costs import full_and_half
from ..schemes_db.factor import Factor
from ..schemes_db.gaussian import Gaussian, Number, gaussian, simplest
from .expansion import term_count
from .outcome import Mismatch, Outcome

MAX_TERMS = 200_000
"""Maximum number of expanded terms; 2 x 2 x 2 composed with 3 x 3 x 3 has 7,008, in a quarter of a second."""

Place = tuple[int, int, int]
"""Flat block indices of A, B and C: one equation."""


def check_symbolic(scheme: Scheme) -> Outcome:
    """Decide whether a scheme computes its target by expanding it: all equations, no chance involved.

    Raises:
        LcmaError: the expansion has more than MAX_TERMS terms.
    """
    start = time.perf_counter()
    terms = term_count(scheme) + len(scheme.target.terms)
    if terms > MAX_TERMS:
        raise LcmaError(f"{scheme!r} has {terms} terms when written out, beyond {MAX_TERMS}: prove it by exact")
    left_over = _differences(scheme)
    equations = scheme.target.equations
    if not left_over:
        full, half = full_and_half(scheme)
        proof = Proof("symbolic", equations=equations, full=full, half=half)
        return Outcome("symbolic", proof, equations, time.perf_counter() - start)
    holds_mod_2 = None
    if not scheme.ring.characteristic and scheme.over_z2() is not None:
        # Reduction modulo 2 commutes with sums and products: the differences of the scheme over Z2 are these modulo 2.
        holds_mod_2 = all(gaussian(value).real.numerator % 2 == 0 for value in left_over.values())
    first = _mismatch(scheme, min(left_over), left_over[min(left_over)])
    return Outcome("symbolic", None, equations, time.perf_counter() - start, len(left_over), first, holds_mod_2)


def _differences(scheme: Scheme) -> dict[Place, Number]:
    """Return the nonzero coefficients of the expanded scheme minus its target."""
    import sympy

    a, b = (
        [sympy.Symbol(f"{name}{index}", commutative=False) for index in range(factor.blocks)]
        for name, factor in zip("ab", scheme.factors, strict=False)
    )
    products = [
        sympy.Add.make_args(sympy.expand_mul(left * right))
        for left, right in zip(_sums(scheme.u, a, sympy), _sums(scheme.v, b, sympy), strict=True)
    ]
    wanted: list[list[Any]] = [[] for _ in range(scheme.w.blocks)]
    for (p, q, s), value in zip(scheme.target.terms.tolist(), scheme.target.term_values.tolist(), strict=True):
        wanted[s].append(value * a[p] * b[q])
    computed: list[list[Any]] = [[] for _ in range(scheme.w.blocks)]
    for r, expanded in enumerate(products):
        for s, coefficient in scheme.w.coefficients(r):
            computed[s] += [_number(coefficient, sympy) * term for term in expanded]
    places = {(x, y): (p, q) for p, x in enumerate(a) for q, y in enumerate(b)}
    differences: dict[Place, Gaussian] = {}
    for s, (mine, theirs) in enumerate(zip(computed, wanted, strict=True)):
        for term in sympy.Add.make_args(sympy.Add(*mine, *(-term for term in theirs))):
            scalars, symbols = term.args_cnc()
            if symbols:  # a difference of zero is the term 0
                place = (*places[symbols[0], symbols[1]], s)
                # Terms that differ by a factor that is not rational are separate in the sum.
                differences[place] = _back(sympy.Mul(*scalars)) + differences.get(place, 0)
    modulus = scheme.ring.characteristic
    reduced = {place: _residue(value, modulus) for place, value in differences.items()}
    return {place: value for place, value in reduced.items() if value}


def _sums(factor: Factor, symbols: list[Any], sympy: Any) -> list[Any]:
    """Return the linear combination of every product."""
    return [
        sympy.Add(*(_number(coefficient, sympy) * symbols[index] for index, coefficient in factor.coefficients(r)))
        for r in range(factor.rank)
    ]


def _number(value: Fraction | Gaussian, sympy: Any) -> Any:
    if isinstance(value, Gaussian):
        return _number(value.real, sympy) + sympy.I * _number(value.imag, sympy)
    return sympy.Rational(value.numerator, value.denominator)


def _back(value: Any) -> Gaussian:
    """Convert a sympy number to a `Gaussian`."""
    real, imag = (Fraction(int(part.p), int(part.q)) for part in value.as_real_imag())
    return Gaussian(real, imag)


def _residue(value: Gaussian, modulus: int) -> Number:
    """Return the number modulo p if `modulus` is nonzero (Z/p has neither fractions nor i), else simplified."""
    return int(value.real) % modulus if modulus else simplest(value)


def _mismatch(scheme: Scheme, place: Place, difference: Number) -> Mismatch:
    _, k, n = scheme.target.shape
    p, q, s = place
    modulus = scheme.ring.characteristic
    wanted = scheme.target.wanted(p, q, s) % modulus if modulus else scheme.target.wanted(p, q, s)
    got = _residue(gaussian(difference) + wanted, modulus)
    return Mismatch(divmod(p, k), divmod(q, n), divmod(s, n), got, wanted)
