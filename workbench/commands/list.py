"""`lcma list`"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import click

from ...errors import did_you_mean
from ...schemes_db import Target, costs, parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ..help import lcma_command
from ..options import TARGET, Meaning, argument, option
from ..output import print_csv, print_json, print_table, readers, wants_json
from ..scheme_record import SchemeRecord

_READ: dict[str, Callable[[SchemeRecord], Any]] = {
    "coefficients": lambda row: ", ".join(map(str, row.scheme.coefficients)),
    "exponent": lambda row: costs.exponent(row.scheme),
    "gap": lambda row: None if row.known is None else row.entry.rank - row.known.rank,
    "known": lambda row: row.known and row.known.rank,
    "largest": lambda row: max(abs(factor.values).max() / factor.denominator for factor in row.scheme.factors),
    "one-level": lambda row: float(costs.one_level_cost(row.scheme)),
    "proof": lambda row: ", ".join(row.certificate.methods),
    "recursive": lambda row: costs.recursive_cost(row.scheme),
}

FIELDS = dict(sorted((_READ | readers("fields")).items()))
"""What a filter may name: figures, texts, and `ternary`, which is true or false."""

TEXTS = ("coefficients", "command", "digest", "kind", "name", "origin", "proof", "ring", "source", "target")

PARSED: dict[str, Callable[[str], str]] = {
    "ring": lambda text: parse_ring(text).name,
    "target": lambda text: parse_target(text).name,
}
"""Texts that are written in several ways, or mean nothing."""

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "~": lambda text, part: part.lower() in text.lower(),
}
_FILTER = re.compile(r"\s*([a-z-]+)\s*(?:(<=|>=|!=|=|<|>|~)\s*(.*?)\s*)?", re.S)


def filter_of(text: str) -> Callable[[SchemeRecord], bool]:
    """The filter that FIELD OPERATOR VALUE describes, or a FIELD that is true."""
    found = _FILTER.fullmatch(text)
    if not found:
        raise click.BadParameter(f"{text!r} is no filter; write FIELD<=VALUE, such as rank<=23 or origin=user")
    name, sign, value = found.groups()
    if name not in FIELDS:
        hint = did_you_mean(name, FIELDS) or f"; the fields are {', '.join(FIELDS)}"
        raise click.BadParameter(f"a scheme has no {name!r}{hint}")
    compare = OPERATORS[sign or "="]
    wanted: str | float = value or ""
    if name == "ternary" or sign is None:
        wanted = value not in ("no", "false", "0")
    elif name not in TEXTS:
        try:
            wanted = float(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number, and {name} is one") from None
        if sign == "~":
            raise click.BadParameter(f"{name} is a number; ~ looks for a part of a text")
    elif sign in ("=", "!=") and name in PARSED:
        wanted = PARSED[name](value)
    read = (lambda row: bool(FIELDS[name](row))) if isinstance(wanted, bool) else FIELDS[name]
    return lambda row: (own := read(row)) is not None and compare(own, wanted)


FILTER = Meaning("filter", filter_of)


_COLUMNS = ("name", "target", "ring", "rank", "best known", "full", "half", "additions", "shared", "origin", "digest")
_RECORD_COLUMNS = (*_COLUMNS[1:5], "gap", *_COLUMNS[5:7], "fewest additions", "schemes", "digest")

_BEST_FIRST = attrgetter("entry.rank", "entry.full_products", "entry.additions", "entry.digest")


@lcma_command
def command(
    *,
    target: Target | None = argument("[TARGET]", type=TARGET),
    filters: tuple[Callable[[SchemeRecord], bool], ...] = option(
        "--where",
        metavar="FILTER",
        type=FILTER,
        help="Only schemes of which this holds, such as 'rank<=23', ternary, ring=Z2, origin=user or name~sparse "
        f"(again for another). Fields: {', '.join(FIELDS)}. Operators: {' '.join(OPERATORS)}, ~ for a part of a text.",
    ),
    records: bool = option(),
    as_csv: bool = option("--csv"),
) -> None:
    with Catalog.open() as catalog:
        every = (SchemeRecord(entry, catalog) for entry in catalog.entries(target.name if target else None))
        schemes = [one for one in every if all(holds(one) for holds in filters)]
        listed = _records(schemes) if records else [_row(_COLUMNS, one, name=one.entry.name or "-") for one in schemes]
    if not schemes:
        click.echo("lcma: no scheme of the catalogue fits; `lcma search TARGET` looks for one", err=True)
    columns, rows = _RECORD_COLUMNS if records else _COLUMNS, [tuple(row.values()) for row in listed]
    if wants_json():
        print_json(listed if records else [asdict(one.entry) for one in schemes])
    elif as_csv:
        print_csv(columns, rows)
    else:
        shown = [tuple(_brief(*pair) for pair in row.items()) for row in listed]
        print_table(columns, shown, stay=("rank", "target", "digest", "ring", "best known", "gap", "additions"))


def _brief(column: str, cell: object) -> object:
    """The text of a cell in a printed table: the start of a digest, a shortened name of a map."""
    if column == "digest":
        return str(cell)[:12]
    return str(parse_target(str(cell))) if column == "target" else cell


def _row(columns: Sequence[str], row: SchemeRecord, **others: object) -> dict[str, object]:
    """The columns of a scheme by name: its fields as filters name them, and others."""
    fields = {**FIELDS, "best known": FIELDS["known"]}
    return {name: others[key] if (key := name.split()[-1]) in others else fields[name](row) for name in columns}


def _records(schemes: Sequence[SchemeRecord]) -> list[dict[str, object]]:
    """The best scheme of every target and ring: lowest rank, then fewest full products, then fewest additions."""
    groups: dict[tuple[str, str], list[SchemeRecord]] = {}
    for one in schemes:
        groups.setdefault((one.entry.target, one.entry.ring), []).append(one)
    rows = []
    for group in groups.values():
        best = min(group, key=_BEST_FIRST)
        fewest = min(one.entry.additions for one in group if one.entry.rank == best.entry.rank)
        rows.append(_row(_RECORD_COLUMNS, best, additions=fewest, schemes=len(group)))
    return rows
