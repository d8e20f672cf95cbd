"""`lcma list`"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import attrgetter

import click

from ...schemes_db import Target, parse_target
from ...schemes_db.catalog import Catalog
from ..catalogue_filter import FIELDS, FILTER, OPERATORS
from ..help import lcma_command
from ..options import TARGET, argument, option
from ..output import print_csv, print_json, print_table, wants_json
from ..scheme_record import SchemeRecord

_COLUMNS = ("name", "target", "ring", "rank", "best known", "full", "half", "additions", "shared", "origin", "digest")
_RECORD_COLUMNS = (*_COLUMNS[1:5], "gap", *_COLUMNS[5:7], "fewest additions", "schemes", "digest")

_BEST_FIRST = attrgetter("entry.rank", "entry.full_products", "entry.additions", "entry.digest")


@lcma_command("list", json="the rows")
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
    """List the schemes of the catalogue."""
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
