"""From the factors of a file to its reading: one candidate for each convention that the sizes allow."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
from typing import Any

import numpy as np

from ...errors import LcmaError, SchemeFormatError
from ..factor import Factor
from ..inexact import Approximation, Coefficient
from ..scheme import MAX_RANK, Scheme
from ..target import MAX_DIMENSION, Target
from .layouts import GridNumbering, triangular_targets
from .reading import C_TRANSPOSED, C, Entries, Reading, Wanted, factor_of, places_on, ring_of
from .strict_json import need

Shape = tuple[int, int, int]
Factors = tuple[Entries, Entries, Entries]
Option = tuple[str, Target, Factors]
"""What a file may be: a label, the target, and the factors by row and column."""

Row = Sequence[tuple[int, Coefficient]]
"""One product of a factor: 0-based flat index and coefficient of every entry that may be nonzero."""


def shape_of(a: int, b: int, c: int) -> Shape:
    """The sizes (m, k, n) of a product whose A, B and C have so many entries: m k, k n and m n.

    Raises:
        SchemeFormatError: there are none.
    """
    if a > 0 and b > 0 and c > 0:
        k = math.isqrt(a * b // c)
        if k and not (a % k or b % k) and (a // k) * (b // k) == c:
            return a // k, k, b // k
    if a > 1 and b > 1 and c == a + b - 1:
        raise SchemeFormatError(
            f"factors of {a}, {b} and {c} entries multiply polynomials, which is no product of matrices; say what they "
            "compute with --target, as terms(...)"
        )
    raise SchemeFormatError(f"factors of {a}, {b} and {c} entries belong to no matrix product")


def sizes_and_rank(data: dict[str, Any], sizes: str, rank: str, where: str = "the scheme") -> tuple[Shape, int]:
    """The sizes of a general product and the number of products in two fields of a JSON object.

    Raises:
        SchemeFormatError: a field is missing, or out of bounds.
    """
    said, count = need(data, sizes, list, where), need(data, rank, int, where)
    if len(said) != 3 or not all(type(size) is int and 1 <= size <= MAX_DIMENSION for size in said):
        raise SchemeFormatError(f"field {sizes!r} must be three sizes, 1 to {MAX_DIMENSION} each, such as [2, 2, 2]")
    if not 1 <= count <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {count}")
    return (said[0], said[1], said[2]), count


def target_of(shape: Shape, target: Target | None) -> Target:
    """The target that the user names, if it has the sizes of the file; else the general one of these sizes.

    Raises:
        SchemeFormatError: the sizes differ.
    """
    if target is None:
        return Target.general(*shape)
    if target.shape != shape:
        raise SchemeFormatError(f"the file says {'x'.join(map(str, shape))}, not {target}")
    return target


def reading_of_rows(wanted: Wanted, rows: Sequence[Sequence[Row]], shape: Shape, documented: str) -> Reading:
    """The reading of three factors given product by product, entries by flat row-major index.

    Raises:
        SchemeFormatError: as `target_of` and `reading_of_options`.
    """
    chosen = target_of(shape, wanted.target)
    left, right = Entries.of(rows[0], chosen.k), Entries.of(rows[1], chosen.n)
    thirds = {C: Entries.of(rows[2], chosen.n), C_TRANSPOSED: Entries.of(rows[2], chosen.m).transposed()}
    options = [(convention, chosen, (left, right, thirds[convention])) for convention in _by(documented)]
    return reading_of_options(wanted, options)


def reading_by_place(
    wanted: Wanted, factors: Factors, documented: str, outputs: Set[tuple[int, int]] = frozenset()
) -> Reading:
    """The reading of three factors, entries by row and column; `outputs` are places of C that are set, if to 0.

    The grids are the smallest that hold every block, the third n x m by C^T and m x n by C. Triangular targets of
    just these blocks are candidates if they save products: a general scheme that lost an output has no fewer
    products than the triangle needs one by one.

    Raises:
        SchemeFormatError: by no convention do the sizes fit the target or the ring.
    """
    target = wanted.target
    a, b, c = factors
    (m, k), (inner, n), (rows, cols) = (part.extent for part in factors)
    rows, cols = max(rows, *(i + 1 for i, _ in outputs), 0), max(cols, *(j + 1 for _, j in outputs), 0)
    k = max(k, inner)
    shapes = {C: (max(m, rows), k, max(n, cols)), C_TRANSPOSED: (max(m, cols), k, max(n, rows))}
    smallest = min(map(math.prod, shapes.values()))
    meant: list[Option] = []
    others: list[Option] = []
    for convention in _by(documented):
        shape = shapes[convention]
        if not target and math.prod(shape) > smallest:
            continue
        three = a, b, c if convention == C else c.transposed()
        used = three[2].places | (outputs if convention == C else {(j, i) for i, j in outputs})
        found: list[Option] = [(convention, Target.general(*shape), three)] if all(shape) or not target else []
        for one in triangular_targets(shape, (a.places, b.places, used)):
            if a.rank < len(one.terms) + ("tri-out" not in one.name):
                found.append((f"{convention}, {one}", one, three))
        meant += [(convention, target, three)] if target else found
        others += found if target else []
    return reading_of_options(wanted, meant, others, unsure=target is None)


def reading_of_coefficients(
    wanted: Wanted, rank: int, coefficients: Sequence[tuple[int, int, int, int, Coefficient]]
) -> Reading:
    """The reading of coefficients: factor (0 to 2), product (from 0), row, column, value each.

    Rows and columns count from 0 if one of them is 0, else from 1.

    Raises:
        SchemeFormatError: a coefficient is given twice, or a product lacks a block of A or B; as `reading_of_options`.
    """
    base = min(1, *(index for one in coefficients for index in one[2:4]))
    terms: list[list[list[tuple[int, int, Coefficient]]]] = [[[] for _ in range(rank)] for _ in range(3)]
    if twice := next((one for one, count in Counter(one[:4] for one in coefficients).items() if count > 1), None):
        slot, r, row, col = twice
        raise SchemeFormatError(f"product {r + 1}: {'ABC'[slot]} has block [{row},{col}] twice")
    for slot, r, row, col, value in coefficients:
        terms[slot][r] += [(row - base, col - base, value)] if value else []
    for slot in (0, 1):
        if [] in terms[slot]:
            raise SchemeFormatError(f"product {terms[slot].index([]) + 1} has no block of {'AB'[slot]}")
    a, b, c = map(Entries.of, terms)
    return reading_by_place(wanted, (a, b, c), C)


def option_of(factors: Factors, layout: GridNumbering, convention: str = C) -> Option:
    """What factors by running index are by a numbering of the entries.

    Raises:
        SchemeFormatError: an index beyond the entries that the target has.
    """
    found = []
    for part, places, width in zip(factors, layout.places, (layout.target.k, *2 * [layout.target.n]), strict=True):
        if part.extent[0] > len(places):
            raise SchemeFormatError(f"an index beyond the {len(places)} entries that {layout.target} has there")
        row, col = divmod(np.array(places)[part.row], width)
        found.append(dataclasses.replace(part, row=row, col=col))
    label = f"{convention}, {layout.label}" if layout.label else convention
    return label, layout.target, (found[0], found[1], found[2])


def reading_of_options(
    wanted: Wanted, options: Sequence[Option], others: Sequence[Option] = (), *, unsure: bool = False
) -> Reading:
    """The reading of what a file may be; what it may be else than the target asked for becomes `alternatives`.

    Options with coefficients that are not exact become approximations. If `unsure`, more products than any of the
    options needs are a doubt whether the file is a scheme.

    Raises:
        SchemeFormatError: no option fits its target and the ring.
    """
    candidates, rounded, failure = _schemes(options, wanted)
    alternatives, _, _ = _schemes(others, wanted)
    if failure is not None and not (candidates or rounded):
        hint = f"; it holds as {alternatives[0][1].target}" if alternatives else ""
        raise SchemeFormatError(f"{failure}{hint}")
    held = {scheme.target for _, scheme in candidates}
    rank, shapes = options[0][2][0].rank, [one.shape for one in held if one.is_general or math.prod(one.shape) > 8]
    doubtful = unsure and held and not any(rank <= math.prod(shape) > 1 for shape in shapes)
    doubt = f"{rank} products that belong to no product of matrices in sight: this may be no scheme, or several"
    return Reading(
        wanted.format,
        tuple(candidates),
        declared=wanted.ring,
        approximations=tuple(rounded),
        alternatives=tuple((label, scheme) for label, scheme in alternatives if scheme.target not in held),
        doubt=doubt if doubtful else "",
    )


def _schemes(
    options: Iterable[Option], wanted: Wanted
) -> tuple[list[tuple[str, Scheme]], list[tuple[str, Approximation]], LcmaError | None]:
    """The schemes and the approximations of the options that fit their targets, and the first failure."""
    found: list[tuple[str, Scheme]] = []
    rounded: list[tuple[str, Approximation]] = []
    failure: LcmaError | None = None
    made: dict[tuple[Entries, int, int], Factor] = {}
    for label, target, factors in options:
        m, k, n = target.shape
        grids = list(zip(factors, (m, k, m), (k, n, n), "UVW", strict=True))
        try:
            if any(part.inexact for part in factors):
                for grid in grids:
                    places_on(*grid)
                u, v, w = (part.rounded(cols) for part, _, cols, _ in grids)
                rounded.append((label, Approximation(target, (u, v, w), wanted.ring)))
                continue
            for part, rows, cols, letter in grids:
                if (part, rows, cols) not in made:
                    made[part, rows, cols] = factor_of(part, rows, cols, letter)
            a, b, c = (made[grid[:3]] for grid in grids)
            ring = wanted.ring or ring_of((a, b, c))
            found.append((label, Scheme(target, a, b, c, ring, wanted.name)))
        except LcmaError as error:
            failure = failure or error
    return found, rounded, failure


def _by(documented: str) -> list[str]:
    """Both conventions, the documented one first."""
    return sorted((C, C_TRANSPOSED), key=lambda name: name != documented)


def likely_shapes(total: int) -> Iterator[Shape]:
    """Every (m, k, n) with a rank so that rank (m k + k n + m n) = total, and that a scheme may have.

    That is at least the entries of the largest matrix, at most m k n.
    """
    sides = range(1, MAX_DIMENSION + 1)
    for m, k in product(sides, sides):
        for n in sides[: max(total - m * k, 0) // (m + k)]:
            rank, rest = divmod(total, m * k + k * n + m * n)
            if not rest and max(m * k, k * n, m * n) <= rank <= m * k * n:
                yield m, k, n
