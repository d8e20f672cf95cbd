"""`lcma explore`"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ...search import flip_graph
from ..destination import claim, writing
from ..flip_picture import draw
from ..help import lcma_command
from ..output import print_json
from ..schemes import pool_argument


@lcma_command("explore", json="the numbers")
@click.argument("schemes", metavar="SCHEME...", nargs=-1, required=True)
@click.option(
    "--radius", type=click.IntRange(0), default=2, show_default=True, help="The largest number of flips from SCHEMEs."
)
@click.option(
    "--limit", type=click.IntRange(1), default=20_000, show_default=True, help="The largest number of schemes to visit."
)
@click.option(
    "--orbits", is_flag=True, help="Distinguish schemes by invariants under changes of basis and roles (slower)."
)
@click.option(
    "--out",
    "outs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the graph there, as GraphML, or as a picture by the suffix .png or .svg. May be given several times.",
)
def command(
    schemes: tuple[str, ...], radius: int, limit: int, orbits: bool, outs: tuple[Path, ...], as_json: bool
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
    if as_json:
        print_json(facts)
        return
    whole = "" if seen.complete else f", cut at {limit}"
    click.echo(f"{facts['schemes']} schemes of rank {seen.rank}, {facts['flips']} flips{whole}")
    click.echo(f"  components: {', '.join(map(str, seen.components))}")
    for name, counts in (("neighbours", seen.degrees), ("distance", seen.distances)):
        click.echo(f"  {name}: {', '.join(f'{key} ({count})' for key, count in counts.items())}")
    click.echo(f"  with a flip to a lower rank: {seen.exits}")
    if orbits:
        sizes = ", ".join(map(str, seen.orbits[:12])) + (", ..." if len(seen.orbits) > 12 else "")
        click.echo(f"  orbits, by invariants: at least {len(seen.orbits)}, schemes seen of each: {sizes}")
