"""Random exact products against Python integers: `fuzz_products.py CASES SEED`, CASES a ring.

Sizes from 0 to a few blocks, thin and odd ones, batches, moduli up to 2^62, schemes of one or two levels, and entries
at the ends of their range. A wrong result ends the run with the case that shows it; a refusal must say why.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import numpy as np

import lcma
from lcma.errors import PlanError
from lcma.kernels.exact.bench import from_words
from lcma.kernels.exact.naive import naive_bits, naive_product
from lcma.kernels.ring import ExactRing

GENERAL = ("strassen", "laderman", "4x4x4:49", "winograd")
MOD2 = (*GENERAL, "4x4x4:47", "4x4x5:60", "4x5x5:73")
RINGS = ("Z2", "small primes", "primes", "Z/n", "Z")
LEVELS = (1, 1, 1, 2)


def size(rng: random.Random) -> int:
    return rng.choice((0, 1, 1, 2, 3, 5, 8, 13, 17, 31, 33, 64, 65)) if rng.random() < 0.9 else rng.randint(60, 140)


def prime(rng: random.Random, bits: int) -> int:
    while True:
        number = rng.getrandbits(bits) | 1 << (bits - 1) | 1
        if ExactRing(number).is_field:
            return number


def modulus_of(rng: random.Random, kind: str) -> int:
    if kind == "small primes":
        return rng.choice((3, 5, 7, 11, 101, 251, 257, 1021))
    if kind == "primes":
        return prime(rng, rng.randint(11, 61))
    return 0 if kind == "Z" else rng.choice((4, 6, 100, 1 << 32, 1 << 62, rng.randint(2, 1 << 62)))


def entries(rng: random.Random, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    draw = np.random.default_rng(rng.getrandbits(64))
    how = rng.random()
    if how < 0.2:
        return np.full(shape, rng.choice((low, high)), np.int64)
    if how < 0.4:
        return draw.choice(np.array([low, high, 0], np.int64), shape)
    return draw.integers(low, high, shape, endpoint=True)


def one_case(rng: random.Random, kind: str) -> str:
    """ "exact" or "refused"; anything else is a fault."""
    m, k, n = (size(rng) for _ in range(3))
    batch = (rng.randint(1, 3),) if rng.random() < 0.1 else ()
    scheme = rng.choice(("auto", "auto", *(MOD2 if kind == "Z2" else GENERAL)))
    levels = None if scheme == "auto" else rng.choice(LEVELS)
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
    except PlanError as error:
        sums = "exceed what" in str(error)
        return "refused" if sums or "beyond int" in str(error) else f"refused oddly: {error}"
    if out_dtype == "int128":
        product = from_words(product)
    wanted = naive_product(a, b, ring)
    return "exact" if product.shape == wanted.shape and (product.astype(object) == wanted).all() else "wrong"


def main(cases: int, seed: int) -> int:
    for kind in RINGS:
        counts: Counter[str] = Counter()
        for number in range(cases):
            rng = random.Random(f"{seed} {kind} {number}")
            outcome = one_case(rng, kind)
            counts[outcome] += 1
            if outcome not in ("exact", "refused"):
                print(f"{kind}: case {number} of seed {seed}: {outcome}", file=sys.stderr)
                return 1
        print(f"{kind}: {cases} cases, " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
