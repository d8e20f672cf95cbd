"""Check of straight-line programs that are too long to be expanded, on random matrices modulo primes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from ..errors import SchemeFormatError
from ..schemes_db import Certificate, Proof, Q, Ring, Z
from ..schemes_db.display import line
from ..schemes_db.formats import Reading
from ..schemes_db.formats.linear_program import BilinearPrograms
from ..schemes_db.formats.reading import C_TRANSPOSED, C
from .outcome import Outcome
from .primes import PRIMES_31_BITS, fresh_generator, random_prime
from .randomized import DEFAULT_ERROR_LOG2

NOTE = "proven by program: its sums are too long to be expanded, so the scheme is neither kept nor run"


@dataclass(frozen=True)
class ProgramReport:
    """The verdict on a scheme given as programs: like `Report`, without a scheme and a certificate."""

    label: str
    format: str
    programs: BilinearPrograms
    ring: Ring
    outcomes: tuple[Outcome, ...]
    conventions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    certificate: Certificate | None = None

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    def __repr__(self) -> str:
        return line(f"report {self.headline()}")

    def headline(self) -> str:
        """Return the verdict in one line."""
        subject = f"{self.programs.target} rank {self.programs.rank} over {self.ring}"
        (outcome,) = self.outcomes
        if outcome.proof is None:
            return f"FAIL {subject}: {outcome.explain()}"
        error = f"error below 2^{outcome.proof.error_log2:.0f}"
        return f"OK {subject} (program, {outcome.proof.rounds} rounds, {error}, {outcome.seconds:.2f} s)"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        (outcome,) = self.outcomes
        return {
            "lcma_report": 1,
            "file": self.label,
            "ok": self.ok,
            "target": self.programs.target.name,
            "ring": self.ring.name,
            "rank": self.programs.rank,
            "format": self.format,
            "conventions": list(self.conventions),
            "methods": [outcome.method],
            "rounds": outcome.proof.rounds if outcome.proof else None,
            "error_log2": outcome.proof.error_log2 if outcome.proof else None,
            "failure": None if self.ok else outcome.explain(),
            "seconds": outcome.seconds,
            "certificate": None,
            "notes": list(self.notes),
        }


def judge_programs(reading: Reading, programs: BilinearPrograms, label: str, seed: int | None = None) -> ProgramReport:
    """Check programs on random matrices modulo random primes, until the error is below 2^-100.

    A round misses a wrong program if the prime divides its error, or if the instance is a zero of a
    nonzero bilinear form (Schwartz-Zippel: at most 2/p).

    Raises:
        SchemeFormatError: denominators in a ring that has none, or numbers beyond the size limits.
    """
    start = time.perf_counter()
    sizes = [part.size() for part in programs.parts]
    below = math.prod(denominator for _, denominator in sizes)
    ring = reading.declared or (Q if below > 1 else Z)
    if below > 1 and not ring.fractions:
        raise SchemeFormatError(f"the programs have denominators, which ring {ring} has not")
    bits = sum(size for size, _ in sizes) + below.bit_length() + 1
    per_round = math.log2(2 / (1 << 30) + math.ceil(bits / 30) / PRIMES_31_BITS)
    rounds = math.ceil(DEFAULT_ERROR_LOG2 / per_round)
    generator = fresh_generator(seed)
    holding = {C, C_TRANSPOSED}
    primes: list[int] = []
    while len(primes) < rounds and holding:
        prime = random_prime(generator)
        if math.gcd(prime, below) == 1:
            primes.append(prime)
            holding &= _holding(programs, prime, [int(x) for x in generator.integers(0, prime, _entries(programs))])
    seconds = time.perf_counter() - start
    equations = programs.target.equations
    if not holding:
        failed = Outcome("program", None, equations, seconds, wrong=None)
        return ProgramReport(label, reading.format, programs, ring, (failed,), (C,), reading.notes)
    proof = Proof("program", primes=tuple(primes), rounds=rounds, error_log2=rounds * per_round, full=programs.rank)
    outcome = Outcome("program", proof, equations, seconds)
    notes = (*reading.notes, NOTE)
    return ProgramReport(label, reading.format, programs, ring, (outcome,), tuple(sorted(holding)), notes)


def _entries(programs: BilinearPrograms) -> int:
    """Return the size of an instance: the number of entries of A and B."""
    m, k, n = programs.target.shape
    return m * k + k * n


def _holding(programs: BilinearPrograms, prime: int, point: list[int]) -> set[str]:
    """Return the conventions by which the programs compute the target of an instance modulo a prime."""
    target = programs.target
    m, k, n = target.shape
    a, b = point[: m * k], point[m * k :]
    left, right = programs.left.evaluated(a, prime), programs.right.evaluated(b, prime)
    got = programs.third.evaluated([x * y % prime for x, y in zip(left, right, strict=True)], prime)
    wanted = [0] * (m * n)
    for (p, q, s), value in zip(target.terms.tolist(), target.term_values.tolist(), strict=True):
        wanted[s] += value * a[p] * b[q]
    wanted = [value % prime for value in wanted]
    turned = [wanted[i * n + j] for j in range(n) for i in range(m)]
    return {convention for convention, values in ((C, wanted), (C_TRANSPOSED, turned)) if values == got}
