"""Random instances modulo random primes, with halves computed as halves and garbage in the unused parts.

One instance of a general target has scalar blocks: the equations are bilinear in two disjoint sets
of variables, so scalars already separate their coefficients. Targets with half blocks get 2 x 2
blocks, so that a block has a triangle that is used and one that is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..schemes_db import Kind, Proof, Scheme, Target
from ..schemes_db.costs import product_kinds
from ..schemes_db.factor import Factor
from ..schemes_db.program import ProductKind
from ..schemes_db.ring import is_prime
from .exact import magnitude_bound
from .outcome import Outcome, mismatch
from .primes import PRIMES_31_BITS, fresh_generator, random_prime, square_root_of_minus_one

DEFAULT_ERROR_LOG2 = -100.0

QUICK_PRIME = 1_048_573
"""The largest prime below 2^20: float64 sums of 2^13 products of two residues are exact."""

IntArray = npt.NDArray[np.int64]


MAX_ROUNDS = 10_000
"""Maximum number of rounds of a proof that is repeated: over Z2 an error below 2^-1000 takes 2,410."""


def check_randomized(
    scheme: Scheme,
    error_log2: float = DEFAULT_ERROR_LOG2,
    seed: int | None = None,
    *,
    rounds: int = 0,
) -> Outcome:
    """Check a scheme on random instances; a wrong one passes with probability at most 2^error_log2.

    A round misses a wrong scheme if the prime divides the wrong coefficient's error, or if the
    instance is a zero of a nonzero bilinear form (Schwartz-Zippel: at most 2/p; over Z2 itself at
    most 3/4). Rounds are independent and repeated until the product of their bounds is at most
    2^error_log2, and at least `rounds` times. Primes and instances are drawn here: the bound does not
    hold for primes that come from elsewhere.
    """
    start = time.perf_counter()
    generator = fresh_generator(seed)
    modulus = scheme.ring.characteristic
    per_round = _error_per_round(scheme)
    rounds = max(rounds, math.ceil(error_log2 / per_round))
    kinds = product_kinds(scheme)
    used: list[int] = []
    while len(used) < rounds:
        prime = modulus or random_prime(generator)
        if not _fits(scheme, prime):
            continue
        used.append(prime)
        root = 0
        if scheme.gaussian:
            root = square_root_of_minus_one(prime)
            root = root if generator.integers(2) else prime - root
        if not _instance_holds(scheme, kinds, prime, root, generator):
            elapsed = time.perf_counter() - start
            return Outcome("randomized", None, scheme.target.equations, elapsed, wrong=None)
    half = sum(kind.half for kind in kinds)
    proof = Proof(
        "randomized",
        primes=() if modulus else tuple(used),
        rounds=rounds,
        error_log2=rounds * per_round,
        full=scheme.rank - half,
        half=half,
    )
    return Outcome("randomized", proof, scheme.target.equations, time.perf_counter() - start)


def _error_per_round(scheme: Scheme) -> float:
    """Return log2 of a bound on the probability that one round passes a wrong scheme."""
    if modulus := scheme.ring.characteristic:
        return math.log2(1 - (1 - 1 / modulus) ** 2)
    # A wrong coefficient a + b i vanishes at a root modulo p only if p divides a^2 + b^2; primes
    # with a square root of -1 are half of all (their count differs from that by far less).
    size, choice = (2, 3) if scheme.gaussian else (1, 1)
    divisors = math.ceil(size * (magnitude_bound(scheme).bit_length() + 1) / 30)
    return math.log2(2 / (1 << 30) + choice * divisors / PRIMES_31_BITS)


def _fits(scheme: Scheme, prime: int) -> bool:
    """Return whether a prime divides no denominator, and has a square root of -1 if the scheme is Gaussian."""
    return math.gcd(prime, math.prod(scheme.denominators)) == 1 and (not scheme.gaussian or prime % 4 == 1)


def unfit_primes(scheme: Scheme, primes: Sequence[int], rounds: int) -> str:
    """Return the fault in the primes of a random proof of a scheme in `rounds` rounds, or an empty string."""
    if scheme.ring.characteristic:
        return "" if not primes else f"says primes, where all rounds are modulo {scheme.ring.characteristic}"
    if len(primes) != rounds:
        return f"says {rounds} rounds and {len(primes)} primes"
    if len(set(primes)) != len(primes):
        return "says one prime twice"
    bad = next((prime for prime in primes if not (1 << 30 <= prime < 1 << 31 and is_prime(prime))), None)
    if bad is not None:
        return f"says prime {bad}, which is none from 2^30 to 2^31"
    return "" if all(_fits(scheme, prime) for prime in primes) else "says a prime that divides a denominator"


def refuted(scheme: Scheme, seed: int = 0) -> bool:
    """Return whether one value of the scheme's trilinear form, modulo a prime, differs from that of its target.

    True proves that the scheme is wrong, in a fraction of the time of all equations; False proves
    nothing. Gaussian schemes always return False.
    """
    if scheme.gaussian:
        return False
    prime = scheme.ring.characteristic or QUICK_PRIME
    points = _points(prime, scheme.target.shape, seed)
    x, y, z = (_form(factor, point, prime) for factor, point in zip(scheme.factors, points, strict=True))
    p, q, s = scheme.target.terms.T
    terms = points[0][p] * points[1][q] % prime * points[2][s] % prime
    wanted = int((terms * (scheme.target.term_values % prime) % prime).sum()) % prime
    return bool((int((x * y % prime * z % prime).sum()) - math.prod(scheme.denominators) * wanted) % prime)


@lru_cache(maxsize=64)
def _points(prime: int, shape: tuple[int, int, int], seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return random values of the blocks of A, B and C."""
    generator = np.random.default_rng(seed)
    m, k, n = shape
    a, b, c = (generator.integers(0, prime, size) for size in (m * k, k * n, m * n))
    return a, b, c


def first_wrong(scheme: Scheme, seed: int = 0) -> Outcome | None:
    """Return the failure of a wrong scheme with one of its wrong equations, found block by block.

    Sums over two of the three factors at a random point locate a block of A that fails, then one of B
    with it, then one of C, in a fraction of the time of all equations. Returns None where the scheme
    is right or the point does not expose an error, and for Gaussian schemes.
    """
    if scheme.gaussian:
        return None
    start = time.perf_counter()
    prime = scheme.ring.characteristic or QUICK_PRIME
    generator = np.random.default_rng(seed)
    points = [generator.integers(0, prime, factor.blocks) for factor in scheme.factors]
    forms = [_form(factor, point, prime) for factor, point in zip(scheme.factors, points, strict=True)]
    terms, place = scheme.target.terms, []
    # Of every product and of every term of the target: the coefficient at the blocks that are found already.
    found = np.ones(scheme.rank, np.int64)
    wanted = math.prod(scheme.denominators) % prime * (scheme.target.term_values % prime) % prime
    for slot, factor in enumerate(scheme.factors):
        scales, values = found, wanted
        for later in range(slot + 1, 3):
            scales, values = scales * forms[later] % prime, values * points[later][terms[:, later]] % prime
        sums = np.bincount(factor.indices, _residues(factor, prime) * scales[factor.product] % prime, factor.blocks)
        wrong = np.flatnonzero((sums - np.bincount(terms[:, slot], values, factor.blocks)).astype(np.int64) % prime)
        if not len(wrong):
            return None
        place.append(int(wrong[0]))
        here, column = factor.indices == wrong[0], np.zeros(scheme.rank, np.int64)
        column[factor.product[here]] = _residues(factor, prime)[here]
        found, wanted = found * column % prime, wanted * (terms[:, slot] == wrong[0])
    seconds = time.perf_counter() - start
    return Outcome("exact", None, scheme.target.equations, seconds, None, mismatch(scheme, *place))


def _form(factor: Factor, point: IntArray, prime: int) -> IntArray:
    """Return the value of every product's sum at a point, (R,)."""
    sums = np.bincount(factor.product, _residues(factor, prime) * point[factor.indices] % prime, factor.rank)
    return sums.astype(np.int64) % prime


def _residues(factor: Factor, prime: int) -> IntArray:
    """Return the numerators modulo a prime as int64: those beyond int64 are Python integers."""
    return (factor.values % prime).astype(np.int64, copy=False)


def _instance_holds(
    scheme: Scheme, kinds: tuple[ProductKind, ...], prime: int, root: int, generator: np.random.Generator
) -> bool:
    target = scheme.target
    side = 2 if any(kind.half for grid in (target.a, target.b, target.c) for row in grid for kind in row) else 1
    a_kinds, b_kinds, c_kinds = (kinds_.ravel() for kinds_ in target.kind_arrays)
    a, b = (generator.integers(0, prime, (len(grid), side, side)) for grid in (a_kinds, b_kinds))
    u, v, w = scheme.reduced_mod(prime, root)
    left, right = _sums(u, a, a_kinds, kinds, "left", prime), _sums(v, b, b_kinds, kinds, "right", prime)
    products = _matmul(left, right, prime)
    for r, kind in enumerate(kinds):
        if kind.side == "out":
            garbage = generator.integers(0, prime, (side, side))
            products[r] = np.where(_wanted(kind.of_upper, side), products[r], garbage)
    outputs = np.zeros((len(c_kinds), side, side), dtype=np.int64)
    np.add.at(outputs, w.indices, w.values[:, None, None] * products[w.product] % prime)
    truth = _summed_terms(target, _masked(a, a_kinds), _masked(b, b_kinds), prime)
    return bool((_masked((outputs - truth) % prime, c_kinds) == 0).all())


def _sums(
    factor: Factor, blocks: IntArray, grid: IntArray, kinds: tuple[ProductKind, ...], side_name: str, prime: int
) -> IntArray:
    """Return left or right sums (R, s, s); half products sum whole blocks with garbage, then mask the sum."""
    masked = _masked(blocks, grid)
    half = np.array([kind.side == side_name for kind in kinds])
    gathered = np.where(half[factor.product][:, None, None], blocks[factor.indices], masked[factor.indices])
    sums = np.zeros((factor.rank, *blocks.shape[1:]), dtype=np.int64)
    np.add.at(sums, factor.product, factor.values[:, None, None] * gathered % prime)
    for r in np.flatnonzero(half):
        sums[r] = np.where(_wanted(kinds[r].of_upper, blocks.shape[1]), sums[r], 0)
    return sums % prime


def _wanted(upper: bool, side: int) -> npt.NDArray[np.bool_]:
    square = np.ones((side, side), dtype=bool)
    return np.triu(square) if upper else np.tril(square)


def _masked(blocks: IntArray, grid: IntArray) -> IntArray:
    """Return the blocks with all entries outside their kind set to zero."""
    side = blocks.shape[1]
    masks = {
        Kind.ABSENT: np.zeros((side, side), dtype=bool),
        Kind.FULL: np.ones((side, side), dtype=bool),
        Kind.LOWER: _wanted(False, side),
        Kind.UPPER: _wanted(True, side),
    }
    mask = np.stack([masks[Kind(int(kind))] for kind in grid])
    return np.where(mask, blocks, 0)


def _matmul(left: IntArray, right: IntArray, prime: int) -> IntArray:
    """Multiply stacks of s x s matrices of residues below 2^31, reduced modulo the prime."""
    terms = left[:, :, :, None] * right[:, None, :, :] % prime
    total: IntArray = terms.sum(axis=2) % prime
    return total


def _summed_terms(target: Target, a: IntArray, b: IntArray, prime: int) -> IntArray:
    """Return the outputs of the target for stacks of blocks, term by term."""
    p, q, s = target.terms.T
    total = np.zeros((target.m * target.n, *a.shape[1:]), dtype=np.int64)
    np.add.at(total, s, _matmul(a[p], b[q], prime) * (target.term_values % prime)[:, None, None] % prime)
    return total % prime
