"""Numbering of the entries of the three factors in files: row by row, or the stored ones of structured matrices.

A name such as `ss-333-rank14-rec-0-2-0-q` (arXiv 2511.10786) says the structures and the sizes.
Where no name helps, the only layout that agrees with its target at a random point is chosen.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from ...errors import TargetError
from ..pairs import Pair, all_pairs, fits, parse_pair, stored_places
from ..target import Target, pairs_of, parse_target
from .reading import PRIME, Entries

Places = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Sizes = tuple[int, int, int]
"""The numbers of entries of A, B and C."""

MAX_SIDE = 9
"""The largest side of a structured matrix whose sizes are guessed: names write a side as one digit."""

_NAME = r"(?a)([gulskw][gulskwt])-?([1-9])([1-9])([1-9])([abc]?)(?:[-_.].*)?"


@dataclass(frozen=True)
class GridNumbering:
    """A target, and for A, B and C the flat place on its grid of every entry of a factor's row."""

    target: Target
    places: Places
    label: str = ""
    """The numbering of each matrix, where it is not by rows."""

    @property
    def sizes(self) -> Sizes:
        a, b, c = self.places
        return len(a), len(b), len(c)

    @property
    def structured(self) -> bool:
        """True if the entries are the stored ones of a structured matrix."""
        m, k, n = self.target.shape
        return self.places != _dense(m, k, n)


def named_target(stem: str) -> Target | None:
    """The target that a file's name says, or None where it says none."""
    match = re.fullmatch(_NAME, stem)
    if match is None:
        return None
    letters, m, k, n, suffix = match.groups()
    pair = parse_pair(letters + suffix)
    try:
        return Target.of_pair(pair, (int(m), int(k), int(n))) if pair else None
    except TargetError:
        return None


def layouts_of(target: Target) -> list[GridNumbering]:
    """The layouts that a file for a target may have: packed where it is a structured pair, and row by row."""
    found = [GridNumbering(target, stored_places(pair, target.shape)) for pair in pairs_of(target)]
    if target.entries is None or not found:
        found.append(GridNumbering(target, _dense(*target.shape)))
    return list({layout.places: layout for layout in found}.values())


def structured_layouts(wanted: Callable[[Sizes, int], bool]) -> Iterator[GridNumbering]:
    """Every structured layout whose numbers of entries, and m k n, are wanted."""
    for pair, shape, places in _numberings():
        a, b, c = map(len, places)
        if wanted((a, b, c), math.prod(shape)):
            with contextlib.suppress(TargetError):
                yield GridNumbering(Target.of_pair(pair, shape), places)


@lru_cache(maxsize=1)
def _numberings() -> list[tuple[Pair, tuple[int, int, int], Places]]:
    """The numbering of the entries of every pair, for all sizes that names can express."""
    sides = range(1, MAX_SIDE + 1)
    return [
        (pair, shape, places)
        for pair in all_pairs()
        if pair.name[:2] != "gg"
        for shape in product(sides, sides, sides)
        if fits(pair, shape) and all(places := stored_places(pair, shape))
    ]


def numbered_layouts(sizes: Sizes) -> Iterator[GridNumbering]:
    """Layouts of products of matrices with so many entries, each numbered by rows or columns, all or a triangle of it.

    Those of general products are first.
    """
    found = []
    for shape in product(range(1, MAX_SIDE + 1), repeat=3):
        m, k, n = shape
        options = [
            _numberings_of(size, rows, cols) for size, (rows, cols) in zip(sizes, ((m, k), (k, n), (m, n)), strict=True)
        ]
        for chosen in product(*options):
            roles = zip(("tri-left", "tri-right", "tri-out"), chosen, strict=True)
            forms = "+".join(f"{role}{form}" for role, (form, _, _) in roles if form is not None)
            label = ", ".join(f"{matrix} {how}" for matrix, (_, how, _) in zip("ABC", chosen, strict=True) if how)
            name = f"{m}x{k}x{n}{':' if forms else ''}{forms}"
            found.append((name, (chosen[0][2], chosen[1][2], chosen[2][2]), label))
    for name, places, label in sorted(found, key=lambda one: one[0].count("tri")):
        yield GridNumbering(parse_target(name, files=False), places, label)


_Numbering = tuple[str | None, str, tuple[int, ...]]


def _numberings_of(size: int, rows: int, cols: int) -> list[_Numbering]:
    """The ways to number so many entries of a matrix: the form of a triangle or None, how, and the places."""
    if size == rows * cols:
        by_columns = tuple(i * cols + j for j in range(cols) for i in range(rows))
        plain: list[_Numbering] = [(None, "", tuple(range(size))), (None, "by columns", by_columns)]
        return plain[: 1 + (min(rows, cols) > 1)]
    if rows != cols or size != rows * (rows + 1) // 2:
        return []
    lower = [(i, j) for i in range(rows) for j in range(i + 1)]
    found: list[_Numbering] = []
    for form, pairs in (("", lower), (":upper", [(j, i) for i, j in lower])):
        for how, ordered in (("rows", sorted(pairs)), ("columns", sorted(pairs, key=lambda pair: pair[::-1]))):
            found.append((form, f"along the triangle by {how}", tuple(i * cols + j for i, j in ordered)))
    return found


def triangular_targets(shape: tuple[int, int, int], blocks: Sequence[set[tuple[int, int]]]) -> Iterator[Target]:
    """The targets of which the blocks that occur in A and B and the outputs that are set are just the present ones."""
    m, k, n = shape
    options = []
    for role, used, (rows, cols) in zip(("left", "right", "out"), blocks, ((m, k), (k, n), (m, n)), strict=True):
        places = {i * cols + j for i, j in used}
        triangles = {form for form, _, own in _numberings_of(len(used), rows, cols) if set(own) == places} - {None}
        options.append(("", *(f"tri-{role}{form}" for form in triangles)))
    for forms in product(*options):
        if any(forms):
            yield parse_target(f"{m}x{k}x{n}:{'+'.join(filter(None, forms))}", files=False)


def agrees(factors: Sequence[Entries], layout: GridNumbering) -> bool:
    """Return whether the trilinear form of exact factors by running index is the target's at one random point."""
    generator = np.random.default_rng(1)
    m, k, n = layout.target.shape
    points = [generator.integers(1, PRIME, size) for size in (m * k, k * n, m * n)]
    products = np.ones(factors[0].rank, dtype=np.int64)
    for part, point, places in zip(factors, points, layout.places, strict=True):
        if part.inexact or part.extent[0] > len(places):
            return False
        form = np.zeros_like(products)
        np.add.at(form, part.product, part.residues * point[np.array(places)[part.row]] % PRIME)
        products = products * (form % PRIME) % PRIME
    p, q, s = layout.target.terms.T
    terms = points[0][p] * points[1][q] % PRIME * points[2][s] % PRIME
    wanted = int((terms * (layout.target.term_values % PRIME) % PRIME).sum()) % PRIME
    return int(products.sum()) % PRIME == wanted


def _dense(m: int, k: int, n: int) -> Places:
    return tuple(range(m * k)), tuple(range(k * n)), tuple(range(m * n))
