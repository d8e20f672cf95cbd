"""The flip graph around schemes over Z2, as a networkx graph.

Vertices are schemes of one rank (as sets of terms), edges are flips. A flip to a scheme with a zero
or a repeated term leads to a lower rank: it is counted, not followed.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import PlanError
from ...home import write_atomic
from ...schemes_db import Scheme
from ...schemes_db.invariants import invariants
from ..terms.packed import PackedTerms
from ..terms.words import Words

Vertex = frozenset[tuple[int, int, int]]


@dataclass(frozen=True)
class FlipGraph:
    """The explored part of the flip graph; `complete`: whether it contains all vertices within `radius`.

    `graph` is a networkx.Graph of numbered vertices (0 is the first scheme) with attributes `distance`
    to the nearest start, `neighbours`, the number of schemes one flip away (also those beyond the
    radius), `reductions`, the number of flips that lower the rank, and, if requested, `orbit`, a number
    for each set of invariants.
    """

    graph: Any
    rank: int
    radius: int
    complete: bool

    @property
    def components(self) -> list[int]:
        """Sizes of the connected components, largest first."""
        import networkx

        return sorted((len(part) for part in networkx.connected_components(self.graph)), reverse=True)

    @property
    def degrees(self) -> dict[int, int]:
        """Number of vertices by number of neighbours, explored or not."""
        return self._counted("neighbours")

    @property
    def distances(self) -> dict[int, int]:
        """Number of vertices by distance to the nearest start."""
        return self._counted("distance")

    @property
    def orbits(self) -> list[int]:
        """Numbers of vertices with equal invariants, largest first; empty if orbits were not requested.

        Schemes with different invariants are in different orbits of the changes of basis and the
        permutations of the factors; with equal ones they may be, so the length is a lower bound on the
        number of orbits.
        """
        return sorted(self._counted("orbit").values(), reverse=True)

    @property
    def exits(self) -> int:
        """Number of vertices from which one flip lowers the rank."""
        return sum(data["reductions"] > 0 for _, data in self.graph.nodes(data=True))

    def _counted(self, attribute: str) -> dict[int, int]:
        """Return the number of vertices by an attribute, of those that have it."""
        return dict(sorted(Counter(value for _, value in self.graph.nodes(attribute) if value is not None).items()))

    def write_graphml(self, path: str | Path) -> None:
        """Write the graph as GraphML.

        Raises:
            OSError: the file can't be written.
        """
        import networkx

        buffer = io.BytesIO()
        networkx.write_graphml(self.graph, buffer)
        write_atomic(Path(path), buffer.getvalue())


def flip_graph(schemes: list[Scheme], *, radius: int = 2, limit: int = 20_000, orbits: bool = False) -> FlipGraph:
    """Explore the flip graph within `radius` flips of schemes of one target and rank, up to `limit` vertices.

    With `orbits` the invariants of every vertex are computed, some milliseconds each.

    Raises:
        PlanError: no schemes, different targets or ranks, a scheme with an even denominator or with two equal
            terms modulo 2.
    """
    if not schemes or radius < 0 or limit < len(schemes):
        raise PlanError("name at least one scheme, a radius of 0 or more, and room for the schemes themselves")
    import networkx

    starts = [PackedTerms.from_scheme(scheme) for scheme in schemes]
    if len({(start.target, start.rank) for start in starts}) > 1:
        raise PlanError("the schemes have different targets or ranks: explore one level at a time")
    numbers: dict[Vertex, int] = {}
    graph = networkx.Graph()
    complete = True

    def number(vertex: Vertex, distance: int) -> int:
        if vertex not in numbers:
            numbers[vertex] = len(numbers)
            graph.add_node(numbers[vertex], distance=distance, neighbours=0, reductions=0)
        return numbers[vertex]

    layer = [frozenset(zip(*start.words.tolist(), strict=True)) for start in starts]
    for vertex in layer:
        if len(vertex) < starts[0].rank:
            raise PlanError("a scheme has two equal terms, so its rank modulo 2 is lower: reduce it first")
        number(vertex, 0)
    layer = list(dict.fromkeys(layer))
    for distance in range(radius + 1):
        beyond: list[Vertex] = []
        for vertex in layer:
            own, results = numbers[vertex], list(flips(vertex))
            near = {one for one in results if len(one) == len(vertex)} - {vertex}
            graph.nodes[own].update(neighbours=len(near), reductions=sum(len(one) < len(vertex) for one in results))
            for flipped in sorted(near, key=sorted):
                if flipped in numbers:
                    graph.add_edge(own, numbers[flipped])
                elif distance < radius and len(numbers) < limit:
                    graph.add_edge(own, number(flipped, distance + 1))
                    beyond.append(flipped)
                elif distance < radius:
                    complete = False
        layer = beyond
    if orbits:
        known: dict[str, int] = {}
        for vertex, place in numbers.items():
            words = np.array(sorted(vertex), dtype=np.uint64).T
            digest = invariants(PackedTerms(starts[0].target, np.ascontiguousarray(words)).to_scheme()).digest
            graph.nodes[place]["orbit"] = known.setdefault(digest, len(known))
    return FlipGraph(graph, starts[0].rank, radius, complete)


def flips(vertex: Vertex) -> Iterator[Vertex]:
    """Yield the results of all flips; one with fewer terms is a reduction."""
    terms = sorted(vertex)
    for one, other in combinations(terms, 2):
        for f in range(3):
            if one[f] != other[f]:
                continue
            g, h = (f + 1) % 3, (f + 2) % 3
            for first, second in ((one, other), (other, one)):
                for x, y in ((g, h), (h, g)):
                    left, right = list(first), list(second)
                    left[x] ^= second[x]
                    right[y] ^= first[y]
                    changed = set(vertex) - {first, second}
                    for a, b, c in (left, right):
                        if a and b and c:
                            changed ^= {(a, b, c)}
                    yield frozenset(changed)


def random_flip(words: Words, rng: np.random.Generator) -> Words:
    """Return the words (3, R) after a random flip; unchanged if there is none, or it would make a factor zero."""
    f = int(rng.integers(3))
    _, places, counts = np.unique(words[f], return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts > 1)
    if len(shared) == 0:
        return words
    members = np.flatnonzero(places == shared[int(rng.integers(len(shared)))])
    i, j = rng.choice(members, 2, replace=False)
    g, h = ((f + 1) % 3, (f + 2) % 3) if rng.integers(2) else ((f + 2) % 3, (f + 1) % 3)
    left, right = words[g, i] ^ words[g, j], words[h, j] ^ words[h, i]
    if not (left and right):
        return words
    flipped = words.copy()
    flipped[g, i], flipped[h, j] = left, right
    return flipped
