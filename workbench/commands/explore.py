"""`lcma explore`"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from ...errors import PlanError
from ...search import flip_graph
from ...search.flipgraph.graph import FlipGraph
from ..bench.picture import new_figure, save
from ..destination import claim, writing
from ..help import lcma_command
from ..options import POSITIVE, argument, option
from ..output import answer
from ..schemes import pool_argument


@lcma_command
def command(
    *,
    schemes: tuple[str, ...] = argument("SCHEME..."),
    radius: int = option(type=click.IntRange(0), default=2),
    limit: int = option(type=POSITIVE, default=20000),
    orbits: bool = option(),
    outs: tuple[Path, ...] = option("--out", metavar="FILE"),
) -> None:
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


MAX_VERTICES = 5_000
"""More can't be told apart."""


def draw(seen: FlipGraph, path: str | Path) -> None:
    """Write the graph as a .png or .svg: a ring for each distance, colours for orbits where they are known, else for
    distances, and squares where a flip lowers the rank. The same graph gives the same SVG.

    Raises:
        PlanError: the name ends otherwise, the graph is too large, or matplotlib is not installed.
        OSError: it can't be written.
    """
    path = Path(path)
    if path.suffix not in (".png", ".svg"):
        raise PlanError(f"{path} must end in .png or .svg to hold a picture")
    if len(seen.graph) > MAX_VERTICES:
        raise PlanError(f"{len(seen.graph)} schemes are too many for a picture of {MAX_VERTICES}: lower the radius")
    import networkx

    nodes = dict(seen.graph.nodes(data=True))
    rings = [[node for node, data in nodes.items() if data["distance"] == ring] for ring in seen.distances]
    places = networkx.shell_layout(seen.graph, rings, rotate=0)
    size = 2 + 300 / len(nodes)
    figure, axes = new_figure(7, 7)
    for one, other in seen.graph.edges():
        axes.plot(*zip(places[one], places[other], strict=True), color="0.75", linewidth=0.4, zorder=1)
    for marker, lower in (("o", False), ("s", True)):
        chosen = [node for node, data in nodes.items() if (data["reductions"] > 0) == lower]
        colours = [nodes[node].get("orbit", nodes[node]["distance"]) % 20 for node in chosen]
        xs, ys = [places[node][0] for node in chosen], [places[node][1] for node in chosen]
        axes.scatter(xs, ys, c=colours, s=size, marker=marker, cmap="tab20", vmin=0, vmax=19, zorder=2)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_title(f"{len(nodes)} schemes of rank {seen.rank}, {seen.graph.number_of_edges()} flips")
    save(figure, path)
