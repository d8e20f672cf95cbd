"""Products as equations and pictures, in HTML and SVG made of digits and letters of our own alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

import numpy as np

from .factor import Factor
from .gaussian import Gaussian
from .grids import Kind
from .target import Target

PRODUCTS_BYTES = 110_000
OUTPUTS_BYTES = 50_000
"""Limits of the part of a large scheme that a page shows."""

NOTEBOOK_ROWS = 50
"""The most products, and the most blocks of C, that a notebook shows."""

CELL = 10
"""Side of a block in a picture, in SVG units."""

Number = int | Fraction | Gaussian

Term = tuple[int, Number]

Factors = tuple[Factor, Factor, Factor]


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


def draw(target: Target, factors: Factors, kinds: Sequence[str] = ()) -> Drawing:
    """The pictures and equations of a scheme, cut where they would make the page too large.

    `kinds` are those of its products, where they are known.
    """
    grids, boxes = [], []
    for grid in target.kind_arrays:
        grids.append(_grid(grid.tolist()))
        boxes.append(f"0 0 {grid.shape[1] * CELL} {grid.shape[0] * CELL}")
    side = min(17, max(3, 84 // max(target.shape)))
    wide = max(target.shape) > 9
    return Drawing(
        (grids[0], grids[1], grids[2]),
        (boxes[0], boxes[1], boxes[2]),
        side,
        tuple(_rows(factors, kinds, wide)),
        tuple(_outputs(factors[2], wide)),
        len(np.unique(factors[2].indices)),
    )


STYLE = (
    "<style>.lcma-scheme .grid{fill:#eee;stroke:#aaa;stroke-width:.7}.lcma-scheme .p{fill:#0b5f66}"
    ".lcma-scheme .n{fill:none;stroke:#c2410c;stroke-width:2.4}.lcma-scheme .tp{fill:#fff}"
    ".lcma-scheme text{font:600 5px sans-serif;text-anchor:middle;dominant-baseline:central}</style>"
)


def picture(title: str, target: Target, factors: Factors) -> str:
    """A scheme in HTML, for a notebook: a table of the first products, then the blocks of C."""
    drawing = draw(target, factors)
    rows = []
    for row in drawing.rows[:NOTEBOOK_ROWS]:
        cells = ""
        for box, grid, marks in zip(drawing.boxes, drawing.grids, row.pictures, strict=True):
            width, height = (int(side) * drawing.side // CELL for side in box.split()[2:])
            svg = f'<svg viewBox="{box}" width="{width}" height="{height}"><path class="grid" d="{grid}"></path>'
            cells += f"<td>{svg}{marks}</svg></td>"
        rows.append(f"<tr><td>m<sub>{row.label}</sub></td>{cells}<td>{row.equation}</td></tr>")
    outputs = drawing.outputs[:NOTEBOOK_ROWS]
    cut = [f"{len(rows)} of {factors[0].rank} products"] if len(rows) < factors[0].rank else []
    cut += [f"{len(outputs)} of {drawing.blocks} blocks of C"] if len(outputs) < drawing.blocks else []
    head = "<tr><th></th><th>U</th><th>V</th><th>W</th><th>solid: plus, hollow: minus</th></tr>"
    body = f"<table>{head}{''.join(rows)}</table><p>{'<br>'.join(outputs)}</p>"
    more = f"<p>Shown are {' and '.join(cut)}.</p>" if cut else ""
    return f'<div class="lcma-scheme">{STYLE}<p>{escape(title)}</p>{body}{more}</div>'


def _grid(kinds: Sequence[Sequence[int]]) -> str:
    """The blocks of one operand: squares, triangles for half blocks, nothing for absent ones."""
    paths = {Kind.FULL: "h{0}v{0}h-{0}z", Kind.LOWER: "l{0} {0}h-{0}z", Kind.UPPER: "h{0}v{0}z"}
    return "".join(
        f"M{j * CELL} {i * CELL}{paths[Kind(kind)].format(CELL)}"
        for i, row in enumerate(kinds)
        for j, kind in enumerate(row)
        if kind != Kind.ABSENT
    )


def _rows(factors: Factors, kinds: Sequence[str], wide: bool) -> Iterable[Row]:
    used = 0
    for r in range(factors[0].rank):
        terms = [_terms(factor, r) for factor in factors]
        used += 130 * sum(map(len, terms)) + 900
        if used > PRODUCTS_BYTES:
            return
        pictures = [
            _picture(part, factor, letter, wide) for part, factor, letter in zip(terms, factors, "abc", strict=True)
        ]
        left, right = (
            f"({_sum([(_block(letter, index, factor.cols, wide), value) for index, value in part])})"
            for letter, factor, part in zip("ab", factors[:2], terms[:2], strict=True)
        )
        yield Row(str(r + 1), kinds[r] if kinds else "", (pictures[0], pictures[1], pictures[2]), left + right)


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


def _outputs(w: Factor, wide: bool) -> Iterable[str]:
    """The equation of every block of C that is computed, in row order, as far as the page can hold them."""
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
