"""flip-cpd's .npy, one scheme a row, the third factor by C: rationals (int64) or residues mod 2 or 3 (uint64).

A rational row is U (R, m k), V (R, k n), W (R, m n) one after the other, every entry a numerator and
a denominator. A modular row has three words a product mod 2 (bit j is entry j of u, v, w), six mod 3
(u, v, w each as a low word and a high one; an entry is low + 2 high). The file does not say the
sizes: the target must, or a rational row is tried with all sizes of its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError
from ..gaussian import Number
from ..ring import Z2, Z3, Ring
from ..target import Target
from .archive import NPY_MAGIC, array_of
from .candidates import Row, Shape, likely_shapes, reading_of_rows
from .reading import C, Reading

NAME = "flip-cpd"
SUFFIX = ".npy"
CONVENTION = C

MAX_SHAPES = 400
_PRIME = (1 << 31) - 1

Words = npt.NDArray[np.generic]


def sniff(raw: bytes) -> bool:
    """Whether this is a .npy array."""
    return raw.startswith(NPY_MAGIC)


def parse(
    raw: bytes, target: Target | None = None, ring: Ring | None = None, allow_pickle: bool = False
) -> list[Reading]:
    """Read every row as one scheme.

    Raises:
        SchemeFormatError: not an int64 or uint64 array, or sizes or ring can't be told.
    """
    array = array_of(raw)
    if isinstance(array, list) or array.ndim not in (1, 2) or array.dtype.kind not in "iu" or array.dtype.itemsize != 8:
        raise SchemeFormatError("expected an array of 64-bit integers, one scheme a row")
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    if not rows.size:
        raise SchemeFormatError("an empty array")
    if array.dtype.kind == "i":
        return [_rational(row.tolist(), target, ring) for row in rows]
    if target is None:
        raise SchemeFormatError("residues without sizes; say what they compute with --target MxKxN")
    modulus = _modulus(rows.shape[1], ring)
    return [_modular(row, target, modulus) for row in rows]


def _rational(row: list[int], target: Target | None, ring: Ring | None) -> Reading:
    if len(row) % 2 or 0 in row[1::2]:
        raise SchemeFormatError("a row of rationals must be pairs of a numerator and a denominator that is not 0")
    total = len(row) // 2
    notes: tuple[str, ...] = ()
    if target is not None:
        m, k, n = target.shape
        rank, rest = divmod(total, m * k + k * n + m * n)
        if rest or not rank:
            raise SchemeFormatError(f"a row of {total} rationals is no scheme for {target}")
    else:
        (m, k, n), rank = _shape(row, total)
        notes = (f"sizes {m}x{k}x{n} found by trying all that fit the length",)
    return reading_of_rows(NAME, _split(row, (m, k, n), rank), (m, k, n), CONVENTION, target, ring, notes)


def _split(row: list[int], shape: Shape, rank: int) -> tuple[Sequence[Row], Sequence[Row], Sequence[Row]]:
    """The three factors in a row of pairs."""
    m, k, n = shape
    values: list[Number] = [p if q == 1 else Fraction(p, q) for p, q in zip(row[::2], row[1::2], strict=True)]
    parts: list[list[Row]] = []
    start = 0
    for entries in (m * k, k * n, m * n):
        parts.append(
            [
                [(i, value) for i, value in enumerate(values[at : at + entries]) if value]
                for at in range(start, start + rank * entries, entries)
            ]
        )
        start += rank * entries
    return parts[0], parts[1], parts[2]


def _shape(row: list[int], total: int) -> tuple[Shape, int]:
    """The only sizes with which the row agrees with a matrix product at a random point modulo a prime."""
    possible = likely_shapes(total)
    if len(possible) > MAX_SHAPES or not possible:
        raise SchemeFormatError(f"{total} rationals: the sizes can't be told; give them with --target MxKxN")
    residues = [p * pow(q, -1, _PRIME) % _PRIME if q % _PRIME else 0 for p, q in zip(row[::2], row[1::2], strict=True)]
    found = [(shape, rank) for shape, rank in possible if _agrees(residues, shape, rank)]
    if len(found) != 1:
        sizes = ", ".join("x".join(map(str, shape)) for shape, _ in (found or possible)[:4])
        raise SchemeFormatError(f"{total} rationals could be {sizes} or others; say which with --target MxKxN")
    return found[0]


def _agrees(residues: list[int], shape: Shape, rank: int) -> bool:
    m, k, n = shape
    rng = np.random.default_rng(1)
    x, y, z = ([int(value) for value in rng.integers(1, _PRIME, size)] for size in (m * k, k * n, m * n))
    got, starts = 0, (0, rank * m * k, rank * (m * k + k * n))
    for r in range(rank):
        product = 1
        for point, start in zip((x, y, z), starts, strict=True):
            at = start + r * len(point)
            product = product * sum(map(int.__mul__, residues[at : at + len(point)], point)) % _PRIME
        got += product
    wanted = sum(x[i * k + l] * y[l * n + j] * z[i * n + j] for i in range(m) for l in range(k) for j in range(n))
    return (got - wanted) % _PRIME == 0


def _modulus(width: int, ring: Ring | None) -> Ring:
    if ring is None and width % 3 == 0 and width % 6:
        return Z2
    if ring not in (Z2, Z3) or width % (3 * (ring.characteristic - 1)):
        raise SchemeFormatError(f"rows of {width} words: say of which ring with --ring Z2 (3 a product) or Z3 (6)")
    return ring


def _modular(row: Words, target: Target, ring: Ring) -> Reading:
    words = [int(word) for word in row]
    lanes = ring.characteristic - 1
    entries = (target.m * target.k, target.k * target.n, target.m * target.n)
    parts: list[list[Row]] = [[], [], []]
    for at in range(0, len(words), 3 * lanes):
        for position, (part, size) in enumerate(zip(parts, entries, strict=True)):
            low = words[at + position * lanes]
            high = words[at + position * lanes + 1] if lanes == 2 else 0
            if (low | high) >> size or low & high:
                raise SchemeFormatError(f"a word of a product has bits that {target} has no entries for")
            part.append([(j, (low >> j & 1) + 2 * (high >> j & 1)) for j in range(size) if (low | high) >> j & 1])
    return reading_of_rows(NAME, (parts[0], parts[1], parts[2]), target.shape, CONVENTION, target, ring)
