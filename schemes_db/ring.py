"""The rings that coefficients come from."""

from __future__ import annotations

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
        if characteristic < MAX_CHARACTERISTIC and is_prime(characteristic):
            return Ring(f"Z{characteristic}", characteristic, fractions=False)
    raise TargetError(f"ring {name!r} is not known; choose one of Z, Q, Q(i), Z2, Z3, or Zp for a prime p below 2^20")


FOUR_BASES, BASES = 3_215_031_751, (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(number: int) -> bool:
    """Return whether a number below 3.3 * 10^24 is prime, by Miller-Rabin with bases that decide it.

    Source: the first four primes decide below FOUR_BASES (Jaeschke 1993), the first twelve below the bound above
    (Sorenson and Webster, Strong pseudoprimes to twelve prime bases, 2015).
    """
    if number < 2 or any(number % base == 0 for base in BASES):
        return number in BASES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in BASES[:4] if number < FOUR_BASES else BASES:
        value = pow(base, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True
