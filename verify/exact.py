"""Exact check of every Brent equation.

The equation of (A[p], B[q], C[s]) says that sum_r U[r,p] V[r,q] W[r,s] is 1 where the target has
that term and 0 elsewhere. For a group of blocks p the sums are one matrix product: the group's
Khatri-Rao rows U[r,p] V[r,q] times W, for the products r that use the group. Sparse schemes are
expanded term by term instead (`expansion`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from ..errors import LcmaError
from ..schemes_db import Proof, Scheme
from ..schemes_db.costs import full_and_half
from ..schemes_db.factor import Factor, IntArray
from . import expansion
from .expansion import (
    MODULAR_ROWS,
    FloatArray,
    Image,
    Numerators,
    Parts,
    Residuals,
    gathered,
    numerators_of,
    right_sides,
    symmetric,
)
from .outcome import Mismatch, Outcome, mismatch
from .primes import primes_below, square_root_of_minus_one

GROUP_ENTRIES = 1 << 21
"""Maximum number of entries of one group's Khatri-Rao matrix, and of its sums, unless a single block needs more."""

_FLOAT_LIMIT = 1 << 53
_MODULAR_PRIME_LIMIT = 1 << 21


LONG_PROOF = 20_000_000_000
"""Number of multiplications of a dense proof above which the wrong equations are not counted (some seconds)."""

MAX_LARGE = 200_000_000
"""Maximum number of terms u v w, counted once a prime, of a scheme with coefficients beyond int64: some seconds."""


def is_long(scheme: Scheme) -> bool:
    """Return whether checking all equations takes more than some seconds (LONG_PROOF)."""
    terms = expansion.TERM_COST * expansion.term_count(scheme)
    return min(terms, scheme.u.nnz * scheme.v.blocks * scheme.w.blocks) > LONG_PROOF


def check_exact(scheme: Scheme) -> Outcome:
    """Decide whether a scheme computes its target over its ring: all equations, no chance involved.

    Sums are computed in float64 where a bound proves every partial sum below 2^53, else modulo enough
    primes that their product exceeds twice the bound. A scheme over Z/p is checked modulo p. A Gaussian
    scheme is checked modulo primes with a square root of -1, with i replaced by each of the two roots:
    a + b i vanishes at both only if p divides a and b.

    Raises:
        LcmaError: coefficients beyond int64 in more terms than MAX_LARGE.
    """
    start = time.perf_counter()
    modulus = scheme.ring.characteristic
    numerators = numerators_of(scheme)
    images = _images(scheme, numerators)
    if scheme.large and (terms := len(images) * expansion.term_count(scheme)) > MAX_LARGE:
        raise LcmaError(f"{scheme!r} has coefficients beyond int64 in {terms} terms; at most {MAX_LARGE} are verified")
    wrong, first = _count_wrong(scheme, images, numerators)
    equations = scheme.target.equations
    if not wrong:
        full, half = full_and_half(scheme)
        primes = tuple(dict.fromkeys(prime for prime, _ in images if prime))
        proof = Proof("exact", equations=equations, primes=primes, full=full, half=half)
        return Outcome("exact", proof, equations, time.perf_counter() - start)
    holds_mod_2 = None
    if not modulus:
        over_z2 = scheme.over_z2()  # none with even denominators
        if over_z2 is not None:
            holds_mod_2 = not any(piece[3].any() for piece in _pieces(over_z2, ((2, 0),), numerators_of(over_z2)))
    return Outcome("exact", None, equations, time.perf_counter() - start, wrong, first, holds_mod_2)


def wrong_in_one_image(scheme: Scheme) -> int:
    """Return the number of equations that fail in the first image of `check_exact`, in a fraction of its time.

    The count selects the reading of a file with the fewest errors. Returns 0 unchecked if `is_long`.
    """
    if is_long(scheme):
        return 0
    numerators = numerators_of(scheme)
    return _count_wrong(scheme, _images(scheme, numerators)[:1], numerators)[0]


def magnitude_bound(scheme: Scheme) -> int:
    """Return an upper bound on every partial sum of numerators in every equation, and on the wanted value."""
    u, v, w = (factor.values for factor in scheme.factors)
    return _bound(scheme, Numerators(u, v, w, math.prod(scheme.denominators)))


def _bound(scheme: Scheme, numerators: Numerators) -> int:
    """Return the bound of `magnitude_bound` for the given numerators."""
    peaks = [_row_peaks(factor, part) for factor, part in zip(scheme.factors, numerators.parts, strict=True)]
    return _summed(scheme, peaks, numerators.one)


def _summed(scheme: Scheme, peaks: list[list[int]], one: int) -> int:
    total: int = sum(math.prod(sizes) for sizes in zip(*peaks, strict=True))
    return total + one * int(np.abs(scheme.target.term_values).max())


def _row_peaks(factor: Factor, values: IntArray) -> list[int]:
    sizes = np.abs(values)
    # |a| + |b| bounds the parts of products of a + b i.
    sizes = sizes.sum(axis=1) if factor.gaussian else sizes
    peaks = np.zeros(factor.rank, sizes.dtype)
    np.maximum.at(peaks, factor.product, sizes)
    return [int(peak) for peak in peaks]


def _images(scheme: Scheme, numerators: Numerators) -> tuple[Image, ...]:
    """Return the images of the ring in which all equations are checked."""
    if modulus := scheme.ring.characteristic:
        return ((modulus, 0),)
    if not scheme.gaussian and _rough_bound(scheme, numerators) < _FLOAT_LIMIT:
        return ((0, 0),)
    return _images_for(_bound(scheme, numerators), scheme.gaussian)


def _rough_bound(scheme: Scheme, numerators: Numerators) -> int:
    """Return a bound for real numerators that is weaker and faster than `_bound`: rank times the largest values."""
    peaks = ([int(np.abs(part).max(initial=0))] for part in numerators.parts)
    return _summed(scheme, [[scheme.rank], *peaks], numerators.one)


def _images_for(bound: int, gaussian: bool) -> tuple[Image, ...]:
    """Return the integers themselves where float64 is exact, else primes whose product exceeds twice the bound."""
    if bound < _FLOAT_LIMIT and not gaussian:
        return ((0, 0),)
    images: list[Image] = []
    product = 1
    for prime in primes_below(_MODULAR_PRIME_LIMIT):
        if gaussian and prime % 4 != 1:
            continue
        root = square_root_of_minus_one(prime) if gaussian else 0
        images += [(prime, root), (prime, prime - root)] if gaussian else [(prime, 0)]
        product *= prime
        if product > 2 * bound:
            return tuple(images)
    raise OverflowError(f"bound {bound} needs more primes than there are below {_MODULAR_PRIME_LIMIT}")


def _count_wrong(scheme: Scheme, images: tuple[Image, ...], numerators: Numerators) -> tuple[int, Mismatch | None]:
    """Return the number of equations that fail in any of the images, and the first of them."""
    wrong, first = 0, None
    for a, b, c, residuals in _pieces(scheme, images, numerators):
        if count := int(np.count_nonzero(residuals)):
            wrong += count
            if first is None:
                p, q, s = np.argwhere(residuals)[0]
                first = mismatch(scheme, int(a[p]), int(b[q]), int(c[s]))
    return wrong, first


def _pieces(scheme: Scheme, images: tuple[Image, ...], numerators: Numerators) -> Iterator[Residuals]:
    """Yield the residuals of all equations that are not trivially 0 = 0, for one group of A blocks after the other."""
    u, v, w = scheme.factors
    by_block = np.argsort(u.indices, kind="stable")
    bounds = np.searchsorted(u.indices[by_block], np.arange(u.blocks + 1))
    terms, coefficients = scheme.target.terms, scheme.target.term_values
    term_bounds = np.searchsorted(terms[:, 0], np.arange(u.blocks + 1))
    values = [numerators.images(*image) for image in images]
    sparse = expansion.is_sparse(scheme)
    most = 1 if sparse else GROUP_ENTRIES // (max(1, scheme.rank, w.blocks) * v.blocks)
    size = max(1, min(u.blocks, most))
    for start in range(0, u.blocks, size):
        a = np.arange(start, min(start + size, u.blocks))
        entries = by_block[bounds[start] : bounds[a[-1] + 1]]
        part = slice(term_bounds[start], term_bounds[a[-1] + 1])
        wanted, total = terms[part], None
        b, c, tables = (expansion.sums if sparse else _sums)(scheme, a, entries, wanted, images, values)
        places = wanted[:, 0] - start, np.searchsorted(b, wanted[:, 1]), np.searchsorted(c, wanted[:, 2])
        for table, (modulus, _) in zip(tables, images, strict=True):
            table[places] -= right_sides(numerators.one, coefficients[part], modulus)
            if modulus:
                table %= modulus
            total = table if total is None else np.maximum(np.abs(total), np.abs(table))
        if total is not None:
            yield a, b, c, total


def _sums(
    scheme: Scheme, a: IntArray, entries: IntArray, wanted: IntArray, images: tuple[Image, ...], values: list[Parts]
) -> tuple[IntArray, IntArray, Iterator[FloatArray]]:
    """Return as `expansion.sums` those of a group of A blocks, with all B and C blocks, by matrix products."""
    u, v, w = scheme.factors
    rows, local = np.unique(u.product[entries], return_inverse=True)

    def tables() -> Iterator[FloatArray]:
        for (modulus, _), (in_u, in_v, in_w) in zip(images, values, strict=True):
            left = np.zeros((len(rows), len(a)), dtype=np.int64)
            left[local, u.indices[entries] - a[0]] = in_u[entries]
            yield _products(left, _rows(v, rows, in_v), _rows(w, rows, in_w), modulus).transpose(1, 2, 0)

    return np.arange(v.blocks), np.arange(w.blocks), tables()


def _rows(factor: Factor, rows: IntArray, values: IntArray) -> IntArray:
    """Return the dense numerators (len(rows), blocks) of products `rows`; `values` are all nonzeros in one image."""
    positions, owners = gathered(factor, rows)
    dense = np.zeros((len(rows), factor.blocks), dtype=np.int64)
    dense[owners, factor.indices[positions]] = values[positions]
    return dense


def _products(left: IntArray, v: IntArray, w: IntArray, modulus: int) -> FloatArray:
    """Return sum_r w[r, s] left[r, p] v[r, q] as float64 integers (s, p, q), congruent for a nonzero modulus."""
    shape = w.shape[1], left.shape[1], v.shape[1]
    if not modulus:
        x, y, z = (part.astype(np.float64) for part in (left, v, w))
        return (z.T @ (x[:, :, None] * y[:, None, :]).reshape(len(x), shape[1] * shape[2])).reshape(shape)
    total = np.zeros((shape[0], shape[1] * shape[2]), dtype=np.float64)
    for start in range(0, len(left), MODULAR_ROWS):
        part = slice(start, start + MODULAR_ROWS)
        pairs = symmetric((left[part, :, None] * v[part, None, :]).reshape(-1, shape[1] * shape[2]), modulus)
        total += (w[part].T.astype(np.float64) @ pairs.astype(np.float64)) % modulus
    return total.reshape(shape)
