"""A picture of a flip graph: rings of equal distance, through matplotlib."""

from __future__ import annotations

from pathlib import Path

from ..errors import PlanError
from ..search.flipgraph.graph import FlipGraph
from .bench.picture import new_figure, save

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
