"""Primes for modular checks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..schemes_db.ring import is_prime


def primes_below(limit: int) -> Iterator[int]:
    """Yield the primes below a limit, largest first."""
    return (number for number in range(limit - 1, 1, -1) if is_prime(number))


def square_root_of_minus_one(prime: int) -> int:
    """Return a number whose square is -1 modulo a prime that is 1 modulo 4."""
    for base in range(2, prime):
        root = pow(base, (prime - 1) // 4, prime)
        if root * root % prime == prime - 1:
            return root
    raise ArithmeticError(f"-1 is not a square modulo {prime}")


PRIMES_31_BITS = 50_697_537
"""Number of primes from 2^30 to 2^31: pi(2^31) - pi(2^30) = 105,097,565 - 54,400,028."""


def random_prime(generator: np.random.Generator) -> int:
    """Return a uniformly random prime from 2^30 to 2^31."""
    while True:
        candidate = int(generator.integers(1 << 30, 1 << 31))
        if is_prime(candidate):
            return candidate


@lru_cache(maxsize=1)
def _generator() -> np.random.Generator:
    return np.random.default_rng()


def fresh_generator(seed: int | None) -> np.random.Generator:
    """Return a new generator for a seed, or the process's, seeded by the system, for None."""
    return _generator() if seed is None else np.random.default_rng(seed)
