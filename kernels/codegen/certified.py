"""The check in front of every executor: schemes are proven before programs are built from them."""

from __future__ import annotations

import math

from ...arguments import shown
from ...errors import PlanError
from ...schemes_db.certificate import Certificate
from ...schemes_db.scheme import Scheme
from ..ring import ExactRing

SchemeLike = str | Scheme | tuple[Scheme, Certificate | None]
"""A catalogue name, a scheme, or a pair of a scheme and its certificate."""

_proven: set[str] = set()
"""Digests of the schemes that were proven in this process."""


def certified(scheme: SchemeLike, ring: ExactRing | None = None) -> Scheme:
    """Return the scheme, proven in this process (once per digest), for the reals or an exact ring.

    A given certificate does not replace the proof, as it may be forged.

    Raises:
        PlanError: it is no scheme for matrix products, is invalid over the ring, or has coefficients that are not real.
        VerificationError: it does not compute its target.
    """
    from ...verify import certify

    if isinstance(scheme, str):
        from ...schemes_db.resolve import resolve

        scheme = resolve(scheme)
    if isinstance(scheme, Scheme):
        scheme = scheme, None
    if not (isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[0], Scheme)):
        raise PlanError(f"scheme must be a name, a scheme or a pair (scheme, certificate), not {shown(scheme)}")
    scheme, _ = scheme
    if not scheme.target.is_product:
        raise PlanError(f"{scheme.target} is no product of matrices: no kernel is made of it")
    if scheme.ring.characteristic and (ring is None or ring.modulus != scheme.ring.characteristic):
        name, own = scheme.name or scheme.target, scheme.ring
        raise PlanError(f'{name} holds over {own} only; lift it to Z first, or multiply over it: ring="{own}"')
    # Checked on the given scheme: digests ignore multiplication by units, so a real scheme may share its digest.
    if scheme.gaussian:
        raise PlanError(f"{scheme.name or scheme.target} has coefficients that are not real; no kernel is made of it")
    if ring is not None and (reason := denominator_reason(scheme, ring)):
        raise PlanError(f"{scheme.name or scheme.target} {reason}")
    if scheme.digest not in _proven:
        certify(scheme)
        _proven.add(scheme.digest)
    return scheme


def denominator_reason(scheme: Scheme, ring: ExactRing) -> str | None:
    """Return the reason why the coefficients of a scheme do not exist in a ring, or None."""
    for denominator in scheme.denominators:
        if ring.modulus == 0 and denominator != 1:
            return f"has the denominator {denominator}; over Z a scheme has integer coefficients"
        if ring.modulus and math.gcd(denominator, ring.modulus) != 1:
            return f"has the denominator {denominator}, which has no inverse in {ring}"
    return None
