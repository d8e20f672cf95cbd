"""Results of a check."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..schemes_db import Proof, Scheme
from ..schemes_db.display import line
from ..schemes_db.factor import Factor
from ..schemes_db.gaussian import Gaussian, Number, bits, gaussian, simplest

MAX_SHOWN_BITS = 400
"""Maximum size of numbers that are written out."""


@dataclass(frozen=True)
class Mismatch:
    """One wrong Brent equation: the coefficient of A[a] B[b] in C[c]; block indices are 0-based pairs."""

    a: tuple[int, int]
    b: tuple[int, int]
    c: tuple[int, int]
    got: Number
    wanted: int

    def __str__(self) -> str:
        a, b, c = (f"{i + 1},{j + 1}" for i, j in (self.a, self.b, self.c))
        size = bits(self.got)
        got = str(self.got) if size <= MAX_SHOWN_BITS else f"a number of {size} bits"
        return f"coefficient of A[{a}] B[{b}] in C[{c}] is {got}, wanted {self.wanted}"


@dataclass(frozen=True)
class Outcome:
    """The result of one method on one scheme.

    `equations` is the number of Brent equations of the target, `wrong` the number that fail (None where
    the method cannot count them), `first` the first of them; `holds_mod_2` is set for failures only.
    `reason` states a fault that is not a wrong equation.
    """

    method: str
    proof: Proof | None
    equations: int
    seconds: float
    wrong: int | None = 0
    first: Mismatch | None = None
    holds_mod_2: bool | None = None
    reason: str = ""

    def __repr__(self) -> str:
        return line(f"outcome {self.method}: {self.explain()}")

    @property
    def ok(self) -> bool:
        return self.proof is not None

    def explain(self) -> str:
        """Return one line on the failure, or "valid"."""
        if self.ok:
            return "valid"
        if self.reason:
            return self.reason
        many = f"{self.wrong} of {self.equations} equations fail; " if self.wrong is not None else ""
        mod_2 = {True: "; it holds mod 2", False: "; nor does it hold mod 2", None: ""}[self.holds_mod_2]
        return f"{many}{self.first}{mod_2}" if self.first else f"{many}a random instance came out wrong{mod_2}"


def mismatch(scheme: Scheme, p: int, q: int, s: int) -> Mismatch:
    """Evaluate the equation of blocks p, q, s of A, B, C in Python integers."""
    _, k, n = scheme.target.shape
    places = divmod(p, k), divmod(q, n), divmod(s, n)
    total = gaussian(0)
    for r in scheme.u.product[scheme.u.indices == p].tolist():
        u, v, w = (_coefficient(factor, r, index) for factor, index in zip(scheme.factors, (p, q, s), strict=True))
        total += u * v * w
    wanted = scheme.target.wanted(p, q, s)
    if modulus := scheme.ring.characteristic:
        return Mismatch(*places, Fraction(int(total.real) % modulus), wanted % modulus)
    return Mismatch(*places, simplest(total), wanted)


def _coefficient(factor: Factor, r: int, index: int) -> Gaussian:
    """Return the coefficient of a block in product r."""
    start, stop = factor.indptr[r : r + 2]
    at = start + int(np.searchsorted(factor.indices[start:stop], index))
    if at == stop or factor.indices[at] != index:
        return gaussian(0)
    real, imag = factor.values[at].tolist() if factor.gaussian else (int(factor.values[at]), 0)
    return Gaussian(Fraction(real, factor.denominator), Fraction(imag, factor.denominator))
