"""flip-cpd's .npy, one scheme a row, the third factor by C: rationals (int64) or residues mod 2 or 3 (uint64).

A rational row is U (R, nU), V (R, nV), W (R, nW) one after the other, every entry a numerator and a
denominator. A modular row has three words a product mod 2 (bit j is entry j of u, v, w), six mod 3
(u, v, w each as a low word and a high one; an entry is low + 2 high). Entries are those of A, B and
C row by row, or the stored ones of structured matrices (see `layouts`). The file does not say the
sizes: its name or the target must, or a rational row is tried with all sizes of its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError
from ..gaussian import Number
from ..ring import Z2, Z3, Ring
from ..target import Target
from .archive import NPY_MAGIC, array_of
from .candidates import Row, likely_shapes, reading_of_options, reading_of_rows
from .layouts import PRIME, GridNumbering, IntArray, agrees, layouts_of, structured_layouts
from .reading import C, Entries, Reading

NAME = "flip-cpd"
SUFFIX = ".npy"
CONVENTION = C

MAX_SHAPES = 400
"""Sizes of plain products that a row without a name is tried with."""

MAX_STRUCTURED = 1000
"""Structured targets that it is tried with then."""
Factors = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]
Words = npt.NDArray[np.generic]


def sniff(raw: bytes) -> bool:
    """Return whether this is a .npy array."""
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
    residues = np.array(
        [p * pow(q, -1, PRIME) % PRIME if q % PRIME else 0 for p, q in zip(row[::2], row[1::2], strict=True)],
        dtype=np.int64,
    )
    if target is not None:
        fitting = [(layout, total // sum(layout.sizes)) for layout in layouts_of(target)]
        fitting = [(layout, rank) for layout, rank in fitting if rank and rank * sum(layout.sizes) == total]
        if not fitting:
            raise SchemeFormatError(f"a row of {total} rationals is no scheme for {target}")
        found = [pair for pair in fitting if agrees(residues, *pair)]
        layout, rank = (found or fitting)[0]
    else:
        layout, rank = _guessed(residues, total)
        notes = (f"sizes {layout.target} found by trying all that fit the length",)
    return _reading(layout, _split(row, layout, rank), ring, notes)


def _split(row: list[int], layout: GridNumbering, rank: int) -> Factors:
    """The three factors in a row of pairs, by places on the target's grids."""
    values: list[Number] = [p if q == 1 else Fraction(p, q) for p, q in zip(row[::2], row[1::2], strict=True)]
    parts: list[list[Row]] = []
    start = 0
    for places in layout.places:
        width = len(places)
        parts.append(
            [
                [(place, value) for place, value in zip(places, values[at : at + width], strict=True) if value]
                for at in range(start, start + rank * width, width)
            ]
        )
        start += rank * width
    return parts[0], parts[1], parts[2]


def _reading(layout: GridNumbering, factors: Factors, ring: Ring | None, notes: tuple[str, ...] = ()) -> Reading:
    """The reading of factors by places; of structured matrices the third factor is by C and nothing else."""
    target = layout.target
    if not layout.structured:
        return reading_of_rows(NAME, factors, target.shape, CONVENTION, target, ring, notes)
    entries = [Entries.of(part, width) for part, width in zip(factors, (target.k, target.n, target.n), strict=True)]
    return reading_of_options(NAME, [(C, target, (entries[0], entries[1], entries[2]))], (), ring, "", notes)


def _guessed(residues: IntArray, total: int) -> tuple[GridNumbering, int]:
    """The only layout of so many entries with which the row agrees with its target."""
    plain = [(layouts_of(Target.general(*shape))[0], rank) for shape, rank in likely_shapes(total)]
    if len(plain) > MAX_SHAPES:
        raise SchemeFormatError(f"{total} rationals: the sizes can't be told; give them with --target MxKxN")
    found = [pair for pair in plain if agrees(residues, *pair)]
    if not found:
        structured = islice(structured_layouts(total), MAX_STRUCTURED)
        found = [(layout, rank) for layout, rank in structured if agrees(residues, layout, rank)]
    # With and without an output that is zero anyway: the first asks for it, too.
    if len({(layout.target.shape, layout.target.a, layout.target.b) for layout, _ in found}) != 1:
        sizes = ", ".join(str(layout.target) for layout, _ in (found or plain)[:4])
        raise SchemeFormatError(
            f"{total} rationals could be {sizes or 'of many sizes'} or others; say which with --target MxKxN"
        )
    return found[0]


def _modulus(width: int, ring: Ring | None) -> Ring:
    if ring is None and width % 3 == 0 and width % 6:
        return Z2
    if ring not in (Z2, Z3) or width % (3 * (ring.characteristic - 1)):
        raise SchemeFormatError(f"rows of {width} words: say of which ring with --ring Z2 (3 a product) or Z3 (6)")
    return ring


def _modular(row: Words, target: Target, ring: Ring) -> Reading:
    """The reading by the first layout that has an entry for every bit."""
    failure: SchemeFormatError | None = None
    for layout in reversed(layouts_of(target)):
        try:
            return _reading(layout, _unpacked([int(word) for word in row], layout, ring), ring)
        except SchemeFormatError as error:
            failure = failure or error
    raise failure or SchemeFormatError(f"no layout of {target} is known")


def _unpacked(words: list[int], layout: GridNumbering, ring: Ring) -> Factors:
    lanes = ring.characteristic - 1
    parts: list[list[Row]] = [[], [], []]
    for at in range(0, len(words), 3 * lanes):
        for position, (part, places) in enumerate(zip(parts, layout.places, strict=True)):
            low = words[at + position * lanes]
            high = words[at + position * lanes + 1] if lanes == 2 else 0
            if (low | high) >> len(places) or low & high:
                raise SchemeFormatError(f"a word of a product has bits that {layout.target} has no entries for")
            part.append(
                [
                    (place, (low >> j & 1) + 2 * (high >> j & 1))
                    for j, place in enumerate(places)
                    if (low | high) >> j & 1
                ]
            )
    return parts[0], parts[1], parts[2]
