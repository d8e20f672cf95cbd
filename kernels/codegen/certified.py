"""The one gate in front of every executor: schemes are proven before a program is made of them."""

from __future__ import annotations

import threading

from ...errors import PlanError
from ...schemes_db.certificate import Certificate
from ...schemes_db.scheme import Scheme

SchemeLike = str | Scheme | tuple[Scheme, Certificate | None]
"""A catalogue name, a scheme, or a scheme with the certificate that came with it."""

_lock = threading.Lock()
_proven: set[str] = set()
"""Digests of the schemes that were proven in this process."""


def certified(scheme: SchemeLike) -> Scheme:
    """The scheme itself, proven in this process (once a digest).

    A certificate that comes with it is a record of an earlier proof, never a pass: it may be forged.

    Raises:
        PlanError: it is none, holds over Z2 only, or has coefficients that are not real.
        VerificationError: it does not compute its target.
    """
    from ...verify import certify

    if isinstance(scheme, str):
        from ...schemes_db.resolve import resolve

        scheme = resolve(scheme)
    if isinstance(scheme, Scheme):
        scheme = scheme, None
    if not (isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[0], Scheme)):
        raise PlanError(f"scheme must be a name, a scheme or a pair (scheme, certificate), not {scheme!r}")
    scheme, _ = scheme
    if not scheme.target.is_product:
        raise PlanError(f"{scheme.target} is no product of matrices: no kernel is made of it")
    if scheme.ring.characteristic:
        raise PlanError(f"{scheme.name or scheme.target} holds over {scheme.ring} only; lift it to Z first")
    # Asked of the scheme in hand: its digest forgets units, so a real scheme may share it.
    if scheme.gaussian:
        raise PlanError(f"{scheme.name or scheme.target} has coefficients that are not real; no kernel is made of it")
    if scheme.digest not in _proven:
        certify(scheme)
        with _lock:
            _proven.add(scheme.digest)
    return scheme
