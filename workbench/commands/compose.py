"""`lcma compose`"""

from __future__ import annotations

from collections.abc import Mapping

import click

from ...errors import TargetError
from ...schemes_db import parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.closure import find_recipes
from ...schemes_db.composition import Part, best_composition
from ...schemes_db.formats import lcma_json
from ...schemes_db.pareto import CatalogueRow
from ...schemes_db.ranks import best_known
from ...schemes_db.recipes import render
from ...schemes_db.shipped import shipped, shipped_names
from ..board import composed
from ..destination import claim, write
from ..help import lcma_command
from ..options import Choice, argument, option
from ..output import answer


@lcma_command
def command(
    *,
    target: str | None = argument("[MxKxN]"),
    everything: bool = option("--all"),
    keep: bool = option("--add"),
    out: str | None = option(metavar="FILE"),
    ring: str = option(type=Choice(["Z", "ZT", "Q", "Z2"], case_sensitive=False), default="Z"),
    explain: bool = option(),
    dry_run: bool = option(),
) -> None:
    if everything == (target is not None):
        raise click.UsageError("give a size, or --all")
    if everything:
        _write_recipes(out)
        return
    wanted = parse_target(str(target))
    if not wanted.is_general:
        raise TargetError(f"compositions are known for general targets only, not {wanted}")
    claim(out)
    with Catalog.open() as catalog:
        part = best_composition(wanted.shape, catalog.best_ranks(ring), ring)
        whose = {entry.digest[:16]: entry for entry in catalog.entries()}
        known = best_known(wanted, parse_ring("Z" if ring == "ZT" else ring), ring == "ZT")
        facts: dict[str, object] = {
            "target": wanted.name,
            "ring": ring,
            "rank": part.rank,
            "best_known_rank": known.rank if known else None,
        }
        if not dry_run:
            scheme, certificate = composed(part, wanted.shape, catalog, ring)
            facts["digest"] = scheme.digest
            if keep:
                facts["added"] = catalog.add(scheme, certificate)
            if out is not None:
                write(out, lcma_json.render(scheme, certificate))
    lines = []
    for line in part.lines if explain else part.lines[:1]:
        entry = whose.get(line.split()[-1])
        owner = "" if entry is None else "shipped as" if entry.origin == "shipped" else "your own"
        lines.append(line if entry is None else f"{line}, {owner} {entry.name}".rstrip())
    gap = f"; best known {known.rank}" if known else ""
    lines.append(f"{wanted} rank {part.rank}{gap}" + ("" if dry_run else f", certified, {str(facts['digest'])[:12]}"))
    answer({**facts, "composition": _to_json(part, whose)}, "\n".join(lines))


def _write_recipes(out: str | None) -> None:
    """Run the closure of all constructions over the shipped schemes."""
    if not out:
        raise click.UsageError("--all needs a file: --out FILE")
    claim(out)
    recipes = find_recipes({name: shipped(name).scheme for name in shipped_names()})
    write(out, render(recipes))
    click.echo(f"{len(recipes)} recipes written to {out}", err=True)


def _to_json(part: Part, whose: Mapping[str, CatalogueRow]) -> dict[str, object]:
    named = {"scheme": part.name} if part.name else {}
    if (entry := whose.get(part.name)) is not None:
        named |= {"name": entry.name, "origin": entry.origin}
    return {
        "shape": list(part.shape),
        "rank": part.rank,
        "how": part.how,
        **named,
        **({"count": part.count} if part.count > 1 else {}),
        **({"sizes": [list(axis) for axis in part.sizes]} if all(part.sizes) else {}),
        **({"groups": [str(group) for group in part.groups]} if part.groups else {}),
        "parts": [_to_json(inner, whose) for inner in part.parts],
    }
