"""Random exact products against Python integers: `fuzz_products.py CASES SEED`, CASES a ring.

Sizes from 0 to a few blocks, thin and odd ones, batches, moduli up to 2^62, schemes of one or two levels, one and two
threads, and entries at the ends of their range. A wrong result ends the run with the case that shows it; a refusal must
say why. Every entry is compared; of larger products the Python integers are put together from numpy's own products of
parts of 22 bits, which int64 holds.
"""

import os
import random
import sys
import time
from collections import Counter
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

import lcma
from lcma.kernels.exact.bench import from_words
from lcma.kernels.exact.naive import naive_bits, naive_product, product_by_parts
from lcma.kernels.ring import ExactRing

GENERAL = ("strassen", "laderman", "4x4x4:49", "winograd")
MOD2 = (*GENERAL, "4x4x4:47", "4x4x5:60", "4x5x5:73")
NESTED = ("strassen", "winograd")
"""Schemes of two levels: of larger ones they would be thousands of products of a few bits."""

RINGS = ("Z2", "small primes", "primes", "Z/n", "Z")
SIZES = (0, 1, 1, 2, 3, 5, 8, 13, 17, 31, 33, 64, 65)
LEVELS = (1, 1, 1, 2)
SMALL = 4000
"""Products of so many terms are computed in Python integers from the beginning."""

PRIMES_OF_A_RUN = 64
"""Primes of every number of bits: thousands in all, each found once."""


def size(rng: random.Random) -> int:
    return rng.choice(SIZES) if rng.random() < 0.95 else rng.randint(60, 140)


@lru_cache(maxsize=4096)
def prime(number: int, bits: int) -> int:
    """A random prime of so many bits, the same for the same number."""
    rng = random.Random(f"prime {number} {bits}")
    while True:
        candidate = rng.getrandbits(bits) | 1 << (bits - 1) | 1
        if ExactRing(candidate).is_field:
            return candidate


@lru_cache(maxsize=32)
def proven(name: str) -> Any:
    return lcma.resolve(name)[0]


def modulus_of(rng: random.Random, kind: str) -> int:
    if kind == "small primes":
        return rng.choice((3, 5, 7, 11, 101, 251, 257, 1021))
    if kind == "primes":
        return prime(rng.randrange(PRIMES_OF_A_RUN), rng.randint(11, 61))
    return 0 if kind == "Z" else rng.choice((4, 6, 100, 1 << 32, 1 << 62, rng.randint(2, 1 << 62)))


def entries(rng: random.Random, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    draw = np.random.default_rng(rng.getrandbits(64))
    how = rng.random()
    if how < 0.2:
        return np.full(shape, rng.choice((low, high)), np.int64)
    if how < 0.4:
        return draw.choice(np.array([low, high, 0], np.int64), shape)
    return draw.integers(low, high, shape, endpoint=True)


def is_product(product: np.ndarray, a: np.ndarray, b: np.ndarray, ring: ExactRing) -> bool:
    """Return whether product is a b, entry by entry."""
    if a.size * b.shape[-1] <= SMALL:
        wanted = naive_product(a, b, ring)
    else:
        wanted = product_by_parts(a, b)
        wanted = wanted % ring.modulus if ring.modulus else wanted
    return product.shape == wanted.shape and bool((product.astype(object) == wanted).all())


def one_case(rng: random.Random, kind: str) -> str:
    """ "exact" or "refused"; anything else is a fault."""
    m, k, n = (size(rng) for _ in range(3))
    batch = (rng.randint(1, 3),) if rng.random() < 0.1 else ()
    name = rng.choice(("auto", "auto", *(MOD2 if kind == "Z2" else GENERAL)))
    levels = None if name == "auto" else rng.choice(LEVELS) if name in NESTED else 1
    scheme = "auto" if name == "auto" else proven(name)
    if rng.random() < 0.02 and levels == 1:
        scheme, levels = [scheme, proven("strassen")], None
    if kind == "Z2":
        a = lcma.BitMatrix.from_array(entries(rng, (*batch, m, k), 0, 1))
        b = lcma.BitMatrix.from_array(entries(rng, (k, n), 0, 1))
        return "exact" if lcma.matmul(a, b, scheme, levels, ring="Z2") == naive_bits(a, b) else "wrong"
    ring = ExactRing(modulus_of(rng, kind))
    bits = rng.choice((1, 8, 15, 20, 26, 31, 40, 53, 62, 63)) if not ring.modulus else 0
    low, high = (-(1 << bits), (1 << bits) - 1) if bits else (0, ring.modulus - 1)
    if ring.modulus and rng.random() < 0.1:
        low, high = -(1 << 63), (1 << 63) - 1
    a, b = entries(rng, (*batch, m, k), low, high), entries(rng, (k, n), low, high)
    out_dtype = rng.choice((None, "int128", "object")) if not ring.modulus else None
    try:
        product = lcma.matmul(a, b, scheme, levels, ring=ring, out_dtype=out_dtype)
    except lcma.PlanError as error:
        sums = "exceed what" in str(error)
        return "refused" if sums or "beyond int" in str(error) else f"refused oddly: {error}"
    if out_dtype == "int128":
        product = from_words(product)
    return "exact" if is_product(product, a, b, ring) else "wrong"


@patch.dict(os.environ)
def main(cases: int, seed: int) -> int:
    for kind in RINGS:
        counts: Counter[str] = Counter()
        began = time.perf_counter()
        for number in range(cases):
            rng = random.Random(f"{seed} {kind} {number}")
            # Blocks of cases share a number of threads: plans are kept for each.
            os.environ["LCMA_NUM_THREADS"] = "2" if number % 1000 >= 900 else "1"
            outcome = one_case(rng, kind)
            counts[outcome] += 1
            if outcome not in ("exact", "refused"):
                print(f"{kind}: case {number} of seed {seed}: {outcome}", file=sys.stderr)
                return 1
        told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        print(f"{kind}: {cases} cases in {time.perf_counter() - began:.0f} s, {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
