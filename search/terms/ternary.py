"""Terms in two planes, for coefficients 1 and -1: over the integers, and modulo 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Z
from ...schemes_db.ring import Z3
from .packed import Same, SchemeTerms
from .words import Words

_ONE = np.uint64(1)


@dataclass(frozen=True, eq=False)
class TernaryTerms(SchemeTerms):
    """The terms of a scheme over Z with all coefficients in {-1, 0, 1}."""

    ring = Z
    planes = 2

    @classmethod
    def _reduced(cls, scheme: Scheme) -> Scheme:
        if scheme.ring.characteristic or not scheme.ternary:
            raise PlanError(f"{scheme!r} has coefficients other than -1, 0 and 1: a ternary walk can't start there")
        return scheme


@dataclass(frozen=True, eq=False)
class TermsModulo3(SchemeTerms):
    """The terms of a scheme over GF(3)."""

    ring = Z3
    planes = 2

    @classmethod
    def _reduced(cls, scheme: Scheme) -> Scheme:
        if scheme.ring is Z3:
            return scheme
        if scheme.ring.characteristic or scheme.gaussian or any(d % 3 == 0 for d in scheme.denominators):
            raise PlanError(f"{scheme!r} has a denominator divisible by 3, or another ring: it means nothing modulo 3")
        return Scheme(scheme.target, *scheme.reduced_mod(3), Z3)


def canonical(terms: SchemeTerms) -> tuple[Words, Words]:
    """Return factors (3 planes, R) whose lowest coefficient is 1, and the extracted signs (R,).

    A sign is a word: no bits for plus, all bits for minus, and always plus over GF(2).
    """
    words = terms.words.reshape(-1, 3, terms.rank)
    if len(words) == 1:
        return terms.words, np.zeros(terms.rank, dtype=np.uint64)
    support = terms.support
    lowest = support & (~support + _ONE)
    sign = np.uint64(0) - ((words[1] & lowest) != 0).astype(np.uint64)
    change = (words[0] ^ words[1]) & sign
    return (words ^ change).reshape(-1, terms.rank), np.bitwise_xor.reduce(sign, axis=0)


def with_signs(like: Same, words: Words, signs: Words) -> Same:
    """Invert `canonical`: return terms of the type and target of `like`."""
    if like.planes == 2:
        words = words.copy()
        change = (words[2] ^ words[5]) & signs
        words[[2, 5]] ^= change
    return type(like)(like.target, words)
