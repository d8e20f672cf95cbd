"""`lcma explore`"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ...search import flip_graph
from ..destination import claim, writing
from ..flip_picture import draw
from ..help import lcma_command
from ..options import POSITIVE, argument, option
from ..output import answer
from ..schemes import pool_argument


@lcma_command("explore", json="the numbers")
def command(
    *,
    schemes: tuple[str, ...] = argument("SCHEME..."),
    radius: int = option(type=click.IntRange(0), default=2, help="The largest number of flips from SCHEMEs."),
    limit: int = option(type=POSITIVE, default=20_000, help="The largest number of schemes to visit."),
    orbits: bool = option(help="Distinguish schemes by invariants under changes of basis and roles (slower)."),
    outs: tuple[Path, ...] = option(
        "--out",
        metavar="FILE",
        help="Write the graph there, as GraphML, or as a picture by the suffix .png or .svg. May be given several "
        "times.",
    ),
) -> None:
    """Show the flip graph around schemes, modulo 2.

    Components, degrees, distances and reductions, and with --orbits how many schemes are
    different in more than basis and roles. SCHEMEs are of one target and rank; a run folder
    means its finds.
    """
    for path in outs:
        claim(path, schemes)
    seen = flip_graph(pool_argument(schemes), radius=radius, limit=limit, orbits=orbits)
    for path in outs:
        write = partial(draw, seen) if path.suffix in (".png", ".svg") else seen.write_graphml
        with writing(path):
            write(path)
    facts = {
        "schemes": len(seen.graph),
        "flips": seen.graph.number_of_edges(),
        "complete": seen.complete,
        "components": seen.components,
        "degrees": seen.degrees,
        "distances": seen.distances,
        "with a flip to a lower rank": seen.exits,
        **({"orbits at least": len(seen.orbits), "orbit sizes": seen.orbits} if orbits else {}),
    }
    whole = "" if seen.complete else f", cut at {limit}"
    lines = [f"{facts['schemes']} schemes of rank {seen.rank}, {facts['flips']} flips{whole}"]
    lines.append(f"components: {', '.join(map(str, seen.components))}")
    for name, counts in (("neighbours", seen.degrees), ("distance", seen.distances)):
        lines.append(f"{name}: {', '.join(f'{key} ({count})' for key, count in counts.items())}")
    lines.append(f"with a flip to a lower rank: {seen.exits}")
    if orbits:
        sizes = ", ".join(map(str, seen.orbits[:12])) + (", ..." if len(seen.orbits) > 12 else "")
        lines.append(f"orbits, by invariants: at least {len(seen.orbits)}, schemes seen of each: {sizes}")
    answer(facts, "\n  ".join(lines))
