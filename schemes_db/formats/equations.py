"""Plain equations, as papers print them: `m1 = (a11 + a22)(b11 + b22)` and `c11 = m1 + m4 - m5 + m7`.

Sums may have names too (`s1 = a21 + a22`), and outputs may hold products themselves. How equations
may be written is in `lines`, what their names mean in `formulas`. Comment lines of a `header` say
what can't be seen from the equations. Blocks may have one running index instead of two (see `layouts`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Set
from fractions import Fraction
from typing import Any

import numpy as np

from ...errors import LcmaError, SchemeFormatError
from ..gaussian import Gaussian
from ..ring import Ring
from ..scheme import Scheme
from ..target import Target
from .candidates import Shape, approximate, doubt_of
from .formulas import Formulas
from .header import parse_header
from .layouts import PRIME, GridNumbering, agrees, layouts_for, layouts_of, numbered_layouts, triangular_targets
from .lines import controlled_lines, statements
from .patterns import pattern
from .reading import C_TRANSPOSED, C, Entries, Reading, UnknownFormatError, factor_of, ring_of

NAME = "equations"
SUFFIX = ".txt"
CONVENTION = C

Factors = tuple[Entries, Entries, Entries]
Option = tuple[str, Target, Factors]
"""What a file may be: a label, the target, and the factors by row and column."""

MAX_TRIED = 32
"""Numberings of blocks with a running index that are tried where none agrees with its target."""

_RIGHT_SIDE = pattern(r"=|<-|:")
_BLOCK = pattern(r"[A-Za-z][\W_]?\d")
_LETTER = pattern(r"\b[a-h]\s?[-+*(]")


def sniff(text: str) -> bool:
    """Return whether some line sets a name to what has a block of a matrix in it."""
    if re.match(r"\s*[{\[]\s*[{\[\"]", text):
        return False
    written = parse_header(text[:2000]).target is not None
    return any(is_equation(line) or (written and "=" in line) for _, line in statements(text[:40_000]))


def is_equation(line: str) -> bool:
    """Return whether a name is set to what has two blocks, or letters that stand for blocks, in it."""
    sign = _RIGHT_SIDE.search(line)
    if sign is None or line[sign.end() :].lstrip()[:1] == "[":
        return False
    return len(_BLOCK.findall(line, sign.end())) > 1 or _LETTER.search(line, sign.end()) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme of equations; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line, where something is not an equation or a name has no value.
    """
    header = parse_header(text)
    wanted, ring = target or header.target, ring or header.ring
    found = Formulas(statements(text), controlled_lines(text))
    return [dataclasses.replace(reading_of(found, wanted, ring, header.name), declared=ring)]


def reading_of(found: Formulas, target: Target | None, ring: Ring | None, name: str) -> Reading:
    if not found.products or not (found.outputs or target):
        raise UnknownFormatError("no scheme here: products such as m1 = (a11)(b11), and outputs such as c11 = m1")
    doubt = f"line {found.code[0]} is no equation and no prose: this may be no scheme" if found.code else ""
    factors, notes = found.factors(), tuple(found.notes)
    base = found.bases["c"]
    if found.flat:
        count = 1 + max((index - base for (index,) in found.outputs), default=-1)
        wanted, others = _by_running_index(factors, count, target)
        notes = (*notes, f"blocks by running index, {wanted[0][0].partition(', ')[2] or wanted[0][1]}")
    else:
        outputs = {(i - base, j - base) for i, j in found.outputs}
        shapes = _shapes(factors, outputs, target)
        if any(part.inexact for part in factors):
            chosen = target or Target.general(*next(iter(shapes.values())))
            rows = [part.flat(width) for part, width in zip(factors, (chosen.k, chosen.n, chosen.n), strict=True)]
            return approximate(NAME, rows, list(shapes), chosen, ring, notes)
        wanted, others = _by_place(factors, shapes, outputs, target)
    candidates, failure = _schemes(wanted, ring, name)
    alternatives, _ = _schemes(others, ring, name)
    if failure is not None and not candidates:
        hint = f"; it holds as {alternatives[0][1].target}" if found.flat and alternatives else ""
        raise SchemeFormatError(f"{failure}{hint}")
    if found.skipped and any(scheme.target.shape == (1, 1, 1) for _, scheme in candidates):
        raise SchemeFormatError("one product of two numbers, in a text that says more: this is no scheme")
    held = {scheme.target for _, scheme in candidates}
    if not target:
        doubt = doubt or doubt_of(
            factors[0].rank, [one.shape for one in held if one.is_general or math.prod(one.shape) > 8]
        )
    alternatives = [(label, scheme) for label, scheme in alternatives if scheme.target not in held]
    return Reading(NAME, tuple(candidates), None, notes, alternatives=tuple(alternatives), doubt=doubt)


def _schemes(
    options: Iterable[Option], ring: Ring | None, name: str
) -> tuple[list[tuple[str, Scheme]], LcmaError | None]:
    """The schemes of the options that fit their targets, and the first failure."""
    found: list[tuple[str, Scheme]] = []
    failure: LcmaError | None = None
    for label, target, factors in options:
        m, k, n = target.shape
        try:
            grids = zip(factors, (m, k, m), (k, n, n), "ABC", strict=True)
            u, v, w = (factor_of(*grid) for grid in grids)
            found.append((label, Scheme(target, u, v, w, ring or ring_of((u, v, w)), name)))
        except LcmaError as error:
            failure = failure or error
    return found, failure


def _shapes(factors: Factors, outputs: Set[tuple[int, int]], target: Target | None) -> dict[str, Shape]:
    """The smallest sizes whose grids hold every block that is named, by the conventions that are meant."""
    (m, k), (inner, n), (rows, cols) = (part.extent for part in factors)
    rows, cols = max(rows, *(i + 1 for i, _ in outputs), 0), max(cols, *(j + 1 for _, j in outputs), 0)
    k = max(k, inner)
    shapes = {C: (max(m, rows), k, max(n, cols)), C_TRANSPOSED: (max(m, cols), k, max(n, rows))}
    smallest = min(map(math.prod, shapes.values()))
    return {one: shape for one, shape in shapes.items() if target or math.prod(shape) == smallest}


def _by_place(
    factors: Factors, shapes: dict[str, Shape], outputs: Set[tuple[int, int]], target: Target | None
) -> tuple[list[Option], list[Option]]:
    """What blocks by row and column may compute, and what else than the target that is asked for: the general
    target, and the triangular ones of just these blocks that save products.

    A general scheme that lost an output has no fewer products than the triangle needs one by one.
    """
    wanted: list[Option] = []
    others: list[Option] = []
    for convention, shape in shapes.items():
        a, b, c = factors
        three = a, b, c if convention == C else c.transposed()
        turned = {(j, i) for i, j in outputs} if convention == C_TRANSPOSED else outputs
        found: list[Option] = [(convention, Target.general(*shape), three)] if all(shape) or not target else []
        for one in triangular_targets(shape, (a.places, b.places, three[2].places | turned)):
            if a.rank < len(one.terms) + ("tri-out" not in one.name):
                found.append((f"{convention}, {one}", one, three))
        wanted += [(convention, target, three)] if target else found
        others += found if target else []
    return wanted, others


def _by_running_index(factors: Factors, outputs: int, target: Target | None) -> tuple[list[Option], list[Option]]:
    """The same of blocks with one running index, by every numbering that may be meant."""
    chosen, others = _layouts(factors, (factors[0].extent[0], factors[1].extent[0], outputs), target)
    return [_option(factors, one) for one in chosen], [_option(factors, one) for one in others]


def _option(factors: Factors, layout: GridNumbering) -> Option:
    _, k, n = layout.target.shape
    found = []
    for part, places, width in zip(factors, layout.places, (k, n, n), strict=True):
        if part.extent[0] > len(places):
            raise SchemeFormatError(f"an index beyond the {len(places)} entries that {layout.target} has there")
        row, col = divmod(np.array(places)[part.row], width)
        found.append(dataclasses.replace(part, row=row, col=col))
    return _label(layout), layout.target, (found[0], found[1], found[2])


def _label(layout: GridNumbering) -> str:
    return f"{C}, {layout.label}" if layout.label else C


def _layouts(
    factors: Factors, sizes: tuple[int, int, int], target: Target | None
) -> tuple[list[GridNumbering], list[GridNumbering]]:
    """The layouts to be tried, and those that hold as another target than the one asked for.

    Where one agrees with its target at a random point, it is the only one.
    """
    exact = not any(part.inexact for part in factors)
    residues = [np.array(list(map(_residue, part.values)) if exact else [], dtype=np.int64) for part in factors]

    def fits(layout: GridNumbering) -> bool:
        """Return whether the equations agree with the target of a layout at a random point."""
        if not exact or any(part.extent[0] > size for part, size in zip(factors, layout.sizes, strict=True)):
            return False
        dense = [np.zeros((part.rank, size), dtype=np.int64) for part, size in zip(factors, layout.sizes, strict=True)]
        for array, part, values in zip(dense, factors, residues, strict=True):
            array[part.product, part.row] = values
        return agrees(np.concatenate([array.ravel() for array in dense]), layout, factors[0].rank)

    possible = [*layouts_of(target)] if target is not None else []
    everywhere = [*numbered_layouts(sizes), *layouts_for(sizes)]
    possible += [one for one in everywhere if target in (None, one.target)]
    possible = list({(one.target, one.places): one for one in possible}.values())
    if found := next((one for one in possible if fits(one)), None):
        return [found], []
    others = [one for one in everywhere if target not in (None, one.target) and fits(one)]
    fitting = [one for one in possible if all(map(int.__le__, sizes, one.sizes))] or possible[:1]
    if not fitting:
        raise SchemeFormatError(
            f"{sizes[0]}, {sizes[1]} and {sizes[2]} entries of A, B and C are of no known product; "
            "name it with --target"
        )
    return list({_label(one): one for one in reversed(fitting)}.values())[::-1][:MAX_TRIED], others[:1]


def _residue(value: Any) -> int:
    real = value.real if isinstance(value, Gaussian) else Fraction(value)
    return real.numerator * pow(real.denominator, -1, PRIME) % PRIME if real.denominator % PRIME else 0
