"""The rings of exact products: Z, GF(p) and Z/n. Products of real numbers have none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def is_field(self) -> bool:
        from ..schemes_db.ring import is_prime  # no product of floats needs it

        return is_prime(self.modulus)

    @property
    def name(self) -> str:
        if self.modulus == 0:
            return "Z"
        return f"GF({self.modulus})" if self.is_field else f"Z/{self.modulus}"

    def __str__(self) -> str:
        return self.name

    def magnitude(self, most: int) -> int:
        """Return the largest magnitude, 1 or more, of entries up to `most` that are reduced to the nearest residues."""
        return max(1, min(most, self.modulus // 2 + 1) if self.modulus else most)


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
