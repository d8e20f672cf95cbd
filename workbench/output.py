"""Output on stdout: tables for people, JSON and CSV for scripts."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from operator import attrgetter
from typing import Any

import click

from ..schemes_db import Scheme
from ..schemes_db.names import visible

MAX_NAMES = 4
"""Named numbers that one cell lists."""

GAP = 2
"""Blanks between the columns of a table."""

LEAST = 20
"""Characters of a sentence that a table leaves at least."""

NUMBER = re.compile(r"([-+]?\d[\d.,]*(e[-+]?\d+)?( ms| s|%)?)?")
"""The text of a cell that stands to the right."""

JSON, WIDE = "lcma.json", "lcma.wide"
"""The keys of --json and --wide in the context of a command line."""


def print_json(data: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(data, indent=2))


def given(key: str) -> bool:
    """Return whether the command line has an option that may stand anywhere, by its key in the context."""
    return bool(getattr(click.get_current_context(silent=True), "meta", {}).get(key))


def wants_json() -> bool:
    """Return whether the command line has --json."""
    return given(JSON)


def answer(data: Any, text: str | Callable[[], object]) -> None:
    """The result of a command: `data` with --json, else a text, or what a call prints."""
    if wants_json():
        print_json(data)
    elif isinstance(text, str):
        click.echo(text)
    else:
        text()


def answer_table(columns: Sequence[str], rows: Sequence[Sequence[object]], **settings: Any) -> bool:
    """The rows as objects of JSON with --json, which returns True, else as a table; `settings` as `print_table`."""
    answer([dict(zip(columns, row, strict=True)) for row in rows], lambda: print_table(columns, rows, **settings))
    return wants_json()


def figure(value: float | None, form: str) -> str:
    """The text of a number in a table by a format; nothing for None."""
    return "" if value is None else format(value, form)


def tell(steps: Iterable[tuple[str, dict[str, Any]]]) -> int:
    """Print the lines of steps as they come, or all their facts as JSON; 1 where a fact is that it is not correct."""
    facts: dict[str, Any] = {}
    for line, more in steps:
        facts |= more
        if not wants_json():
            click.echo(line)
    if wants_json():
        print_json(facts)
    return int(not facts.get("correct", True))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], stay: Sequence[str] = (), prose: Sequence[str] = ()
) -> None:
    """A table on stdout, one line a row; numbers to the right.

    At a terminal that is too narrow, empty columns leave, then others from the right; of `stay`, the most important
    first, only when nothing else is left, and the first column never. The columns of `prose` hold sentences, which may
    be cut. No other cell is cut or folded. With --wide, or off a terminal, everything is shown.
    """
    table = [list(columns), *(["" if cell is None else visible(str(cell)) for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    shown = list(range(len(columns)))
    if sys.stdout.isatty() and not given(WIDE):
        room = shutil.get_terminal_size().columns
        full = widths
        widths = [min(width, LEAST) if name in prose else width for name, width in zip(columns, full, strict=True)]

        def importance(place: int) -> tuple[bool, int]:
            empty = not any(row[place] for row in table[1:])
            return empty, stay.index(columns[place]) - len(stay) if columns[place] in stay else place

        leaving = sorted(shown[1:], key=importance)
        while leaving and sum(widths[place] + GAP for place in shown) - GAP > room:
            shown.remove(leaving.pop())
        for place in shown:
            spare = room + GAP - sum(widths[one] + GAP for one in shown)
            widths[place] = min(full[place], widths[place] + max(0, spare))
    numeric = [all(NUMBER.fullmatch(row[place]) for row in table[1:]) for place in range(len(columns))]
    for number, row in enumerate(table):
        cells = []
        for place in shown:
            text, width = row[place], widths[place]
            text = text if len(text) <= width else f"{text[: width - 1]}\u2026"
            cells.append(text.rjust(width) if numeric[place] else text.ljust(width))
        click.echo((" " * GAP).join(cells).rstrip())
        if not number:
            click.echo((" " * GAP).join("\u2500" * widths[place] for place in shown))
    if hidden := [
        name for place, name in enumerate(columns) if place not in shown and any(row[place] for row in table[1:])
    ]:
        click.echo(f"left out, shown by --wide: {', '.join(hidden)}", err=True)


def cell(value: Any) -> str:
    """The text of a figure in a table: numbers to 4 digits, the ends of a range, some named numbers, else how many."""
    if isinstance(value, float):
        return f"{value:.4g}"
    numbers = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    if numbers is None:
        return "" if value is None else str(value)
    if all(isinstance(one, int | float) for one in numbers):
        if isinstance(value, dict) and len(value) <= MAX_NAMES:
            return ", ".join(f"{name} {one:.4g}" for name, one in value.items())
        if not isinstance(value, dict) and len(value) == 2:
            return " to ".join(f"{one:.4g}" for one in value)
    return f"{len(value)} values"


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown; None is an empty cell."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = (["" if cell is None else str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def titled(table: str, rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown under the titles of `columns_of`."""
    return markdown_table([one["title"] for one in columns_of(table)], rows)


def data_rows(name: str, package: str = __package__) -> list[dict[str, str]]:
    """The rows of data/NAME.csv of a package."""
    text = (resources.files(package) / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def template(name: str) -> str:
    """The text of templates/NAME.md."""
    return (resources.files(__package__) / "templates" / f"{name}.md").read_text(encoding="utf-8")


def page(name: str, **parts: object) -> str:
    """A page of Markdown: the template of this name with tables and figures in its places; a part may be empty."""
    return re.sub(r"\n{3,}", "\n\n", template(name).format(**parts))


def sections(name: str) -> dict[str, str]:
    """The texts of templates/NAME.md by their headings."""
    _, *parts = re.split(r"^## (.+)\n", template(name), flags=re.M)
    return {heading: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)}


UNITS: dict[str, Callable[[Any], Any]] = {
    "": lambda value: value,
    "ms": lambda seconds: 1e3 * seconds,
    "MB": lambda count: count / 1e6,
    "round": lambda seconds: round(seconds, 2),
}
"""Units of columns, and what is said in them of a figure, or of both ends of a range."""

WHOLE: dict[str, Callable[[Any], Any]] = {"count": len, "sum": lambda parts: sum(parts.values()), "list": ",".join}
"""The same of a figure with several parts."""


def columns_of(table: str) -> list[dict[str, str]]:
    """The columns of a table, as data/columns.csv lists them: titles, the paths of their figures in a row, and forms.

    A form is a unit (UNITS, WHOLE) or nothing, a format of numbers, and what follows them, with colons between, as in
    "ms:.3f: ms". At a terminal that is too narrow, columns with a number in `stay` are the last to leave, 1 the very
    last; those of `prose` hold sentences.
    """
    return [one for one in data_rows("columns") if one["table"] == table]


def readers(table: str) -> dict[str, Callable[[Any], Any]]:
    """What reads each column of a table off an object, by title: there the paths are those of attributes."""
    return {one["title"]: attrgetter(one["figure"]) for one in columns_of(table)}


def form_text(value: Any, form: str) -> Any:
    """The text of a figure, or of the two ends of a range, in a form; the figure itself where there is none."""
    if value is None or not form:
        return value
    unit, spec, end = [*form.split(":"), "", ""][:3]
    if unit in WHOLE:
        return WHOLE[unit](value)
    ends = value if isinstance(value, list | tuple) else [value]
    return " - ".join(format(UNITS[unit](one), spec) for one in ends) + end


def figure_at(row: Mapping[str, Any], path: str) -> Any:
    """The figure of a row at a path with dots; None where there is none."""
    found: Any = row
    for name in path.split("."):
        found = found and found.get(name)
    return found


def print_figures(table: str, rows: Sequence[Mapping[str, Any]], **words: str) -> None:
    """Print rows of figures as a table of `columns_of`; a column that no row has is left out.

    `words` fill the places in titles.
    """
    columns = [one for one in columns_of(table) if not rows or any(one["figure"].split(".")[0] in row for row in rows)]
    titles = [one["title"].format(**words) for one in columns]
    cells = [[form_text(figure_at(row, one["figure"]), one["form"]) for one in columns] for row in rows]
    staying = sorted((int(one["stay"]), title) for one, title in zip(columns, titles, strict=True) if one["stay"])
    prose = [title for one, title in zip(columns, titles, strict=True) if one["prose"]]
    print_table(titles, cells, stay=[title for _, title in staying], prose=prose)


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The same rows as CSV on stdout."""
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows([visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def scheme_facts(scheme: Scheme) -> dict[str, Any]:
    """What JSON says of a scheme in a list."""
    return {"digest": scheme.digest, "target": scheme.target.name, "ring": scheme.ring.name, "rank": scheme.rank}


def ratio(value: Fraction) -> str:
    """A cost as a fraction with its decimal: 29/64 = 0.4531."""
    return f"{value} = {float(value):.4f}"
