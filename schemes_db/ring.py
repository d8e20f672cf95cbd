"""The rings that coefficients come from."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import TargetError


@dataclass(frozen=True)
class Ring:
    """A coefficient ring: Z (integers), Q (rationals) or Z2 (integers modulo 2).

    `characteristic` is 0 for Z and Q and p for Z/p; `fractions` says whether a factor may have a
    denominator other than 1.
    """

    name: str
    characteristic: int
    fractions: bool

    def __str__(self) -> str:
        return self.name


Z = Ring("Z", 0, fractions=False)
Q = Ring("Q", 0, fractions=True)
Z2 = Ring("Z2", 2, fractions=False)

RINGS = {ring.name: ring for ring in (Z, Q, Z2)}


def parse_ring(name: str) -> Ring:
    """The ring of that name.

    Raises:
        TargetError: there is no such ring.
    """
    try:
        return RINGS[name.upper()]
    except KeyError:
        raise TargetError(f"ring {name!r} is not known; choose one of {', '.join(RINGS)}") from None
