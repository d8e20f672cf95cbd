"""`lcma list`"""

from __future__ import annotations

from dataclasses import asdict

import click

from ...schemes_db import parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.ranks import best_known
from ..output import print_csv, print_json, print_table

_COLUMNS = ("name", "target", "ring", "rank", "best known", "full", "half", "additions", "shared", "origin", "digest")


@click.command("list")
@click.option("--target", metavar="TARGET", help="Only this target, such as 3x3x3 or 4x4x4:tri-out.")
@click.option("--ring", metavar="RING", help="Only this ring.")
@click.option("--max-rank", type=int, help="Only schemes of at most this rank.")
@click.option("--origin", type=click.Choice(["shipped", "user"]), help="Only shipped schemes, or only the user's own.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
@click.option("--csv", "as_csv", is_flag=True, help="CSV.")
def command(
    target: str | None, ring: str | None, max_rank: int | None, origin: str | None, as_json: bool, as_csv: bool
) -> None:
    """List the schemes of the catalogue."""
    wanted_target = parse_target(target).name if target else None
    wanted_ring = parse_ring(ring).name if ring else None
    with Catalog.open() as catalog:
        entries = catalog.entries(wanted_target, wanted_ring, max_rank, origin)
    if as_json:
        print_json([asdict(entry) for entry in entries])
        return
    rows = []
    for entry in entries:
        known = best_known(parse_target(entry.target), parse_ring(entry.ring))
        rows.append(
            (
                entry.name or "-",
                entry.target,
                entry.ring,
                entry.rank,
                known.rank if known else None,
                entry.full_products,
                entry.half_products,
                entry.additions,
                entry.additions_cse,
                entry.origin,
                entry.digest if as_csv else entry.digest[:12],
            )
        )
    (print_csv if as_csv else print_table)(_COLUMNS, rows)
