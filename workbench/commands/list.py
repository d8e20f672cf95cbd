"""`lcma list`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from ...schemes_db import parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.pareto import CatalogueRow
from ...schemes_db.ranks import best_known
from ..help import Command
from ..options import Choice
from ..output import print_csv, print_json, print_table

_COLUMNS = (
    "name",
    "target",
    "ring",
    "rank",
    "best known",
    "full",
    "half",
    "additions",
    "shared",
    "origin",
    "digest",
)
_RECORD_COLUMNS = (
    "target",
    "ring",
    "rank",
    "best known",
    "gap",
    "full",
    "half",
    "fewest additions",
    "schemes",
    "digest",
)


@click.command("list", cls=Command)
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--target", "same_target", metavar="TARGET", help="Only this target, such as 3x3x3 or 4x4x4:tri-out.")
@click.option("--ring", metavar="RING", help="Only this ring.")
@click.option("--max-rank", type=int, help="Only schemes of at most this rank.")
@click.option("--origin", type=Choice(["shipped", "user"]), help="Only shipped schemes, or only the user's own.")
@click.option("--ternary", is_flag=True, help="Only schemes with coefficients in {-1, 0, 1}.")
@click.option(
    "--records", is_flag=True, help="One row a target and ring: the lowest rank, and its gap to the best known."
)
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
@click.option("--csv", "as_csv", is_flag=True, help="CSV.")
def command(
    target: str | None,
    same_target: str | None,
    ring: str | None,
    max_rank: int | None,
    origin: str | None,
    ternary: bool,
    records: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the schemes of the catalogue."""
    if target and same_target and target != same_target:
        raise click.UsageError(f"TARGET is {target} and --target is {same_target}; give one of them")
    target = target or same_target
    wanted_target = parse_target(target).name if target else None
    wanted_ring = parse_ring(ring).name if ring else None
    with Catalog.open() as catalog:
        entries = catalog.entries(wanted_target, wanted_ring, max_rank, origin)
    if ternary:
        entries = [entry for entry in entries if entry.ternary]
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
    return (
        entry.name or "-",
        entry.target,
        entry.ring,
        entry.rank,
        _known_rank(entry),
        entry.full_products,
        entry.half_products,
        entry.additions,
        entry.additions_cse,
        entry.origin,
        entry.digest,
    )


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
