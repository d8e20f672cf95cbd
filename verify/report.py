"""The verdict on a scheme of a file: the proof, its convention and its ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import PATH, need
from ..errors import SchemeFormatError, VerificationError, VerifyOnlyError
from ..schemes_db import Z2, Certificate, Proof, Ring, Scheme, Target, costs
from ..schemes_db.display import line
from ..schemes_db.factor import Factor
from ..schemes_db.formats import Reading, format_named, read_file
from ..schemes_db.formats.reading import render_coefficient
from ..schemes_db.ranks import KnownRank, best_known
from .approximate import ApproximateReport, judge_approximations
from .certify import certificate_of, certify, check, recheck_outcomes
from .exact import is_long, wrong_in_one_image
from .linear_program import ProgramReport, judge_programs
from .nearest import nearest
from .outcome import Outcome
from .randomized import first_wrong, refuted


@dataclass(frozen=True)
class Report:
    """The result of the verification of one scheme.

    `scheme` is the proven one (over Z2 where it holds only there); where nothing holds, the file's by
    the convention with the fewest wrong equations. `conventions` are all that hold. `certificate` is
    None for a scheme that is not valid, or has coefficients beyond int64.
    """

    label: str
    format: str
    scheme: Scheme
    outcomes: tuple[Outcome, ...]
    conventions: tuple[str, ...]
    certificate: Certificate | None
    over_z2_only: bool = False
    notes: tuple[str, ...] = ()
    declared: Ring | None = None
    hint: str = ""
    """Of a scheme that is not valid: what it is nearest to."""

    def _repr_html_(self) -> str:
        """The verdict, the certificate and the pictures of the scheme, for a notebook."""
        certificate = self.certificate._repr_html_() if self.certificate else ""
        return f"<p>{escape(self.headline())}</p>{certificate}{self.scheme._repr_html_()}"

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def warned(self) -> bool:
        """True if the scheme holds modulo 2 only, and no ring was given or declared."""
        return self.ok and self.over_z2_only and self.declared is None

    @property
    def known(self) -> KnownRank | None:
        """The best known rank of the target over the ring that was proven."""
        return best_known(self.scheme.target, self.scheme.ring)

    def __repr__(self) -> str:
        return line(f"report {self.headline()}")

    def headline(self) -> str:
        """Return the first line: the verdict, the scheme, the method with its numbers."""
        subject = f"{self.scheme.target} rank {self.scheme.rank}"
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        if not self.ok:
            hint = f"; {self.hint}" if self.hint else ""
            return f"FAIL {subject} over {self.scheme.ring}: {self.outcomes[0].explain()}{hint}"
        how = ", ".join(_how(outcome) for outcome in self.outcomes)
        only = " only" if self.over_z2_only else ""
        return f"OK {subject} over {self.scheme.ring}{only} ({how}, {_duration(seconds)})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        full, half = costs.full_and_half(self.scheme)
        known = self.known
        failed = next((outcome for outcome in self.outcomes if not outcome.ok), None)
        return {
            "lcma_report": 1,
            "file": self.label,
            "ok": self.ok,
            "target": self.scheme.target.name,
            "ring": self.scheme.ring.name,
            "rank": self.scheme.rank,
            "full_products": full,
            "half_products": half,
            "format": self.format,
            "conventions": list(self.conventions),
            "coefficients": [render_coefficient(value) for value in self.scheme.coefficients],
            "ternary": self.scheme.ternary,
            "additions": costs.additions(self.scheme),
            "nonzeros": sum(costs.nonzeros(self.scheme)),
            "growth_factor": costs.growth_factor(self.scheme),
            "digest": self.scheme.digest,
            "best_known_rank": known.rank if known else None,
            "over_z2_only": self.over_z2_only,
            "beyond_int64": self.scheme.large,
            "methods": [outcome.method for outcome in self.outcomes],
            "equations": self.outcomes[0].equations,
            "seconds": sum(outcome.seconds for outcome in self.outcomes),
            "failure": failed.explain() if failed and not self.ok else None,
            "wrong_equations": failed.wrong if failed and not self.ok else 0,
            "nearest": self.hint or None,
            "holds_mod_2": failed.holds_mod_2 if failed and not self.ok else None,
            "certificate": self.certificate.to_json() if self.certificate else None,
            "notes": list(self.notes),
        }


NOTE = "verified, but a coefficient exceeds int64, so the scheme is neither kept nor run"

AnyReport = Report | ApproximateReport | ProgramReport

MAX_REMARKED = 20_000
"""Maximum rank for which `remarks` examines the products."""


def _how(outcome: Outcome) -> str:
    return proof_text(outcome.proof or Proof(outcome.method, outcome.equations))


def proof_text(proof: Proof) -> str:
    """The method of a proof with its equations, or its rounds and the probability of an error."""
    if not proof.rounds:
        return f"{proof.method}, {proof.equations} equations"
    error = f", error below 2^{proof.error_log2:.0f}" if proof.error_log2 else ""
    return f"{proof.method}, {proof.rounds} rounds{error}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def judge(reading: Reading, label: str, methods: Sequence[str] = ("exact",), ring: Ring | None = None) -> AnyReport:
    """Verify one reading: each convention that the file allows, over the file's ring, then over Z2.

    Where a ring is given or declared by the file, no other ring is tried. No method proves a scheme
    with inexact coefficients; the report states their error.

    Raises:
        SchemeFormatError: nothing holds, and the file may be no scheme at all.
    """
    if reading.approximations:
        return judge_approximations(reading.approximations, label, reading.format, reading.notes)
    if reading.programs is not None:
        return judge_programs(reading, reading.programs, label)
    ring = ring or reading.declared
    holding: list[tuple[str, Scheme, tuple[Outcome, ...]]] = []
    z2_only = False
    candidates = list(reading.candidates)
    # Outcomes are kept by index, because two candidates may share a convention.
    tried = [
        _checked(scheme, methods) if len(candidates) == 1 or not refuted(scheme) else None for _, scheme in candidates
    ]
    for (convention, scheme), done in zip(candidates, tried, strict=True):
        if done and done[-1].ok:
            holding.append((convention, scheme, done))
    if not holding and ring is None:
        for convention, scheme in candidates:
            over_z2 = None if scheme.ring.characteristic else scheme.over_z2()
            if over_z2 is None or _refutation(over_z2):
                continue
            outcomes = _checked(over_z2, methods)
            if all(outcome.ok for outcome in outcomes):
                holding.append((convention, over_z2, outcomes))
                z2_only = True
    if not holding:
        # The intended convention is unknown; the one with fewer wrong equations is more informative.
        wrong = [wrong_in_one_image(scheme) for _, scheme in candidates] if len(candidates) > 1 else [0]
        index = wrong.index(min(wrong))
        convention, scheme = candidates[index]
        outcomes = tried[index] or _checked(scheme, methods)
        if reading.doubt:
            raise SchemeFormatError(f"{reading.doubt}; as it stands, nothing in it is valid", label)
        hint = _hint(reading, scheme)
        return Report(label, reading.format, scheme, outcomes, (convention,), None, notes=reading.notes, hint=hint)
    notes = reading.notes
    if len(holding) > 1 and holding[0][1].digest != holding[1][1].digest:
        notes += (f"holds by both conventions; read as {holding[0][0]}",)
    convention, scheme, outcomes = holding[0]
    notes += remarks(scheme)
    documented = format_named(reading.format).convention
    if convention != documented:
        notes += (f"third factor indexed by {convention}, where the format documents {documented}",)
    z2_only = z2_only or scheme.ring == Z2
    notes += (NOTE,) if scheme.large else ()
    return Report(
        label,
        reading.format,
        scheme,
        outcomes,
        tuple(name for name, _, _ in holding),
        _certificate(scheme, outcomes),
        z2_only,
        notes,
        ring,
    )


def _hint(reading: Reading, scheme: Scheme) -> str:
    """Return the target that the file holds as, or the one coefficient that is wrong."""
    for _, other in reading.alternatives:
        if not refuted(other) and check(other, "exact").ok:
            return f"holds as {other.target}"
    return nearest(scheme)


def _certificate(scheme: Scheme, outcomes: Sequence[Outcome]) -> Certificate | None:
    """Return the certificate of a valid scheme, or None where a coefficient exceeds int64."""
    return None if scheme.large else certificate_of(scheme, outcomes)


def remarks(scheme: Scheme) -> tuple[str, ...]:
    """Return notes on redundant products of a scheme: zero, unused, or repeated."""
    if scheme.rank > MAX_REMARKED:
        return ()
    u, v, w = (np.diff(factor.indptr) == 0 for factor in scheme.factors)
    empty = u | v
    zero, unused = np.flatnonzero(empty), np.flatnonzero(w & ~empty)
    rows = list(zip(factor_rows(scheme.u), factor_rows(scheme.v), strict=True))
    twice: list[int] = []
    if len(set(rows)) < len(rows):
        seen: set[tuple[bytes, bytes]] = set()
        for r in np.flatnonzero(~empty).tolist():
            if rows[r] in seen:
                twice.append(r)
            seen.add(rows[r])
    kinds = (("zero", zero.tolist()), ("used by no output", unused.tolist()), ("the same as one before", twice))
    return tuple(
        f"products that are {what}: {', '.join(str(r + 1) for r in found[:5])}{', ...' if len(found) > 5 else ''}"
        for what, found in kinds
        if found
    )


def factor_rows(factor: Factor) -> list[bytes]:
    """Return every product of a factor as bytes, equal up to sign (Gaussian factors: sign included)."""
    values, bounds = factor.values, factor.indptr.tolist()
    if factor.nnz and not factor.gaussian:
        first = values[np.minimum(factor.indptr[:-1], factor.nnz - 1)]
        values = values * np.where(first < 0, -1, 1)[factor.product]
    if factor.large:
        return [f"{factor.indices[a:b].tolist()} {values[a:b].tolist()}".encode() for a, b in pairwise(bounds)]
    places, numbers, width = factor.indices.tobytes(), values.tobytes(), 16 if factor.gaussian else 8
    return [places[8 * a : 8 * b] + numbers[width * a : width * b] for a, b in pairwise(bounds)]


def _refutation(scheme: Scheme) -> Outcome | None:
    """Return a wrong equation found at random points, or None; over a small field one point often misses it."""
    seeds = 16 if 0 < scheme.ring.characteristic < 100 else 1
    return next(filter(None, (first_wrong(scheme, seed) for seed in range(seeds))), None)


def _checked(scheme: Scheme, methods: Sequence[str]) -> tuple[Outcome, ...]:
    """Return the outcomes of the methods in order, or only the first that fails."""
    outcomes = []
    # One random value refutes a wrong scheme in a fraction of the time; one wrong equation is then reported.
    if "exact" in methods and is_long(scheme) and (failure := _refutation(scheme)):
        return (failure,)
    for method in methods:
        outcomes.append(check(scheme, method))
        if not outcomes[-1].ok:
            return (outcomes[-1],)
    return tuple(outcomes)


def verify_file(
    path: str | Path,
    methods: Sequence[str] = ("exact",),
    format: str | None = None,
    target: Target | None = None,
    ring: Ring | None = None,
    allow_pickle: bool = False,
) -> list[AnyReport]:
    """Verify every scheme of a file.

    Raises:
        SchemeFormatError: the file cannot be read as schemes.
    """
    need(tuple | list, methods=methods)
    readings = read_file(path, format, target, ring, allow_pickle)
    return [
        judge(reading, label, methods, ring) for reading, label in zip(readings, _labels(path, readings), strict=True)
    ]


def recheck_file(path: str | Path, allow_pickle: bool = False) -> list[AnyReport]:
    """Repeat the proofs of the certificates in a file, each by the methods that it names.

    Raises:
        SchemeFormatError: the file cannot be read as schemes.
        VerificationError: a scheme has no certificate, or one with a false claim.
    """
    need(PATH, path=path)
    readings = read_file(path, allow_pickle=allow_pickle)
    reports: list[AnyReport] = []
    for reading, label in zip(readings, _labels(path, readings), strict=True):
        claimed = reading.certificate
        if claimed is None:
            raise VerificationError(f"{label}: {'; '.join(reading.notes) or 'holds no certificate'}")
        convention, scheme = reading.candidates[0]
        try:
            outcomes = recheck_outcomes(scheme, claimed)
        except VerificationError as error:
            raise VerificationError(f"{label}: {error}") from None
        said = f"the certificate of lcma {claimed.version} ({', '.join(claimed.methods)}) was proven again"
        ok = outcomes[-1].ok
        certificate = _certificate(scheme, outcomes) if ok else None
        notes = (*reading.notes, said) if ok else reading.notes
        notes += (NOTE,) if scheme.large else ()
        report = Report(
            label,
            reading.format,
            scheme,
            outcomes,
            (convention,),
            certificate,
            ok and scheme.ring == Z2,
            notes,
            reading.declared,
        )
        reports.append(report)
    return reports


def _labels(path: str | Path, readings: Sequence[Reading]) -> list[str]:
    """Return the file's name for each reading, numbered where the file has several schemes."""
    return [f"{path}#{i + 1}" for i in range(len(readings))] if len(readings) > 1 else [str(path)]


def load(
    path: str | Path,
    format: str | None = None,
    target: Target | None = None,
    ring: Ring | None = None,
    *,
    allow_pickle: bool = False,
    rounded: bool = False,
) -> tuple[Scheme, Certificate]:
    """Return the only scheme of a file, proven, with its certificate.

    With `rounded` a file with inexact coefficients gives the exact scheme found by rounding them.

    Raises:
        SchemeFormatError: the file cannot be read, or does not contain exactly one scheme.
        VerificationError: the scheme is not valid; the message names the first wrong equation.
        VerifyOnlyError: it is valid, but a coefficient exceeds int64.
    """
    reports = verify_file(path, format=format, target=target, ring=ring, allow_pickle=allow_pickle)
    if len(reports) != 1:
        raise SchemeFormatError(f"holds {len(reports)} schemes; give a file with one", path)
    report = reports[0]
    if isinstance(report, ApproximateReport) and rounded and report.rounded is not None:
        return report.rounded, certify(report.rounded)
    return certified_scheme(report)


def certified_scheme(report: AnyReport) -> tuple[Scheme, Certificate]:
    """Return the scheme that a report proves, with its certificate.

    Raises:
        VerificationError: the scheme is not valid; the message names the first wrong equation.
        VerifyOnlyError: the scheme is valid, but a coefficient exceeds int64, or it is a program that is not expanded.
    """
    if isinstance(report, Report) and report.certificate is not None:
        return report.scheme, report.certificate
    if report.ok:
        raise VerifyOnlyError(f"{report.label}: {report.headline()}: {report.notes[-1]}")
    raise VerificationError(f"{report.label}: {report.headline()}")
