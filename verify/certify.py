"""Proofs put together: from a scheme to its certificate, or to the error that names the first wrong equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import LcmaError, VerificationError
from ..schemes_db import Certificate, Scheme
from ..version import __version__
from .exact import check_exact
from .outcome import Outcome
from .randomized import check_randomized

METHODS: dict[str, Callable[[Scheme], Outcome]] = {"exact": check_exact, "randomized": check_randomized}


def check(scheme: Scheme, method: str = "exact") -> Outcome:
    """The outcome of one method, "exact" or "randomized"."""
    try:
        checker = METHODS[method]
    except KeyError:
        raise LcmaError(f"method {method!r} is not known; choose one of {', '.join(METHODS)}") from None
    return checker(scheme)


def certificate_of(scheme: Scheme, outcomes: Sequence[Outcome]) -> Certificate:
    """The certificate of passed checks of a scheme.

    Raises:
        VerificationError: one of the checks failed.
    """
    proofs = []
    for outcome in outcomes:
        if outcome.proof is None:
            raise VerificationError(f"{scheme!r} is not valid ({outcome.method}): {outcome.explain()}")
        proofs.append(outcome.proof)
    return Certificate(scheme.target.name, scheme.ring.name, scheme.rank, scheme.digest, tuple(proofs), __version__)


def certify(scheme: Scheme, methods: Sequence[str] = ("exact",)) -> Certificate:
    """Prove that a scheme computes its target over its ring.

    Raises:
        VerificationError: it does not; the message names the first wrong equation.
    """
    return certificate_of(scheme, [check(scheme, method) for method in methods])


def recheck(scheme: Scheme, certificate: Certificate) -> Certificate:
    """Prove again what a certificate claims of a scheme, by the methods that it names.

    Raises:
        VerificationError: the certificate is of another scheme, or the proof fails now.
    """
    if certificate.digest != scheme.digest or certificate.target != scheme.target.name:
        raise VerificationError(
            f"the certificate is of {certificate.digest[:12]}, not of {scheme!r} {scheme.digest[:12]}"
        )
    return certify(scheme, certificate.methods)
