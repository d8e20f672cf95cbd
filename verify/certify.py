"""Proofs put together: from a scheme to its certificate, or to the error that names the first wrong equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import LcmaError, VerificationError
from ..schemes_db import Certificate, Scheme
from ..version import __version__
from .exact import check_exact
from .outcome import Outcome
from .randomized import check_randomized
from .symbolic import check_symbolic

METHODS: dict[str, Callable[[Scheme], Outcome]] = {
    "exact": check_exact,
    "randomized": check_randomized,
    "symbolic": check_symbolic,
}


def check(scheme: Scheme, method: str = "exact") -> Outcome:
    """The outcome of one method: "exact", "randomized" or "symbolic"."""
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
        VerificationError: the certificate is of another scheme, the proof fails now, or it is not
            what the certificate says of it.
    """
    if certificate.digest != scheme.digest or certificate.target != scheme.target.name:
        raise VerificationError(
            f"the certificate is of {certificate.digest[:12]}, not of {scheme!r} {scheme.digest[:12]}"
        )
    proven = certify(scheme, certificate.methods)
    confirm(certificate, proven)
    return proven


def confirm(claimed: Certificate, proven: Certificate) -> None:
    """Hold what a certificate says against a fresh one of the same scheme and methods.

    Raises:
        VerificationError: ring, rank, equations or product counts are not those that were proven.
    """
    claims = [("ring", claimed.ring, proven.ring), ("rank", claimed.rank, proven.rank)]
    for old, new in zip(claimed.proofs, proven.proofs, strict=True):
        claims += [(field, getattr(old, field), getattr(new, field)) for field in ("equations", "full", "half")]
    for field, said, found in claims:
        if said != found:
            raise VerificationError(f"the certificate says {field} {said}, but it is {found}")
