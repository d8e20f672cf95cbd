"""Check of schemes with coefficients beyond int64: every product is expanded in Python integers."""

from __future__ import annotations

import math
import time
from collections import defaultdict

import numpy as np

from ..errors import LcmaError
from ..schemes_db import Proof, Scheme
from ..schemes_db.costs import full_and_half
from ..schemes_db.factor import Factor
from .outcome import Outcome, mismatch

MAX_TERMS = 50_000_000
"""Maximum number of terms u v w that are expanded: about a minute."""

NOTE = "verified with Python integers: a coefficient exceeds int64, so the scheme is neither kept nor run"

Part = tuple[int, int]
"""The real and the imaginary numerator of a coefficient."""

Place = tuple[int, int, int]
"""Flat block indices of A, B and C."""


def check_large(scheme: Scheme) -> Outcome:
    """Decide whether a scheme computes its target: all equations, in Python integers, no chance involved.

    Raises:
        LcmaError: the scheme has more than MAX_TERMS terms.
    """
    start = time.perf_counter()
    counts = (np.diff(factor.indptr) for factor in scheme.factors)
    terms = int(np.prod(np.stack(list(counts)), axis=0).sum())
    if terms > MAX_TERMS:
        raise LcmaError(
            f"{scheme!r} has coefficients beyond int64 and {terms} terms; Python integers take at most {MAX_TERMS}"
        )
    wrong, first = _wrong_equations(scheme)
    equations = scheme.target.equations
    if first is None:
        full, half = full_and_half(scheme)
        proof = Proof("exact", equations=equations, full=full, half=half)
        return Outcome("exact", proof, equations, time.perf_counter() - start)
    over_z2 = scheme.over_z2()
    holds_mod_2 = None if over_z2 is None else not _wrong_equations(over_z2)[0]
    elapsed = time.perf_counter() - start
    return Outcome("exact", None, equations, elapsed, wrong, mismatch(scheme, *first), holds_mod_2)


def _wrong_equations(scheme: Scheme) -> tuple[int, Place | None]:
    """Return the number of equations that fail, and the flat block indices of A, B and C of the first.

    Only the sums of one block of A and one of B are in memory at a time.
    """
    left, right, outputs = (_terms(factor) for factor in scheme.factors)
    of_block: dict[int, list[tuple[int, Part]]] = defaultdict(list)
    for r, terms in enumerate(left):
        for p, x in terms:
            of_block[p].append((r, x))
    wanted: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    one = math.prod(scheme.denominators)
    for (p, q, s), value in zip(scheme.target.terms.tolist(), scheme.target.term_values.tolist(), strict=True):
        wanted[p][q].append((s, one * value))
    modulus = scheme.ring.characteristic
    wrong, first = 0, None
    for p in sorted({*of_block, *wanted}):
        products: dict[int, list[tuple[int, Part]]] = defaultdict(list)
        for r, x in of_block[p]:
            for q, y in right[r]:
                products[q].append((r, (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0])))
        for q in sorted({*products, *wanted[p]}):
            sums: dict[int, Part] = defaultdict(lambda: (0, 0))
            for r, xy in products[q]:
                for s, z in outputs[r]:
                    real, imag = sums[s]
                    sums[s] = real + xy[0] * z[0] - xy[1] * z[1], imag + xy[0] * z[1] + xy[1] * z[0]
            for s, value in wanted[p][q]:
                real, imag = sums[s]
                sums[s] = real - value, imag
            failing = [s for s, (real, imag) in sums.items() if (real % modulus if modulus else real or imag)]
            if failing and first is None:
                first = p, q, min(failing)
            wrong += len(failing)
    return wrong, first


def _terms(factor: Factor) -> list[list[tuple[int, Part]]]:
    """Return the nonzeros of every product."""
    values = factor.values.tolist()
    parts = [(real, imag) for real, imag in values] if factor.gaussian else [(value, 0) for value in values]
    found = list(zip(factor.indices.tolist(), parts, strict=True))
    return [found[start:stop] for start, stop in zip(factor.indptr[:-1], factor.indptr[1:], strict=True)]
