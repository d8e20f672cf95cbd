"""Involutions of a scheme modulo 2: changes of bases of order two that only permute its products.

A scheme that walks on invariant schemes found has one, but in the sparse basis of the catalogue it may be no reversal
any more. Here it is found again, and the scheme is brought to bases in which it is the reversal, as walks on invariant
schemes, and sums that start them, need it.

A change of bases keeps the ranks of all sums of two factors. So products are told apart by these ranks, as the vertices
of a graph are by the colours of their edges: each by its own ranks, then by how often it meets each kind of product,
until nothing changes. Where products remain alike, one is mapped to each of the others in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ...schemes_db import Z2, Scheme
from ...schemes_db.composition import oriented
from ...schemes_db.factor import Factor, IntArray
from ...schemes_db.recipes import in_order
from ..basis.shears import first_independent, inverse_modulo_2

Bases = tuple[IntArray, IntArray, IntArray]
"""Matrices over GF(2) of the sides m, k and n, each its own inverse."""

MOST_SYMMETRIES = 2_000
"""Most permutations of the products that are looked at: the naive scheme has millions, 3x4x6:54 has 18."""


def involutions(scheme: Scheme) -> Iterator[Bases]:
    """Yield the involutions (X, Y, Z) that permute the products of a full product's scheme over Z2, but the identity.

    They map factors u, v, w to X u Y, Y v Z and X' w Z'. Only the first MOST_SYMMETRIES permutations of the products
    are looked at, of which a stored scheme has fewer.
    """
    parts = [factor.dense % 2 for factor in scheme.factors]
    uncoloured = np.zeros((2, scheme.rank), dtype=np.int64)
    for image in islice(_matched(_likeness(parts), uncoloured), MOST_SYMMETRIES):
        if (image[image] == np.arange(scheme.rank)).all() and (image != np.arange(scheme.rank)).any():
            bases = _solution(parts, image)
            if bases is not None:
                yield bases


def in_reversed_bases(scheme: Scheme, rng: np.random.Generator, most: int) -> list[Scheme]:
    """Return up to `most` copies of a scheme over Z2, in random bases in which one of its involutions is the reversal.

    The sides are in increasing order. The list is empty if no involution is found that has as many exchanges as the
    reversal.
    """
    scheme = oriented(scheme, in_order(scheme.target.shape))
    found = [one for one in involutions(scheme) if all(map(_exchanges_most, one))]
    if not found:
        return []
    u, v, w = (factor.dense % 2 for factor in scheme.factors)
    copies: dict[str, Scheme] = {}
    for n in range(most):
        x, y, z = found[n % len(found)]
        p, q, r = _reversing(x, rng), _reversing(y.T, rng), _reversing(z.T, rng)
        p_inv, q_inv, r_inv = map(inverse_modulo_2, (p, q, r))
        moved = (p @ u @ q.T, q_inv.T @ v @ r.T, p_inv.T @ w @ r_inv)
        first, second, third = (Factor.from_dense(part % 2) for part in moved)
        made = Scheme(scheme.target, first, second, third, Z2)
        copies.setdefault(made.digest, made)
    return list(copies.values())


def _likeness(parts: list[IntArray]) -> IntArray:
    """Return (R, R): a number for the ranks of the sums of the factors of two products; the diagonal is of its own."""
    kinds = 1 + max(min(part.shape[1:]) for part in parts)
    count = len(parts[0])
    code, own = np.zeros((count, count), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for part in parts:
        sums = part[:, None] ^ part
        code = kinds * code + _ranks(sums.reshape(-1, *part.shape[1:])).reshape(count, count)
        own = kinds * own + _ranks(part)
    code[np.diag_indices(count)] = kinds**3 + own
    return code


def _ranks(stack: IntArray) -> IntArray:
    """Return (N,): the ranks over GF(2) of matrices (N, a, b)."""
    rows = _words(stack)  # (N, a)
    ranks = np.zeros(len(rows), dtype=np.int64)
    for bit in range(stack.shape[2]):
        has = (rows >> bit) & 1 == 1
        pivots = np.take_along_axis(rows, has.argmax(axis=1)[:, None], axis=1)
        rows = np.where(has, rows ^ pivots, rows)  # the pivot becomes zero
        ranks += has.any(axis=1)
    return ranks


def _matched(likeness: IntArray, colours: IntArray) -> Iterator[IntArray]:
    """Yield (R,) for every permutation that keeps a matrix (R, R): the image of each place.

    It maps places of a colour (2, R) in the first row to those of it in the second.
    """
    refined = _refined(likeness, colours)
    if refined is None:
        return
    before, after = refined
    sizes = np.bincount(before)
    if sizes.max() == 1:
        yield np.argsort(after)[before]
        return
    colour = np.where(sizes > 1, sizes, len(before) + 1).argmin()
    for image in np.flatnonzero(after == colour):
        marked = refined.copy()
        marked[0, (before == colour).argmax()] = marked[1, image] = len(sizes)
        yield from _matched(likeness, marked)


def _refined(likeness: IntArray, colours: IntArray) -> IntArray | None:
    """Return colours (2, R) that tell places apart by what they are like to those of each colour.

    None if the two rows differ in how many places have a colour.
    """
    while True:
        seen = np.sort(likeness * (2 * len(likeness)) + colours[:, None, :], axis=2)  # (2, R, R)
        keys = np.concatenate([colours[:, :, None], seen], axis=2).reshape(-1, len(likeness) + 1)
        finer = np.unique(keys, axis=0, return_inverse=True)[1].reshape(colours.shape)
        if (np.sort(finer[0]) != np.sort(finer[1])).any():
            return None
        if finer.max() == colours.max():
            return finer
        colours = finer


def _solution(parts: list[IntArray], image: IntArray) -> Bases | None:
    """Return the involutions that map every product to its image, None if there are none or several."""
    u, v, w = parts
    sizes = u.shape[1], u.shape[2], v.shape[2]
    starts = np.cumsum([0, *(size * size for size in sizes)])
    x, y, z = (
        start + np.arange(size * size).reshape(size, size) for start, size in zip(starts[:-1], sizes, strict=True)
    )
    pivots: dict[int, int] = {}
    unknowns = int(starts[-1])
    for r, s in enumerate(image.tolist()):
        for word in (
            *_equations(x, u[r], u[s], y),  # X u = u' Y
            *_equations(y, v[r], v[s], z),  # Y v = v' Z
            *_equations(x.T, w[r], w[s], z.T),  # X' w = w' Z'
        ):
            while word and word.bit_length() in pivots:
                word ^= pivots[word.bit_length()]
            if word:
                pivots[word.bit_length()] = word
        if len(pivots) == unknowns:
            return None
    if len(pivots) != unknowns - 1:
        return None
    bits = np.zeros(unknowns, dtype=np.int64)
    for place in range(unknowns):  # a pivot's unknown is the sum of lower ones; the free one is 1
        lower = [low for low in range(place) if pivots.get(place + 1, 0) >> low & 1]
        bits[place] = bits[lower].sum() % 2 if place + 1 in pivots else 1
    found = bits[x], bits[y], bits[z]
    return found if all((one @ one % 2 == np.eye(len(one))).all() for one in found) else None


def _equations(left: IntArray, before: IntArray, after: IntArray, right: IntArray) -> Iterator[int]:
    """Yield words, a bit an unknown, that say L before = after R for matrices of the unknowns' numbers."""
    for i in range(before.shape[0]):
        for j in range(before.shape[1]):
            places = [*left[i, before[:, j] == 1].tolist(), *right[after[i] == 1, j].tolist()]
            word = 0
            for place in places:
                word ^= 1 << place
            yield word


def _exchanges_most(matrix: IntArray) -> bool:
    """Return whether an involution has size // 2 Jordan blocks of size 2, as the reversal has."""
    moved = (matrix + np.eye(len(matrix), dtype=np.int64)) % 2
    return len(first_independent(_words(moved).tolist())) == len(matrix) // 2


def _reversing(matrix: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a random P for which P matrix P^-1 is the reversal of all indices."""
    size = len(matrix)
    while True:
        basis = rng.integers(0, 2, (size, size))
        basis[:, (size + 1) // 2 :] = (matrix @ basis[:, : size // 2] % 2)[:, ::-1]
        fixed = basis[:, size // 2]
        if size % 2 and ((matrix @ fixed + fixed) % 2).any():
            continue
        if len(first_independent(_words(basis).tolist())) == size:
            return inverse_modulo_2(basis)


def _words(bits: IntArray) -> IntArray:
    """Return (...): rows (..., bits) of at most 62 bits as numbers, the first bit the lowest."""
    return bits @ (np.int64(1) << np.arange(bits.shape[-1], dtype=np.int64))
