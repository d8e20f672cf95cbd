"""Plain equations, as papers print them: `m1 = (a11 + a22)(b11 + b22)` and `c11 = m1 + m4 - m5 + m7`.

Sums may have names too (`s1 = a21 + a22`), and outputs may hold products themselves. How equations
may be written is in `lines`, what their names mean in `formulas`. Comment lines of a `header` say
what can't be seen from the equations. Blocks may have one running index instead of two (see `layouts`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction
from typing import Any

import numpy as np

from ...errors import LcmaError, SchemeFormatError
from ..gaussian import Gaussian, Number
from ..ring import Z2, Ring
from ..scheme import Scheme
from ..target import MAX_DIMENSION, Target
from .candidates import Shape, approximate, extent_of, flat_rows, has_inexact, transposed
from .formulas import Formulas, read_formulas
from .header import parse_header
from .layouts import PRIME, GridNumbering, agrees, layouts_for, layouts_of, numbered_layouts, triangular_targets
from .lines import controlled_lines, statements
from .patterns import pattern
from .plain import PlainLine, read_equations, scan
from .reading import C_TRANSPOSED, C, Entries, Reading, Terms, UnknownFormatError, factor_of, ring_of

NAME = "equations"
SUFFIX = ".txt"
CONVENTION = C

FlatRows = list[list[list[tuple[Any, ...]]]]
"""Of A, B and C the terms of every product: a running index from 0 and the coefficient."""

MAX_TRIED = 32
"""Numberings of blocks with a running index that are tried where none agrees with its target."""

_RIGHT_SIDE = pattern(r"=|<-|:")
_BLOCK = pattern(r"[A-Za-z][\W_]?\d")
_LETTER = pattern(r"\b[a-h]\s?[-+*(]")


def sniff(text: str) -> bool:
    """Return whether some line sets a name to what has a block of a matrix in it."""
    if re.search(r"[{\[]\s*\"", text[:2000]) and text.lstrip()[:1] in "{[":
        return False
    written = parse_header(text[:2000]).target is not None
    return any(is_equation(line) or (written and "=" in line) for _, line in statements(text[:40_000]))


def is_equation(line: str) -> bool:
    """Return whether a name is set to what has two blocks, or letters that stand for blocks, in it."""
    sign = _RIGHT_SIDE.search(line)
    if sign is None or line[sign.end() :].lstrip()[:1] == "[":
        return False
    return len(_BLOCK.findall(line, sign.end())) > 1 or _LETTER.search(line, sign.end()) is not None


def parse_plain(
    text: str, lines: Sequence[PlainLine] | None, target: Target | None, ring: Ring | None
) -> list[Reading] | None:
    """Read one scheme of equations in plain spelling, of which `lines` are given; None for any other text.

    Raises:
        SchemeFormatError: they do not fit the target or the ring.
    """
    if lines is None or (plain := read_equations(lines)) is None:
        return None
    header = parse_header(text)
    ring = ring or header.ring
    return [dataclasses.replace(_reading(plain, target or header.target, ring, header.name), declared=ring)]


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme of equations; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line, where something is not an equation or a name has no value.
    """
    if (readings := parse_plain(text, scan(text), target, ring)) is not None:
        return readings
    header = parse_header(text)
    wanted, ring = target or header.target, ring or header.ring
    try:
        found = read_formulas(statements(text), controlled_lines(text))
        reading = _reading_of_formulas(found, wanted, ring, header.name)
        return [dataclasses.replace(reading, declared=ring)]
    except SchemeFormatError:
        raise
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None


def listed_text(data: dict[str, Any], *keys: str) -> str:
    """The equations that fields of a JSON object list as texts, one a line; nothing where they are not all there."""
    found = [data.get(key) for key in keys]
    lines = [line for part in found if isinstance(part, list) for line in part]
    complete = all(isinstance(part, list) for part in found) and all(isinstance(line, str) for line in lines)
    return "\n".join(lines) if complete else ""


def agreeing(reading: Reading, text: str) -> Reading:
    """A reading of numbers whose file also has these equations, once both are found to say the same.

    Raises:
        SchemeFormatError: they do not.
    """
    if not text or not reading.candidates or max(reading.candidates[0][1].target.shape) > 9:
        return reading  # two digits can't be told apart in the names of larger ones
    try:
        found = read_formulas(statements(text))
        if found.skipped:
            return reading  # text for people
        target = reading.candidates[0][1].target
        written = [scheme for _, scheme in _reading_of_formulas(found, target, None, "").candidates]
    except SchemeFormatError:
        return reading
    given = [scheme for _, scheme in reading.candidates]
    modulo_2 = any(scheme.ring == Z2 for scheme in given)
    said, meant = (
        {((scheme.over_z2() if modulo_2 and scheme.ring != Z2 else None) or scheme).digest for scheme in schemes}
        for schemes in (written, given)
    )
    if said and not said & meant:
        raise SchemeFormatError("the equations in the file contradict its numbers")
    return reading


def _reading_of_formulas(found: Formulas, target: Target | None, ring: Ring | None, name: str) -> Reading:
    if not found.products or not (found.outputs or target):
        raise UnknownFormatError("no scheme here: products such as m1 = (a11)(b11), and outputs such as c11 = m1")
    doubt = f"line {found.code[0]} is no equation and no prose: this may be no scheme" if found.code else ""
    a, b, c = found.factors()
    named = {tuple(at - found.bases["c"] for at in index) for index in found.outputs}
    notes = tuple(found.notes)
    if found.flat:
        reading = _flat_reading(
            [a, b, c], 1 + max((index for (index,) in named), default=-1), notes, target, ring, name
        )
    else:
        reading = _reading((a, b, c), target, ring, name, {(i, j) for i, j in named}, notes)
    if found.skipped and any(scheme.target.shape == (1, 1, 1) for _, scheme in reading.candidates):
        raise SchemeFormatError("one product of two numbers, in a text that says more: this is no scheme")
    return dataclasses.replace(reading, doubt=doubt)


def _reading(
    factors: tuple[Terms, Terms, Terms],
    target: Target | None,
    ring: Ring | None,
    name: str,
    named: Set[tuple[int, int]] = frozenset(),
    notes: tuple[str, ...] = (),
) -> Reading:
    """The reading of blocks with a row and a column; the outputs that are `named` are blocks of C, too."""
    a, b, c = factors
    left, right, (rows, cols) = (extent_of(factor) for factor in factors)
    rows, cols = max(rows, *(i + 1 for i, _ in named), 0), max(cols, *(j + 1 for _, j in named), 0)
    shapes = {C: _shape(left, right, rows, cols), C_TRANSPOSED: _shape(left, right, cols, rows)}
    volumes = {convention: math.prod(shape) for convention, shape in shapes.items()}
    smallest = min(volumes.values())
    if has_inexact(factors):
        chosen = target or Target.general(*shapes[C if volumes[C] == smallest else C_TRANSPOSED])
        conventions = [one for one in (C, C_TRANSPOSED) if target or volumes[one] == smallest]
        return approximate(NAME, flat_rows(factors, (chosen.k, chosen.n, chosen.n)), conventions, chosen, ring, notes)
    candidates: list[tuple[str, Scheme]] = []
    alternatives: list[tuple[str, Scheme]] = []
    failure: SchemeFormatError | None = None
    for convention in (one for one in (C, C_TRANSPOSED) if target or volumes[one] == smallest):
        three = a, b, c if convention == C else transposed(c)
        found = list(_targets(convention, shapes[convention], three, named))
        wanted = [(convention, target)] if target else found
        for label, one in (*wanted, *(found if target else ())):
            into = candidates if one is target or not target else alternatives
            try:
                into.append((label, _scheme(three, one or Target.general(*shapes[convention]), ring, name)))
            except LcmaError as error:
                failure = failure or SchemeFormatError(str(error))
    if failure and not candidates:
        raise failure
    held = {scheme.target for _, scheme in candidates}
    alternatives = [(label, scheme) for label, scheme in alternatives if scheme.target not in held]
    return Reading(NAME, tuple(candidates), None, notes, alternatives=tuple(alternatives))


def _targets(
    convention: str, shape: Shape, factors: tuple[Terms, Terms, Terms], named: Set[tuple[int, int]]
) -> Iterator[tuple[str, Target | None]]:
    """The general target (None), and the triangular ones of just these blocks that save products.

    A general scheme that lost an output has no fewer products than the triangle needs one by one.
    """
    yield convention, None
    a, b, c = (_blocks(factor) for factor in factors)
    turned = {(j, i) for i, j in named} if convention == C_TRANSPOSED else named
    rank = factors[0].rank if isinstance(factors[0], Entries) else len(factors[0])
    for target in triangular_targets(shape, (a, b, c | turned)):
        if rank < len(target.terms) + ("tri-out" not in target.name):
            yield f"{convention}, {target}", target


def _blocks(factor: Terms) -> set[tuple[int, int]]:
    """The blocks that occur in a factor."""
    if isinstance(factor, Entries):
        keys = np.unique(factor.row * MAX_DIMENSION + factor.col)
        return set(zip((keys // MAX_DIMENSION).tolist(), (keys % MAX_DIMENSION).tolist(), strict=True))
    return {(row, col) for terms in factor for row, col, _ in terms}


def _scheme(factors: tuple[Terms, Terms, Terms], target: Target, ring: Ring | None, name: str) -> Scheme:
    m, k, n = target.shape
    u, v, w = (
        factor_of(factor, *grid, label)
        for factor, grid, label in zip(factors, ((m, k), (k, n), (m, n)), "ABC", strict=True)
    )
    return Scheme(target, u, v, w, ring or ring_of((u, v, w)), name)


def _shape(a: tuple[int, int], b: tuple[int, int], rows: int, cols: int) -> Shape:
    """The smallest sizes m, k, n whose grids hold every block that is named."""
    return max(a[0], rows), max(a[1], b[0]), max(b[1], cols)


def _flat_reading(
    rows: FlatRows, outputs: int, notes: tuple[str, ...], target: Target | None, ring: Ring | None, name: str
) -> Reading:
    """The reading of blocks with one running index, by every numbering that may be meant."""
    left, right, _ = (max((index + 1 for row in part for index, _ in row), default=0) for part in rows)
    chosen, others = _layouts(rows, (left, right, outputs), target)
    try:
        candidates, alternatives = (
            [(_label(one), _of_layout(rows, one, ring, name)) for one in part] for part in (chosen, others)
        )
    except LcmaError as error:
        hint = f"; it holds as {others[0].target}" if others else ""
        raise SchemeFormatError(f"{error}{hint}") from None
    notes = (*notes, f"blocks by running index, {chosen[0].label or chosen[0].target}")
    return Reading(NAME, tuple(candidates), None, notes, alternatives=tuple(alternatives))


def _label(layout: GridNumbering) -> str:
    return f"{C}, {layout.label}" if layout.label else C


def _of_layout(rows: FlatRows, layout: GridNumbering, ring: Ring | None, name: str) -> Scheme:
    _, k, n = layout.target.shape
    factors = []
    for part, places, width in zip(rows, layout.places, (k, n, n), strict=True):
        if max((index for row in part for index, _ in row), default=0) >= len(places):
            raise SchemeFormatError(f"an index beyond the {len(places)} entries that {layout.target} has there")
        factors.append([[(*divmod(places[index], width), value) for index, value in row] for row in part])
    return _scheme((factors[0], factors[1], factors[2]), layout.target, ring, name)


def _layouts(
    rows: FlatRows, sizes: tuple[int, int, int], target: Target | None
) -> tuple[list[GridNumbering], list[GridNumbering]]:
    """The layouts to be tried, and those that hold as another target than the one asked for.

    Where one agrees with its target at a random point, it is the only one.
    """
    possible = [*layouts_of(target)] if target is not None else []
    everywhere = [*numbered_layouts(sizes), *layouts_for(sizes)]
    possible += [one for one in everywhere if target in (None, one.target)]
    possible = list({(one.target, one.places): one for one in possible}.values())
    if agreeing := next((one for one in possible if _agrees(rows, one)), None):
        return [agreeing], []
    others = [one for one in everywhere if target not in (None, one.target) and _agrees(rows, one)]
    fitting = [one for one in possible if all(map(int.__le__, sizes, one.sizes))] or possible[:1]
    if not fitting:
        raise SchemeFormatError(
            f"{sizes[0]}, {sizes[1]} and {sizes[2]} entries of A, B and C are of no known product; "
            "name it with --target"
        )
    return list({_label(one): one for one in reversed(fitting)}.values())[::-1][:MAX_TRIED], others[:1]


def _agrees(rows: FlatRows, layout: GridNumbering) -> bool:
    parts = []
    for part, size in zip(rows, layout.sizes, strict=True):
        dense = np.zeros((len(part), size), dtype=np.int64)
        for r, row in enumerate(part):
            for index, value in row:
                if index >= size or not isinstance(value, int | Fraction | Gaussian):
                    return False
                dense[r, index] = _residue(value)
        parts.append(dense.ravel())
    return agrees(np.concatenate(parts), layout, len(rows[0]))


def _residue(value: Number) -> int:
    real = value.real if isinstance(value, Gaussian) else Fraction(value)
    return real.numerator * pow(real.denominator, -1, PRIME) % PRIME if real.denominator % PRIME else 0
