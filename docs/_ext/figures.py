"""Compare the figures that pages quote with the rows of docs/results that they come from.

A comment below a paragraph or a table names the rows, which readers of the built page do not see:

    Strassen's scheme was 1.12 times as fast at 2048.
    <!-- rows cpu-cpu
    1.12 = float32 2048 2T: ratio
    -->

    | product | ratio |
    | --- | --- |
    | 2048 | 1.12 |
    <!-- rows cpu-cpu
    ratio = float32 {product} 2T: ratio
    -->

On the left stands a figure of the paragraph; below a table a column, the first cell of a row, or `COLUMN @ ROW`. On the
right stand the key of a row, a colon, and a field. Further numbers of the same cell follow, those of the same row after
semicolons, those of others after ` & `. Keys know no case; `{product}` is the cell below that heading, `{column}` the
heading of the cell itself. A key with `*`, or keys with ` | ` between them, name several rows, of which `geomean`,
`mean`, `median`, `min`, `max` or `count` makes one figure; `KEY: FIELD if FIELD >= 1` selects among them (`<=`, `~` of
a pattern, or a field that is true). Fields are dotted paths (the least of several, where a part has a `*`), or two of
them divided by ` / `; a number is a field too.

Every figure with two or more decimals needs a row. Where there is none, `<!-- no rows: REASON -->` below the block, or
below a heading for its whole section, says where the figure comes from.

python docs/_ext/figures.py README.md docs
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"

AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "geomean": statistics.geometric_mean,
    "mean": statistics.mean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "count": len,
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": lambda found, wanted: found >= float(wanted),
    "<=": lambda found, wanted: found <= float(wanted),
    "~": fnmatchcase,
}

LITERAL = re.compile(r"(?<![\w.,])-?\d+(?:\.\d+)?(?:e-?\d+)?%?(?![\w]|[.,]\d)")
"""A number on its own: no part of a size (4096x4096), a version (3.11.7) or a name (H100)."""

DECIMALS = re.compile(
    r"(?<![\w.^-])(?<!arXiv )(?<!torch )(?<!Python )(?<!numpy )(?<!version )(?<!section )"
    r"\d+\.\d\d+(?:e-?\d+)?(?![\w]|\.\d)"
)
"""Figures that need a row: two or more decimals, no number of a paper, a version or a section."""

COMMENT = re.compile(r"<!-- (no rows: |rows )(.*?)-->", re.S)
CODE = re.compile(r"`[^`\n]*`|\]\([^)]*\)")


class SourceError(ValueError):
    """A line of a comment that names no row, or no field."""


@dataclass
class Block:
    """A paragraph, list or table: its text, its first line in the page, and what the comments below say of it."""

    text: str
    line: int
    sources: list[tuple[str, str, str]] = field(default_factory=list)
    excused: bool = False

    @property
    def table(self) -> list[list[str]]:
        """The rows of a table, the headings first; empty of other blocks."""
        lines = self.text.splitlines()
        if len(lines) < 2 or not re.fullmatch(r"[|\s:-]+", lines[1]):
            return []
        return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in (lines[0], *lines[2:])]


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a page outside code, each with its comments.

    Raises:
        SourceError: a line of a comment is not `FIGURE = KEY: FIELD`.
    """
    code = r"^(```|~~~).*?^\1[^\n]*$|(?<=\n)\n(?: {4}[^\n]*\n)+"
    text = re.sub(code, lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M)
    block: Block | None = None
    excused_below = 7  # the level of the heading whose whole section has no rows
    for found in re.finditer(r"<!--.*?-->|(?:[ \t]*(?!<!--)\S[^\n]*(?:\n|\Z))+", text, re.S):
        line = 1 + text.count("\n", 0, found.start())
        part = found[0]
        comment = COMMENT.fullmatch(part)
        if not part.startswith("<!--"):
            heading = re.match(r"(#+) ", part)
            if heading and len(heading[1]) <= excused_below:
                excused_below = 7
            if block:
                yield block
            block = Block(part, line, excused=excused_below < 7)
        elif comment and block:
            if comment[1] == "no rows: ":
                block.excused = True
                if heading := re.match(r"(#+) ", block.text):
                    excused_below = len(heading[1])
            else:
                name, *lines = comment[2].strip().splitlines()
                for one in filter(None, map(str.strip, lines)):
                    left, equals, right = one.partition(" = ")
                    if not equals:
                        raise SourceError(f"line {line}: {one!r} is not FIGURE = KEY: FIELD")
                    block.sources.append((left.strip(), name, right.strip()))
    if block:
        yield block


@cache
def rows_of(name: str) -> dict[str, dict[str, Any]]:
    """The figures of the newest row of every key.

    Raises:
        SourceError: there is no such file.
    """
    path = RESULTS / f"{name}.jsonl"
    if not path.is_file():
        raise SourceError(f"docs/results/{name}.jsonl does not exist")
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row["figures"] for row in rows}


def value_of(name: str, right: str) -> list[float]:
    """The values that the right side of a line names: one for each field.

    Raises:
        SourceError: no row has the key, or a row lacks the field.
    """
    if " & " in right:
        return [value for part in right.split(" & ") for value in value_of(name, part)]
    source, colon, fields = right.rpartition(": ")
    if not colon:
        raise SourceError(f"{right!r} is not KEY: FIELD")
    first, _, rest = source.partition(" ")
    aggregate, key = (AGGREGATES[first], rest) if first in AGGREGATES else (None, source)
    fields, _, condition = fields.partition(" if ")
    patterns = key.lower().replace("[", "[[]").split(" | ")
    rows = [row for each, row in rows_of(name).items() if any(fnmatchcase(each.lower(), one) for one in patterns)]
    rows = [row for row in rows if not condition or _holds(row, condition)]
    if not rows:
        raise SourceError(f"{name}.jsonl has no row {key!r}" + (f" with {condition}" if condition else ""))
    if len(rows) > 1 and aggregate is None:
        raise SourceError(f"{name}.jsonl has {len(rows)} rows {key!r}; say which of {', '.join(AGGREGATES)}")
    values = [[_field(row, path.strip()) for row in rows] for path in fields.split(";")]
    return [float((aggregate or (lambda found: found[0]))(found)) for found in values]


def _holds(row: Any, condition: str) -> bool:
    path, *rest = condition.rsplit(" ", 2)
    if not rest:
        return bool(_field(row, path))
    return COMPARE[rest[0]](_field(row, path), rest[1])


def _field(row: Any, path: str) -> float:
    if " / " in path:
        above, _, below = path.rpartition(" / ")
        return _field(row, above) / _field(row, below)
    if re.fullmatch(r"\d+(\.\d+)?", path):
        return float(path)
    found = row
    for part in path.split("."):
        try:
            if "*" in part:
                found = min(value for key, value in found.items() if fnmatchcase(key, part))
            else:
                found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise SourceError(f"a row has no field {path!r}, only {', '.join(map(str, row))}") from None
    return found


def same(literal: str, value: float) -> bool:
    """Return whether a figure as it is written is the value, rounded to as many digits."""
    percent = literal.endswith("%")
    number = literal.rstrip("%")
    mantissa, exponent, _ = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    value = 100 * value if percent else value
    if exponent:
        return f"{value:.{decimals}e}" == f"{float(number):.{decimals}e}"
    # Half a unit of the last digit, and what decimal halves lose in binary.
    return math.isclose(float(number), value, rel_tol=0, abs_tol=0.5000001 * 10**-decimals)


def problems(path: Path, shown: str) -> list[str]:
    """What is wrong with the figures of a page: `PAGE:LINE: ...`."""
    found: list[str] = []
    try:
        blocks = list(blocks_of(path.read_text(encoding="utf-8")))
    except SourceError as error:
        return [f"{shown}: {error}"]
    for block in blocks:
        check = _check_table if block.table else _check_text
        try:
            found += [f"{shown}:{block.line}: {message}" for message in check(block)]
        except SourceError as error:
            found.append(f"{shown}:{block.line}: {error}")
    return found


def _check_text(block: Block) -> Iterator[str]:
    text = " ".join(block.text.split())
    written = LITERAL.findall(CODE.sub(" ", text)) + [one.rstrip("%") for one in LITERAL.findall(text)]
    for left, name, right in block.sources:
        figure = left.split()[0]
        (value,) = value_of(name, right)
        if figure not in written:
            yield f"the comment says {left}, the text does not"
        elif not same(figure, value):
            yield f"{left} is {value:.5g} in docs/results/{name}.jsonl ({right})"
    known = {left.split()[0].rstrip("%") for left, _, _ in block.sources}
    if not block.excused:
        yield from _unknown(figure for figure in DECIMALS.findall(CODE.sub(" ", text)) if figure not in known)


def _check_table(block: Block) -> Iterator[str]:
    headings, *rows = block.table
    covered: set[tuple[int, int]] = set()
    for left, name, right in block.sources:
        cells = [
            (line, column)
            for line, row in enumerate(rows)
            for column in range(len(row))
            if column < len(headings)
            and left in (headings[column], row[0], f"{headings[column]} @ {row[0]}")
            and (column or left == headings[0])
        ]
        if not cells:
            yield f"the table has no column and no row {left!r}"
        for line, column in cells:
            row = rows[line]
            if not (figures := LITERAL.findall(CODE.sub(" ", row[column]))) or (line, column) in covered:
                continue
            covered.add((line, column))
            names = {"column": headings[column], **dict(zip(headings, row, strict=False))}
            wanted = re.sub(r"\{(.*?)\}", lambda found, names=names: _plain(names[found[1]]), right)
            values = value_of(name, wanted)
            figures = figures[: len(values)]
            if len(figures) < len(values) or not all(map(same, figures, values)):
                shown = ", ".join(f"{value:.5g}" for value in values)
                yield f"{row[0]}, {headings[column]}: {row[column]} is {shown} in docs/results/{name}.jsonl ({wanted})"
    if not block.excused:
        for line, row in enumerate(rows):
            yield from _unknown(
                figure
                for column, cell in enumerate(row[1:], 1)
                if (line, column) not in covered
                for figure in DECIMALS.findall(CODE.sub(" ", cell))
            )


def _unknown(figures: Iterator[str]) -> Iterator[str]:
    if listed := list(figures):
        yield f"no row is named for {', '.join(listed)}"


def _plain(cell: str) -> str:
    """A cell as keys write it: `4096x4096` of `4096 x 4096`, without backticks."""
    return re.sub(r"(?<=\d) x (?=\d)", "x", cell.replace("`", ""))


def pages(root: Path) -> list[Path]:
    """The README and all pages of docs but those that a command writes."""
    docs = root / "docs"
    found = (path for path in sorted(docs.rglob("*.md")) if not {"_build", "generated"} & set(path.parts))
    written = (path for path in found if "page is written by `lcma report" not in path.read_text(encoding="utf-8"))
    return [root / "README.md", *written]


if __name__ == "__main__":
    root = RESULTS.parents[1]
    wrong = [one for path in pages(root) for one in problems(path, str(path.relative_to(root)))]
    print("\n".join(wrong) or "every figure is that of its row")
    sys.exit(bool(wrong))
