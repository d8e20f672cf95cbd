"""Plain equations, as papers print them: `m1 = (a11 + a22)(b11 + b22)` and `c11 = m1 + m4 - m5 + m7`.

Sums may have names too (`s1 = a21 + a22`), and outputs may hold products themselves. How equations
may be written is in `lines`, what their names mean in `formulas`. Comment lines of a `header` say
what can't be seen from the equations. Blocks may have one running index instead of two (see `layouts`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from ...errors import SchemeFormatError
from ..target import Target
from .candidates import Factors, Option, option_of, reading_by_place, reading_of_options
from .control_flow import controlled_lines
from .formulas import Formulas
from .header import parse_header
from .layouts import agrees, layouts_of, numbered_layouts, structured_layouts
from .lines import Statement, statements
from .patterns import pattern
from .reading import C_TRANSPOSED, C, Reading, UnknownFormatError, Wanted
from .trilinear import split_product

SNIFFED = 40_000
"""Characters by which a text is recognised."""

MAX_TRIED = 32
"""Numberings of blocks with a running index that are tried where none agrees with its target."""

_RIGHT_SIDE = pattern(r"=|<-|:")
_BLOCK = pattern(r"[A-Za-z][\W_]?\d")
_SYMMETRIC = pattern(r"(?mi)^\W*symmetry:?\s*3\b")
_TYPED = r"(?:(?:static|const|inline|public|private|final)[ \t]+)*(?:void|int|float|double|long|real)\b[^\n]{0,200}?"
_COMPILED = pattern(rf"(?m)^[ \t]*(?:#[ \t]*include\b|package \w+;?[ \t]*$|{_TYPED}(?:[;{{][ \t]*$|::))")
"""A line of C, C++, Java, Go or Fortran, in which a quotient of two integers is rounded towards 0."""

_ROUNDED = pattern(r"(?:^|[-+=(,])\s*(?:\d+\s*\*\s*)*\d+\s*/\s*\d+(?![\w.])")
_LETTER = pattern(r"\b[a-h]\s?[-+*(]")


def sniff(text: str, fits: Callable[[str], Any] | None = None) -> bool:
    """Return whether some statement fits: sets a name to what has a block of a matrix in it."""
    if re.match(r"\s*[{\[]\s*[{\[\"]", text):
        return False
    named = fits is None and parse_header(text[:2000])[0] is not None
    found = (statement for _, statement in _beginning(text[:SNIFFED]))
    return any((fits or is_equation)(statement) or (named and "=" in statement) for statement in found)


@lru_cache(maxsize=2)
def _beginning(text: str) -> tuple[Statement, ...]:
    """The statements of a text of at most SNIFFED characters, which several readers look at."""
    return tuple(statements(text))


def is_equation(line: str) -> bool:
    """Return whether a name is set to what has two blocks, or letters that stand for blocks, in it."""
    sign = _RIGHT_SIDE.search(line)
    if sign is None or line[sign.end() :].lstrip()[:1] == "[":
        return False
    return len(_BLOCK.findall(line, sign.end())) > 1 or _LETTER.search(line, sign.end()) is not None


def parse(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme of equations, or of products of three factors; both conventions become candidates where they fit.

    Raises:
        SchemeFormatError: with the line, where something is not an equation or a name has no value.
    """
    said, over, name = parse_header(text)
    wanted = dataclasses.replace(wanted, target=wanted.target or said, ring=wanted.ring or over, name=name)
    found_statements = iter(_beginning(text)) if len(text) <= SNIFFED else statements(text)
    found = Formulas(found_statements, controlled_lines(text), _SYMMETRIC.search(text) is not None)
    rounded = (each for each in found.equations if any(map(_ROUNDED.search, each.texts)))
    if _COMPILED.search(text) and (each := next(rounded, None)):
        quotient = f"{each.name} has a quotient of integers, which is rounded there; write 1.0/2"
        raise SchemeFormatError(quotient, line=each.line)
    return [reading_of(found, wanted)]


def reading_of(found: Formulas, wanted: Wanted) -> Reading:
    """The reading of formulas.

    Raises:
        SchemeFormatError: they are no scheme, or none for the target.
    """
    target, wanted = wanted.target, dataclasses.replace(wanted, format="exp" if found.thirds else "equations")
    if not found.products or not (found.outputs or target):
        raise UnknownFormatError("no scheme here: products such as m1 = (a11)(b11), and outputs such as c11 = m1")
    factors = found.factors()
    base = found.bases["c"]
    if found.flat:
        count = 1 + max((index - base for (index,) in found.outputs), default=-1)
        options, others = _by_running_index(factors, count, target)
        found.notes.append(f"blocks by running index, {options[0][0].partition(', ')[2] or options[0][1]}")
        reading = reading_of_options(wanted, options, others, unsure=target is None)
    elif found.thirds:
        a, b, c = (part.extent for part in factors)
        if target is None and not all(map(int.__le__, sorted(c), sorted((a[0], b[1])))):
            raise SchemeFormatError(f"A has {a[0]} rows, B {b[1]} columns, but the third factor is larger")
        reading = reading_by_place(wanted, factors, C_TRANSPOSED)
    else:
        outputs = {(i - base, j - base) for i, j in found.outputs}
        reading = reading_by_place(wanted, factors, C, outputs)
    if list(found.letters) in found.groups:
        named = tuple(one for one in reading.candidates if not one[0].startswith(C_TRANSPOSED))
        reading = dataclasses.replace(reading, candidates=named)
    held = {scheme.target for _, scheme in reading.candidates}
    if found.skipped and any(one.shape == (1, 1, 1) for one in held):
        raise SchemeFormatError("one product of two numbers, in a text that says more: this is no scheme")
    doubt = f"line {found.code[0]} is no equation and no prose: this may be no scheme" if found.code else reading.doubt
    return dataclasses.replace(reading, doubt=doubt, notes=tuple(found.notes))


def _by_running_index(factors: Factors, outputs: int, target: Target | None) -> tuple[list[Option], list[Option]]:
    """What blocks with one running index may compute by the numberings to be tried, and what else than the target.

    Where one numbering agrees with its target at a random point, it is the only one.
    """
    sizes = (factors[0].extent[0], factors[1].extent[0], outputs)
    stored = structured_layouts(lambda own, _: own[2] == outputs and own[0] >= sizes[0] and own[1] >= sizes[1])
    everywhere = [*numbered_layouts(sizes), *sorted(stored, key=lambda layout: sum(layout.sizes))]
    possible = [*(layouts_of(target) if target else ()), *(one for one in everywhere if target in (None, one.target))]
    possible = list({(one.target, one.places): one for one in possible}.values())
    if found := next((one for one in possible if agrees(factors, one)), None):
        return [option_of(factors, found)], []
    others = [one for one in everywhere if target not in (None, one.target) and agrees(factors, one)]
    fitting = [one for one in possible if all(map(int.__le__, sizes, one.sizes))] or possible[:1]
    if not fitting:
        raise SchemeFormatError(
            f"{sizes[0]}, {sizes[1]} and {sizes[2]} entries of A, B and C are of no known product; "
            "name it with --target"
        )
    tried = list({one.label: one for one in reversed(fitting)}.values())[::-1][:MAX_TRIED]
    return [option_of(factors, one) for one in tried], [option_of(factors, one) for one in others[:1]]


sniff_products = partial(sniff, fits=partial(split_product, 0))
