"""Products as equations and pictures, in HTML and SVG made of digits and letters of our own alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from . import costs
from .factor import Factor
from .gaussian import Gaussian
from .grids import Kind
from .scheme import Scheme

PRODUCTS_BYTES = 110_000
OUTPUTS_BYTES = 50_000
"""Limits of the part of a large scheme that a page shows."""

CELL = 10
"""Side of a block in a picture, in SVG units."""

Number = int | Fraction | Gaussian

Term = tuple[int, Number]


@dataclass(frozen=True)
class Row:
    """One product: three pictures and its equation."""

    label: str
    kind: str
    pictures: tuple[str, str, str]
    equation: str


@dataclass(frozen=True)
class Drawing:
    """The part of a scheme that a page shows. `side` is the width of a block in CSS pixels."""

    grids: tuple[str, str, str]
    boxes: tuple[str, str, str]
    side: int
    rows: tuple[Row, ...]
    outputs: tuple[str, ...]
    blocks: int
    """The number of blocks of C; `outputs` may be fewer."""


def draw(scheme: Scheme) -> Drawing:
    """The pictures and equations of a scheme, cut where they would make the page too large."""
    grids, boxes = [], []
    for kinds in scheme.target.kind_arrays:
        grids.append(_grid(kinds.tolist()))
        boxes.append(f"0 0 {kinds.shape[1] * CELL} {kinds.shape[0] * CELL}")
    side = min(17, max(3, 84 // max(scheme.target.shape)))
    return Drawing(
        (grids[0], grids[1], grids[2]),
        (boxes[0], boxes[1], boxes[2]),
        side,
        tuple(_rows(scheme)),
        tuple(_outputs(scheme)),
        len(np.unique(scheme.w.indices)),
    )


def _grid(kinds: Sequence[Sequence[int]]) -> str:
    """The blocks of one operand: squares, triangles for half blocks, nothing for absent ones."""
    paths = {Kind.FULL: "h{0}v{0}h-{0}z", Kind.LOWER: "l{0} {0}h-{0}z", Kind.UPPER: "h{0}v{0}z"}
    return "".join(
        f"M{j * CELL} {i * CELL}{paths[Kind(kind)].format(CELL)}"
        for i, row in enumerate(kinds)
        for j, kind in enumerate(row)
        if kind != Kind.ABSENT
    )


def _rows(scheme: Scheme) -> Iterable[Row]:
    wide = max(scheme.target.shape) > 9
    used = 0
    for r, kind in enumerate(costs.product_kinds(scheme)):
        terms = [_terms(factor, r) for factor in scheme.factors]
        used += 130 * sum(map(len, terms)) + 900
        if used > PRODUCTS_BYTES:
            return
        pictures = [
            _picture(part, factor, letter, wide)
            for part, factor, letter in zip(terms, scheme.factors, "abc", strict=True)
        ]
        left, right = (
            f"({_sum([(_block(letter, index, factor.cols, wide), value) for index, value in part])})"
            for letter, factor, part in zip("ab", scheme.factors[:2], terms[:2], strict=True)
        )
        yield Row(str(r + 1), str(kind.value), (pictures[0], pictures[1], pictures[2]), left + right)


def _terms(factor: Factor, r: int) -> Sequence[Term]:
    """The (flat index, coefficient) pairs of product r; whole numbers stay ints, which are ten times faster."""
    return factor.terms(r) if factor.denominator == 1 and not factor.gaussian else factor.coefficients(r)


def _picture(terms: Sequence[Term], factor: Factor, letter: str, wide: bool) -> str:
    """The nonzeros of one factor of one product: solid for +, hollow for -, other sizes in figures."""
    marks = []
    for index, value in terms:
        row, col = divmod(index, factor.cols)
        name = f"{letter}{row + 1},{col + 1}" if wide else f"{letter}{row + 1}{col + 1}"
        x, y = col * CELL, row * CELL
        title = f"<title>{name}: {value if _negative(value) else f'+{value}'}</title>"
        if _negative(value):
            marks.append(f'<rect class="n" x="{x + 2}" y="{y + 2}" width="6" height="6">{title}</rect>')
        else:
            marks.append(f'<rect class="p" x="{x + 1}" y="{y + 1}" width="8" height="8">{title}</rect>')
        size = str(value).removeprefix("-")
        if size != "1" and len(size) <= 3:
            ink = "tn" if _negative(value) else "tp"
            marks.append(f'<text class="{ink}" x="{x + 5}" y="{y + 5}">{size}</text>')
    return "".join(marks)


def _outputs(scheme: Scheme) -> Iterable[str]:
    """The equation of every block of C that is computed, in row order, as far as the page can hold them."""
    wide, w = max(scheme.target.shape) > 9, scheme.w
    left = OUTPUTS_BYTES
    for index in np.unique(w.indices).tolist():
        places = np.flatnonzero(w.indices == index).tolist()
        left -= 28 * len(places) + 40
        if left < 0:
            return
        terms = [(f"m<sub>{w.product[place] + 1}</sub>", _coefficient(w, place)) for place in places]
        yield f"{_block('c', index, w.cols, wide)} = {_sum(terms)}"


def _coefficient(factor: Factor, place: int) -> Number:
    """The coefficient at a place of `values`, denominator worked in."""
    if factor.denominator == 1 and not factor.gaussian:
        return int(factor.values[place])
    parts = [Fraction(int(part), factor.denominator) for part in factor.values[place].ravel()]
    return parts[0] if len(parts) == 1 else Gaussian(parts[0], parts[1])


def _block(letter: str, index: int, cols: int, wide: bool) -> str:
    row, col = divmod(index, cols)
    return f"{letter}<sub>{row + 1},{col + 1}</sub>" if wide else f"{letter}<sub>{row + 1}{col + 1}</sub>"


def _sum(terms: Sequence[tuple[str, Number]]) -> str:
    """A linear form in HTML, with real minus signs."""
    text = ""
    for name, value in terms:
        negative = _negative(value)
        sign = "\u2212" if negative else "+" if text else ""
        size = str(value).removeprefix("-") if not _mixed(value) else f"({value})".replace("-", "\u2212")
        text += f" {sign} " if text else sign
        text += name if size == "1" else f"{size} {name}"
    return text or "0"


def _negative(value: Number) -> bool:
    """Return whether a coefficient is shown with a minus in front; mixed complex ones keep theirs inside."""
    if isinstance(value, Gaussian):
        return not _mixed(value) and (value.real or value.imag) < 0
    return value < 0


def _mixed(value: Number) -> bool:
    return isinstance(value, Gaussian) and bool(value.real) and bool(value.imag)
