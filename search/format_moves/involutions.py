"""Involutions of a scheme modulo 2: changes of bases of order two that only permute its products.

A scheme that walks on invariant schemes found has one, but in the sparse basis of the catalogue it may be no reversal
any more. Here it is found again, and the scheme is brought to bases in which it is the reversal, as walks on invariant
schemes, and sums that start them, need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...schemes_db import Z2, Scheme
from ...schemes_db.composition import oriented
from ...schemes_db.factor import Factor, IntArray
from ...schemes_db.recipes import in_order
from ..basis.shears import first_independent, inverse_modulo_2

Bases = tuple[IntArray, IntArray, IntArray]
"""Matrices over GF(2) of the sides m, k and n, each its own inverse."""

LONGEST, MOST_PAIRS = 5, 3_000_000
"""Longest side whose involutions are listed, and the most pairs of those of two sides that are tried: sides 4 and 5
have 2.2 million, which take a tenth of a second."""


def involutions(scheme: Scheme) -> Iterator[Bases]:
    """Yield the involutions (X, Y, Z) that permute the products of a full product's scheme over Z2, but the identity.

    They map factors u, v, w to X u Y, Y v Z and X' w Z'. All pairs of involutions X and Y are tried, and Z is the
    solution of linear equations. None are found of schemes of which too few products have a u of their own, nor of
    formats with longer sides. Sides must be in increasing order.
    """
    m, k, n = scheme.target.shape
    u, v, w = _bits(scheme)
    if max(m, k) > LONGEST or len(involutory(m)) * len(involutory(k)) > MOST_PAIRS:
        return
    products = {one.tobytes() for one in _rows(u, v, w)}
    keys = _words(u.reshape(scheme.rank, -1))
    place = {key: r for r, key in enumerate(keys.tolist()) if np.count_nonzero(keys == key) == 1}
    own = [r for r, key in enumerate(keys.tolist()) if key in place]
    for x, y in _pairs(u, keys):
        moved = _words((x @ u @ y % 2).reshape(scheme.rank, -1)).tolist()
        if any(moved[r] not in place for r in own):
            continue
        images = [place[moved[r]] for r in own]
        z = _solution((y @ v[own] % 2).reshape(-1, n), v[images].reshape(-1, n))
        if z is None or all((one == np.eye(len(one))).all() for one in (x, y, z)):
            continue
        if {one.tobytes() for one in _rows(x @ u @ y % 2, y @ v @ z % 2, x.T @ w @ z.T % 2)} == products:
            yield x, y, z


def in_reversed_bases(scheme: Scheme, rng: np.random.Generator, most: int) -> list[Scheme]:
    """Return up to `most` copies of a scheme over Z2, in random bases in which one of its involutions is the reversal.

    The sides are in increasing order. The list is empty if no involution is found that has as many exchanges as the
    reversal.
    """
    scheme = oriented(scheme, in_order(scheme.target.shape))
    found = [one for one in involutions(scheme) if all(map(_exchanges_most, one))]
    if not found:
        return []
    u, v, w = _bits(scheme)
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


@lru_cache(maxsize=8)
def involutory(size: int) -> IntArray:
    """Return (N, size, size): the matrices over GF(2) that are their own inverse, the identity first.

    They are 1 + D with D D = 0, and such a D of rank r + 1 is one of rank r and one of rank 1 more.
    """
    vectors = np.array(list(np.ndindex(*[2] * size)), dtype=np.int64)[1:]
    outer = vectors[:, None, :, None] * vectors[None, :, None, :]
    ones = outer[vectors @ vectors.T % 2 == 0]
    level = np.zeros((1, size, size), dtype=np.int64)
    found = [level]
    for _ in range(size // 2):
        sums = (level[:, None] + ones[None]).reshape(-1, size, size) % 2
        nilpotent = sums[~(sums @ sums % 2).any(axis=(1, 2))]
        seen = np.concatenate(found).reshape(-1, size * size)
        distinct = np.unique(nilpotent.reshape(-1, size * size), axis=0)
        level = distinct[~np.isin(_words(distinct), _words(seen))].reshape(-1, size, size)
        found.append(level)
    matrices = (np.concatenate(found) + np.eye(size, dtype=np.int64)) % 2
    matrices.setflags(write=False)
    return matrices


def _pairs(u: IntArray, keys: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the involutions X and Y for which every X u Y is a factor, too."""
    m, k = u.shape[1:]
    present = np.zeros(1 << (m * k), dtype=bool)
    present[keys] = True
    lefts, rights = involutory(m), involutory(k)
    vectors = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1
    times = _words((vectors @ rights % 2).reshape(-1, k)).reshape(len(rights), 1 << k)  # [Y, row]: the word of row Y
    shifts = k * np.arange(m)
    for left in lefts:
        rows = _words((left @ u % 2).reshape(-1, k)).reshape(-1, m)
        alive = np.arange(len(rights))
        for row in rows:
            alive = alive[present[(times[alive][:, row] << shifts).sum(axis=1)]]
            if not len(alive):
                break
        yield from ((left, rights[y]) for y in alive.tolist())


def _solution(left: IntArray, right: IntArray) -> IntArray | None:
    """Return the one matrix Z that could solve left Z = right, or None if the rows of `left` do not determine one."""
    chosen = first_independent(_words(left).tolist())
    if len(chosen) < left.shape[1]:
        return None
    return inverse_modulo_2(left[chosen]) @ right[chosen] % 2


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


def _bits(scheme: Scheme) -> list[IntArray]:
    """Return the factors modulo 2: (R, m, k), (R, k, n) and (R, m, n)."""
    m, k, n = scheme.target.shape
    shapes = (m, k), (k, n), (m, n)
    return [part.dense.reshape(-1, *shape) % 2 for part, shape in zip(scheme.factors, shapes, strict=True)]


def _rows(u: IntArray, v: IntArray, w: IntArray) -> npt.NDArray[np.uint8]:
    """Return (R, bits): the factors of each product side by side."""
    return np.concatenate([part.reshape(len(part), -1) for part in (u, v, w)], axis=1).astype(np.uint8)


def _words(bits: IntArray) -> IntArray:
    """Return (N,): rows of at most 62 bits as numbers, the first bit the lowest."""
    return bits @ (np.int64(1) << np.arange(bits.shape[1], dtype=np.int64))
