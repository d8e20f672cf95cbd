"""Whole pools: lifting with shares, and the flip graph around schemes."""

import networkx
import pytest

import lcma
from lcma.schemes_db import Z2
from lcma.search import PackedTerms, Policy, find, flip_graph, lift, lift_pool
from lcma.search.flipgraph.graph import flips
from lcma.workbench.commands.explore import draw

from ..refusal import refuses
from .plain_terms import holds


@pytest.fixture(scope="module")
def pool():
    return find("3x3x3", rank=23, ring="Z2", seed=3, count=40, policy=Policy()).schemes


def test_a_pool_is_lifted_as_one_by_one(pool):
    result = lift_pool(pool, jobs=2, seed=5)
    singles = [lift(scheme, seed=5) for scheme in pool]
    assert [one.scheme for one in result.lifts] == [one.scheme for one in singles]
    assert sum(result.shares.values()) == len(pool)
    assert result.shares["ternary"] == sum(one.scheme is not None and one.scheme.ternary for one in singles)
    assert result.shares["ternary"] > 0.4 * len(pool)
    assert result.shares.get("not lifted", 0) == sum(result.reasons.values()) > 0
    assert result.origins == tuple(pool)


def test_a_sparse_basis_is_of_the_same_rank(pool):
    result = lift_pool(pool[:5], sparse=True)
    assert all(origin.rank == 23 and origin.ring is Z2 for origin in result.origins)
    for origin, one in zip(result.origins, result.lifts, strict=True):
        assert one.scheme is None or one.scheme.over_z2() == origin


def test_every_flip_keeps_the_scheme(pool):
    start = PackedTerms.from_scheme(pool[0])
    vertex = frozenset(zip(*start.words.tolist(), strict=True))
    seen = set(flips(vertex))
    assert seen
    for flipped in seen:
        words = start.words[:, : len(flipped)].copy()
        for place, term in enumerate(sorted(flipped)):
            words[:, place] = term
        assert holds(PackedTerms(start.target, words))
        # A flip can be taken back, unless it reduced.
        assert len(flipped) < len(vertex) or vertex in set(flips(flipped))


def test_strassen_stands_alone_and_the_naive_scheme_does_not(strassen, tmp_path):
    alone = flip_graph([strassen], radius=3)
    assert (alone.components, alone.degrees, alone.complete) == ([1], {0: 1}, True)
    naive = flip_graph([lcma.resolve("naive:2x2x2")[0]], radius=2)
    assert naive.distances[0] == 1
    assert naive.distances[1] == naive.graph.degree[0] == naive.graph.nodes[0]["neighbours"] > 0
    lengths = networkx.single_source_shortest_path_length(naive.graph, 0)
    assert all(lengths[node] == data["distance"] for node, data in naive.graph.nodes(data=True))
    naive.write_graphml(tmp_path / "g.graphml")
    again = networkx.read_graphml(tmp_path / "g.graphml")
    assert len(again) == len(naive.graph)
    cut = flip_graph([lcma.resolve("naive:2x2x2")[0]], radius=2, limit=10)
    assert len(cut.graph) == 10
    assert not cut.complete


def test_components_join_when_the_radius_grows(pool):
    near, far = (flip_graph(list(pool[:6]), radius=radius) for radius in (0, 2))
    assert near.distances == {0: 6}
    assert len(far.components) <= len(near.components)
    assert sum(far.components) == len(far.graph) > 6


def test_orbits_are_distinguished_by_invariants_and_drawn(tmp_path, strassen):
    naive = lcma.resolve("naive:2x2x2")[0]
    seen = flip_graph([naive], radius=1, orbits=True)
    assert sum(seen.orbits) == len(seen.graph)
    # All flips of the naive scheme are alike up to basis and roles, and none leads back to its orbit.
    assert seen.orbits == [len(seen.graph) - 1, 1]
    assert flip_graph([naive], radius=1).orbits == []
    pytest.importorskip("matplotlib")
    draw(seen, tmp_path / "graph.svg")
    first = (tmp_path / "graph.svg").read_bytes()
    assert b"<svg" in first
    draw(seen, tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_bytes() == first
    refuses(r"must end in \.png or \.svg", draw, seen, tmp_path / "graph.pdf")
