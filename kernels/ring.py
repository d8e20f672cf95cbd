"""The rings of exact products: Z, GF(p) and Z/n. Products of real numbers have none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import PlanError

MAX_MODULUS = 1 << 62
"""Maximum modulus, for which sums of two residues fit int64."""


@dataclass(frozen=True)
class ExactRing:
    """Z (modulus 0), or the integers modulo n from 2 to 2^62.

    Raises:
        PlanError: there is no such ring.
    """

    modulus: int

    def __post_init__(self) -> None:
        if self.modulus < 0 or self.modulus == 1 or self.modulus > MAX_MODULUS:
            raise PlanError(f"the modulus of a ring must be from 2 to 2^62, not {self.modulus}")

    @property
    def is_field(self) -> bool:
        return _is_prime(self.modulus)

    @property
    def name(self) -> str:
        if self.modulus == 0:
            return "Z"
        return f"GF({self.modulus})" if self.is_field else f"Z/{self.modulus}"

    def __str__(self) -> str:
        return self.name


INTEGERS, GF2 = ExactRing(0), ExactRing(2)


def exact_ring(text: str | ExactRing) -> ExactRing:
    """Return the ring of a name: Z, Z2, GF(p) for a prime p, Z/n for any n; p and n may be written 2^61-1.

    Raises:
        PlanError: there is no such ring, or p is not prime.
    """
    if isinstance(text, ExactRing):
        return text
    if not isinstance(text, str):
        raise PlanError(f"ring must be a name such as Z, Z2, GF(101) or Z/100, not {text!r}")
    plain = text.replace(" ", "").upper()
    if plain == "Z":
        return INTEGERS
    match = re.fullmatch(r"(GF\(|F|Z/|Z)(\d{1,20})(?:\^(\d{1,2})([+-]\d{1,18})?)?(\)?)", plain)
    if not match or (match.group(1) == "GF(") != (match.group(5) == ")"):
        raise PlanError(f"ring {text[:80]!r} is not known; choose one of Z, Z2, GF(p) for a prime p, or Z/n")
    base, power, shift = int(match.group(2)), match.group(3), match.group(4)
    if power is not None and (base > 1 << 31 or int(power) > 62):
        raise PlanError(f"the modulus of {text[:80]} is beyond 2^62")
    if base == 0:
        raise PlanError("a modulus must be from 2 to 2^62, not 0; write Z for the integers")
    ring = ExactRing(base if power is None else base ** int(power) + int(shift or 0))
    if match.group(1) != "Z/" and not ring.is_field:
        raise PlanError(f"{ring.modulus} is not prime; write Z/{ring.modulus} for the ring of integers modulo it")
    return ring


@lru_cache(maxsize=256)
def _is_prime(number: int) -> bool:
    """Test primality by Miller-Rabin with the first twelve primes as bases, which is a proof below 3.3 * 10^24.

    Source: Sorenson and Webster, Strong pseudoprimes to twelve prime bases (2015).
    """
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if number < 2:
        return False
    for base in bases:
        if number % base == 0:
            return number == base
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
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
