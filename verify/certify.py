"""Certification: check a scheme and return its certificate, or raise an error that names the first wrong equation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from ..arguments import need
from ..errors import LcmaError, VerificationError, VerifyOnlyError, unknown_name
from ..schemes_db import Certificate, Proof, Scheme
from ..version import __version__
from .exact import check_exact
from .outcome import Outcome
from .randomized import MAX_ROUNDS, check_randomized, unfit_primes
from .symbolic import check_symbolic

METHODS: dict[str, Callable[[Scheme], Outcome]] = {
    "exact": check_exact,
    "randomized": check_randomized,
    "symbolic": check_symbolic,
}


def check(scheme: Scheme, method: str = "exact") -> Outcome:
    """Check a scheme by one method: "exact", "randomized" or "symbolic".

    Raises:
        LcmaError: the method is not known, or is not "exact" where a coefficient exceeds int64.
    """
    need(Scheme, scheme=scheme)
    need(str, method=method)
    try:
        checker = METHODS[method]
    except KeyError:
        raise unknown_name("method", method, METHODS) from None
    if scheme.large and method != "exact":
        raise LcmaError(f"{scheme!r} has coefficients beyond int64, which are verified by exact, not by {method}")
    return checker(scheme)


def certificate_of(scheme: Scheme, outcomes: Sequence[Outcome]) -> Certificate:
    """Return the certificate of passed checks of a scheme.

    Raises:
        VerificationError: one of the checks failed.
        VerifyOnlyError: all passed, but a coefficient exceeds int64.
    """
    proofs = []
    for outcome in outcomes:
        if outcome.proof is None:
            raise VerificationError(f"{scheme!r} is not valid ({outcome.method}): {outcome.explain()}")
        proofs.append(outcome.proof)
    if scheme.large:
        raise VerifyOnlyError(f"{scheme!r} is valid, but has coefficients beyond int64: neither kept nor run")
    return Certificate(scheme.target.name, scheme.ring.name, scheme.rank, scheme.digest, tuple(proofs), __version__)


def certify(scheme: Scheme, methods: Sequence[str] = ("exact",)) -> Certificate:
    """Prove that a scheme computes its target over its ring.

    Raises:
        VerificationError: it does not; the message names the first wrong equation.
        VerifyOnlyError: it does, but a coefficient exceeds int64.
    """
    need(Scheme, scheme=scheme)
    need(tuple | list, methods=methods)
    return certificate_of(scheme, [check(scheme, method) for method in methods])


NOT_RECHECKABLE = {"program": "a straight-line program", "traced": "a callable"}
"""Methods that prove an object which a certificate's file does not contain."""


def recheck(scheme: Scheme, certificate: Certificate) -> Certificate:
    """Repeat the proofs of a certificate of a scheme, by the methods that it names.

    Every claim is compared with the new result, except the version and the primes of a random proof, which
    is repeated modulo new random primes and at least to the default error probability.

    Raises:
        VerificationError: the certificate is of another scheme, a proof fails, a result differs from
            the certificate's claim, or the proof cannot be repeated.
    """
    need(Scheme, scheme=scheme)
    need(Certificate, certificate=certificate)
    return certificate_of(scheme, recheck_outcomes(scheme, certificate))


def recheck_outcomes(scheme: Scheme, certificate: Certificate) -> tuple[Outcome, ...]:
    """Return the outcomes of the methods that a certificate names, or only the first that fails.

    Raises:
        VerificationError: a result differs from the certificate's claim, or a proof cannot be repeated.
    """
    if certificate.digest != scheme.digest or certificate.target != scheme.target.name:
        raise VerificationError(
            f"the certificate is of {certificate.digest[:12]}, not of {scheme!r} {scheme.digest[:12]}"
        )
    _compare("ring", certificate.ring, scheme.ring.name)
    _compare("rank", certificate.rank, scheme.rank)
    outcomes: list[Outcome] = []
    for claimed in certificate.proofs:
        outcomes.append(_repeated(scheme, claimed))
        proven = outcomes[-1].proof
        if proven is None:
            return (outcomes[-1],)
        for field in dataclasses.fields(Proof):
            if field.name != "primes" or claimed.method != "randomized":
                _compare(field.name, getattr(claimed, field.name), getattr(proven, field.name))
    return tuple(outcomes)


def _repeated(scheme: Scheme, claimed: Proof) -> Outcome:
    """Run the method of a claimed proof and return its outcome."""
    if claimed.method in NOT_RECHECKABLE:
        raise VerificationError(
            f"the certificate's {claimed.method} proof is of {NOT_RECHECKABLE[claimed.method]} and can't be "
            "rechecked from the file; prove the scheme by exact"
        )
    if claimed.method not in METHODS:
        raise VerificationError(f"the certificate claims a proof by {claimed.method[:40]!r}, which is not known")
    if claimed.method != "randomized":
        return check(scheme, claimed.method)
    if not 1 <= claimed.rounds <= MAX_ROUNDS:
        raise VerificationError(f"the certificate says rounds {claimed.rounds}; a random proof has 1 to {MAX_ROUNDS}")
    if reason := unfit_primes(scheme, claimed.primes, claimed.rounds):
        raise VerificationError(f"the certificate's random proof {reason}")
    return check_randomized(scheme, rounds=claimed.rounds)  # modulo primes of its own: claimed ones may be chosen


def _compare(field: str, said: object, found: object) -> None:
    if isinstance(said, float) and isinstance(found, float) and math.isclose(said, found, rel_tol=1e-12):
        return
    if said != found:
        raise VerificationError(f"the certificate says {field} {_brief(said)}, but it is {_brief(found)}")


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
