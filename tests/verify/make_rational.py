"""Write a large scheme with large fractions, to time exact proofs with: `python make_rational.py OUT.npz [LEVELS]`.

The fifth tensor power of a dense form of Strassen's identity, <32,32,32:16807>; every product is scaled so that
each factor has the common denominator 2^20 3^13 (above 2^40) and numerators up to 2^60.
"""

import sys
from pathlib import Path

import numpy as np

import lcma
from lcma.schemes_db import Q, Scheme
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.factor import Factor
from lcma.schemes_db.formats import render

TWOS, THREES = 20, 13
DENOMINATOR = 2**TWOS * 3**THREES


def dense_strassen() -> Scheme:
    """Strassen's identity in a basis with 12, 16 and 16 nonzeros instead of 12 each."""
    basis = ([[-1, -1], [-1, 0]], [[-1, -1], [-1, 0]], [[-1, -1], [0, 1]])
    return change_of_basis(lcma.resolve("strassen")[0], *basis)


def scaled(scheme: Scheme, seed: int = 1) -> Scheme:
    """The scheme with its products scaled at random by 2^i 3^j, the three scales of a product having product 1."""
    rng = np.random.default_rng(seed)
    twos, threes = (
        _exponents(rng, scheme.rank, total, largest) for total, largest in ((3 * TWOS, 27), (3 * THREES, 16))
    )
    factors = []
    for factor, two, three in zip(scheme.factors, twos, threes, strict=True):
        scales = np.array([2**i * 3**j for i, j in zip(two.tolist(), three.tolist(), strict=True)], dtype=np.int64)
        values = factor.values * scales[factor.product]
        factors.append(Factor(factor.rows, factor.cols, factor.indptr, factor.indices, values, DENOMINATOR))
    return Scheme(scheme.target, factors[0], factors[1], factors[2], Q, f"scaled {scheme.target}")


def _exponents(rng: np.random.Generator, rank: int, total: int, largest: int) -> list[np.ndarray]:
    """Three exponents a product, from 0 to `largest`, with this sum."""
    first = rng.integers(total - 2 * largest if total > 2 * largest else 0, largest + 1, rank)
    low, high = np.maximum(0, total - first - largest), np.minimum(largest, total - first)
    second = low + (rng.random(rank) * (high - low + 1)).astype(np.int64)
    return [first, second, total - first - second]


def make(levels: int = 5) -> Scheme:
    """The scheme of so many levels."""
    base = dense_strassen()
    scheme = base
    for _ in range(levels - 1):
        scheme = lcma.tensor(scheme, base)
    return scaled(scheme)


if __name__ == "__main__":
    made = make(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    Path(sys.argv[1]).write_bytes(render(made, "lcma-npz"))
    largest = max(int(np.abs(factor.values).max()) for factor in made.factors)
    nonzeros = sum(factor.nnz for factor in made.factors)
    print(f"{made!r}: {nonzeros} nonzeros, numerators to 2^{largest.bit_length() - 1}, denominators {DENOMINATOR}")
