"""The rings that coefficients come from."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..arguments import need
from ..errors import TargetError


@dataclass(frozen=True)
class Ring:
    """A coefficient ring: Z (integers), Q (rationals), Q(i) (Gaussian rationals) or Z/p, named Z2, Z3, Z5, ...

    `characteristic` is 0 but for Z/p, where it is p; `fractions` says whether a factor may have a
    denominator other than 1, `gaussian` whether numerators have an imaginary part.
    """

    name: str
    characteristic: int
    fractions: bool
    gaussian: bool = False

    def __str__(self) -> str:
        return self.name


Z = Ring("Z", 0, fractions=False)
Q = Ring("Q", 0, fractions=True)
QI = Ring("Q(i)", 0, fractions=True, gaussian=True)
Z2 = Ring("Z2", 2, fractions=False)
Z3 = Ring("Z3", 3, fractions=False)

MAX_CHARACTERISTIC = 1 << 20
"""Products of two residues, summed over 4,096 products, must stay exact in float64."""

_NAMED = {ring.name.lower(): ring for ring in (Z, Q, QI, Z2, Z3)} | {"qi": QI}


def parse_ring(name: str) -> Ring:
    """The ring of that name: Z, Q, Q(i), or Zp for a prime p below 2^20.

    Raises:
        TargetError: there is no such ring.
    """
    need(str, name=name)
    if ring := _NAMED.get(name.strip().lower()):
        return ring
    if match := re.fullmatch(r"[zZ](\d{1,7})", name.strip()):
        characteristic = int(match.group(1))
        if characteristic < MAX_CHARACTERISTIC and _is_prime(characteristic):
            return Ring(f"Z{characteristic}", characteristic, fractions=False)
    raise TargetError(f"ring {name!r} is not known; choose one of Z, Q, Q(i), Z2, Z3, or Zp for a prime p below 2^20")


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
