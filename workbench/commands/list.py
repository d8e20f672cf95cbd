"""`lcma list`"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import click

from ...schemes_db import parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.pareto import CatalogueRow
from ...schemes_db.ranks import best_known
from ..catalogue_filter import FIELDS, OPERATORS, Filter, FilteredRow, selected
from ..help import lcma_command
from ..output import print_csv, print_json, print_table

_COLUMNS = ("name", "target", "ring", "rank", "best known", "full", "half", "additions", "shared", "origin", "digest")
_RANK_COLUMNS = ("target", "ring", "rank", "best known", "gap")
_RECORD_COLUMNS = (*_RANK_COLUMNS, "full", "half", "fewest additions", "schemes", "digest")


@lcma_command("list", json="the rows")
@click.argument("target", metavar="[TARGET]", required=False)
@click.option(
    "--where",
    "filters",
    metavar="FILTER",
    type=Filter(),
    multiple=True,
    help="Only schemes of which this holds, such as 'rank<=23', ternary, ring=Z2, origin=user or name~sparse "
    f"(again for another). Fields: {', '.join(FIELDS)}. Operators: {' '.join(OPERATORS)}, ~ for a part of a text.",
)
@click.option(
    "--records", is_flag=True, help="One row a target and ring: the lowest rank, and its gap to the best known."
)
@click.option("--csv", "as_csv", is_flag=True, help="CSV.")
def command(
    target: str | None, filters: tuple[Callable[[FilteredRow], bool], ...], records: bool, as_json: bool, as_csv: bool
) -> None:
    """List the schemes of the catalogue."""
    wanted = parse_target(target).name if target else None
    with Catalog.open() as catalog:
        entries = selected(catalog, catalog.entries(wanted), filters)
    if not entries:
        click.echo("lcma: no scheme of the catalogue fits; `lcma search TARGET` looks for one", err=True)
    if as_json and not records:
        print_json([asdict(entry) for entry in entries])
        return
    columns, rows = (_RECORD_COLUMNS, _records(entries)) if records else (_COLUMNS, [_row(entry) for entry in entries])
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif as_csv:
        print_csv(columns, rows)
    else:
        shown = [tuple(_brief(*pair) for pair in zip(columns, row, strict=True)) for row in rows]
        print_table(columns, shown, stay=("rank", "target", "digest", "ring", "best known", "gap", "additions"))


def _brief(column: str, cell: object) -> object:
    """The text of a cell in a printed table: the start of a digest, a shortened name of a map."""
    if column == "digest":
        return str(cell)[:12]
    return str(parse_target(str(cell))) if column == "target" else cell


def _known_rank(entry: CatalogueRow) -> int | None:
    known = best_known(parse_target(entry.target), parse_ring(entry.ring))
    return known.rank if known else None


def _row(entry: CatalogueRow) -> tuple[object, ...]:
    place = (entry.name or "-", entry.target, entry.ring, entry.rank, _known_rank(entry))
    counts = (entry.full_products, entry.half_products, entry.additions, entry.additions_cse)
    return (*place, *counts, entry.origin, entry.digest)


def _records(entries: Sequence[CatalogueRow]) -> list[tuple[object, ...]]:
    """The best entry of every target and ring: lowest rank, then fewest full products, then fewest additions."""
    groups: dict[tuple[str, str], list[CatalogueRow]] = {}
    for entry in entries:
        groups.setdefault((entry.target, entry.ring), []).append(entry)
    rows: list[tuple[object, ...]] = []
    for group in groups.values():
        best = min(group, key=lambda entry: (entry.rank, entry.full_products, entry.additions, entry.digest))
        known = _known_rank(best)
        gap = best.rank - known if known is not None else None
        fewest = min(entry.additions for entry in group if entry.rank == best.rank)
        half = (best.full_products, best.half_products)
        rows.append((best.target, best.ring, best.rank, known, gap, *half, fewest, len(group), best.digest))
    return rows
