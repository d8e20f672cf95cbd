"""flip-cpd's .npy, one scheme a row, the third factor by C: rationals (int64) or residues mod 2 or 3 (uint64).

A rational row is U (R, nU), V (R, nV), W (R, nW) one after the other, every entry a numerator and a
denominator. A modular row has three words a product mod 2 (bit j is entry j of u, v, w), six mod 3
(u, v, w each as a low word and a high one; an entry is low + 2 high). Entries are those of A, B and
C row by row, or the stored ones of structured matrices (see `layouts`). The file does not say the
sizes: its name or the target must, or a rational row is tried with all sizes of its length.
"""

from __future__ import annotations

import dataclasses
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
from .candidates import Factors, likely_shapes, option_of, reading_of_options
from .layouts import GridNumbering, agrees, layouts_of, structured_layouts
from .reading import C_TRANSPOSED, Entries, Reading, Wanted

MAX_SHAPES = 400
"""Sizes of plain products that a row without a name is tried with."""

MAX_STRUCTURED = 1000
"""Structured targets that it is tried with then."""
Words = npt.NDArray[np.generic]


def sniff(raw: bytes) -> bool:
    """Return whether this is a .npy array."""
    return raw.startswith(NPY_MAGIC)


def parse(raw: bytes, wanted: Wanted) -> list[Reading]:
    """Read every row as one scheme.

    Raises:
        SchemeFormatError: not an int64 or uint64 array, or sizes or ring can't be told.
    """
    array, target = array_of(raw), wanted.target
    if isinstance(array, list) or array.ndim not in (1, 2) or array.dtype.kind not in "iu" or array.dtype.itemsize != 8:
        raise SchemeFormatError("expected an array of 64-bit integers, one scheme a row")
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    if not rows.size:
        raise SchemeFormatError("an empty array")
    if array.dtype.kind == "i":
        return [_rational(row.tolist(), wanted) for row in rows]
    if target is None:
        raise SchemeFormatError("residues without sizes; say what they compute with --target MxKxN")
    wanted = dataclasses.replace(wanted, ring=_modulus(rows.shape[1], wanted.ring))
    return [_modular(row, target, wanted) for row in rows]


def _rational(row: list[int], wanted: Wanted) -> Reading:
    if len(row) % 2 or 0 in row[1::2]:
        raise SchemeFormatError("a row of rationals must be pairs of a numerator and a denominator that is not 0")
    total, target = len(row) // 2, wanted.target
    values: list[Number] = [p if q == 1 else Fraction(p, q) for p, q in zip(row[::2], row[1::2], strict=True)]
    if target is None:
        layout = _guessed(values)
        note = f"sizes {layout.target} found by trying all that fit the length"
        return _reading(layout, _numbered(values, layout), wanted).noting(note)
    fitting = [layout for layout in layouts_of(target) if total and total % sum(layout.sizes) == 0]
    if not fitting:
        raise SchemeFormatError(f"a row of {total} rationals is no scheme for {target}")
    layout = next((one for one in fitting if agrees(_numbered(values, one), one)), fitting[0])
    return _reading(layout, _numbered(values, layout), wanted)


def _numbered(values: Sequence[Number], layout: GridNumbering) -> Factors:
    """The three factors, by running index, of values that stand one after the other."""
    parts, start = [], 0
    rank = len(values) // sum(layout.sizes)
    for width in layout.sizes:
        product, index = divmod(np.arange(rank * width), width)
        parts.append(Entries(rank, product, index, 0 * index, values[start : start + rank * width]))
        start += rank * width
    return parts[0], parts[1], parts[2]


def _reading(layout: GridNumbering, factors: Factors, wanted: Wanted) -> Reading:
    """The reading of factors by running index; of structured matrices the third is by C and nothing else."""
    m, _, n = layout.target.shape
    options = [option_of(factors, layout)]
    if not layout.structured:
        turned = tuple(i % m * n + i // m for i in range(m * n))
        by_transpose = dataclasses.replace(layout, places=(*layout.places[:2], turned))
        options.append(option_of(factors, by_transpose, C_TRANSPOSED))
    return reading_of_options(wanted, options)


def _guessed(values: Sequence[Number]) -> GridNumbering:
    """The only layout of so many entries with which the row agrees with its target."""
    total = len(values)
    plain = [layouts_of(Target.general(*shape))[0] for shape in likely_shapes(total)]
    if len(plain) > MAX_SHAPES:
        raise SchemeFormatError(f"{total} rationals: the sizes can't be told; give them with --target MxKxN")
    residues = Entries.of([list(enumerate(values))], 1).residues.tolist()
    found = [layout for layout in plain if agrees(_numbered(residues, layout), layout)]
    if not found:
        fitting = structured_layouts(lambda sizes, most: total in range(sum(sizes), most * sum(sizes) + 1, sum(sizes)))
        found = [layout for layout in islice(fitting, MAX_STRUCTURED) if agrees(_numbered(residues, layout), layout)]
    # With and without an output that is zero anyway: the first asks for it, too.
    if len({(layout.target.shape, layout.target.a, layout.target.b) for layout in found}) != 1:
        sizes = ", ".join(str(layout.target) for layout in (found or plain)[:4])
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


def _modular(row: Words, target: Target, wanted: Wanted) -> Reading:
    """The reading by the first layout that has an entry for every bit."""
    failure: SchemeFormatError | None = None
    for layout in reversed(layouts_of(target)):
        try:
            return _reading(layout, _unpacked(row, layout, wanted.ring or Z2), wanted)
        except SchemeFormatError as error:
            failure = failure or error
    raise failure or SchemeFormatError(f"no layout of {target} is known")


def _unpacked(words: Words, layout: GridNumbering, ring: Ring) -> Factors:
    lanes = ring.characteristic - 1
    values: list[Number] = []
    for slot, width in enumerate(layout.sizes):
        for low, *rest in words.reshape(-1, 3, lanes)[:, slot].tolist():
            high = rest[0] if rest else 0
            if (low | high) >> width or low & high:
                raise SchemeFormatError(f"a word of a product has bits that {layout.target} has no entries for")
            values += [(low >> j & 1) + 2 * (high >> j & 1) for j in range(width)]
    return _numbered(values, layout)
