"""Hensel lifting: what lifts, what does not, and what is kept, alone and of a pool; the flip graph around schemes."""

from collections import Counter
from itertools import product

import networkx
import numpy as np
import pytest

from lcma.schemes_db import Z2, Q, Scheme, Z, parse_target
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.ring import Z3
from lcma.search import PackedTerms, find, flip_graph, lift, lift_pool, sparsified
from lcma.search.basis.shears import half_masks
from lcma.search.cpsat.brent import ternary_signs
from lcma.search.flipgraph.graph import flips
from lcma.search.flipgraph.policy import Policy
from lcma.search.lifting import lift as lifts
from lcma.search.lifting.lift import _rational
from lcma.search.terms import linear
from lcma.search.terms.rings import GF2
from lcma.verify import certify
from lcma.workbench.commands.explore import draw

from ..refusal import refuses
from .plain_terms import full_and_nonzeros, holds, sparsified_naive
from .starts import scheme, walked


@pytest.fixture(scope="module")
def laderman():
    """Schemes of 3x3x3:23 modulo 2 that walks found."""
    return [walked("3x3x3", 23, seed=seed).to_scheme() for seed in range(1, 41)]


def test_dense_finds_lift_to_integers_or_say_at_which_step_they_do_not(laderman):
    lifts = [lift(origin) for origin in laderman]
    assert sum(one.scheme is not None for one in lifts) >= 32
    assert any(one.scheme is None for one in lifts)
    for origin, one in zip(laderman, lifts, strict=True):
        if one.scheme is None:
            assert "step 1" in one.reason
            assert lift(origin, ring=Q, seed=9).scheme is None
        else:
            assert one.scheme.over_z2() == origin
            assert one.scheme.provenance.parents == (origin.digest,)
            assert one.certificate == certify(one.scheme)


def test_most_sparse_finds_lift_to_ternary(laderman):
    sparse = [sparsified(PackedTerms.from_scheme(origin)) for origin in laderman]
    assert all(holds(terms) for terms in sparse)
    lifts = [lift(terms.to_scheme()).scheme for terms in sparse]
    assert sum(scheme is not None and scheme.ternary for scheme in lifts) >= 28
    assert lift(walked("2x2x2", 7).to_scheme()).scheme.ternary


@pytest.mark.parametrize("sums", [True, False])
def test_lifts_by_parts_of_the_equations_are_those_by_all(laderman, monkeypatch, sums):
    """Nonzero entries first, and random sums of equations: so few that they are wrong, then as many as unknowns."""
    wanted = [lift(origin) for origin in laderman[:8]]
    monkeypatch.setattr(lifts, "FEW", 0)
    if sums:
        monkeypatch.setattr(lifts, "MANY", 0.0)
    for spare in (-200, 128):
        monkeypatch.setattr(lifts, "SPARE", spare)
        assert [lift(origin) for origin in laderman[:8]] == wanted


def test_equations_that_do_not_fit_are_not_decomposed(laderman, monkeypatch):
    monkeypatch.setattr(lifts, "FEW", 0)
    schemes = laderman[:12]
    odd = max(sum(len(factor.indices) for factor in scheme.factors) for scheme in schemes)
    monkeypatch.setattr(lifts, "MEMORY", 729 * odd // 8 + 8)
    outcomes = Counter(lift(scheme).reason for scheme in schemes)
    assert 0 < outcomes[""] < len(schemes)
    assert set(outcomes) == {"", "the nonzero entries have no lift, and all entries need more than 0 GB"}
    monkeypatch.setattr(lifts, "MEMORY", 1 << 10)
    refuses("equations of .* do not fit", lift, schemes[0])


@pytest.mark.parametrize(("equations", "unknowns"), [(300, 200), (200, 300), (700, 129), (64, 64)])
@pytest.mark.parametrize("density", [0.03, 0.5])
def test_the_elimination_by_words_is_that_by_columns(equations, unknowns, density):
    rng = np.random.default_rng(equations)
    bits = (rng.random((equations, -(-unknowns // 64) * 64)) < density).astype(np.uint8)
    bits[:, unknowns:] = 0
    bits[:, 5], bits[3] = 0, bits[4]  # no pivot in a column, a dependent row
    rows = np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(equations, 1, -1)
    by_words, by_columns = rows.copy(), rows.copy()
    rank, *found = linear.decompose((0,) * GF2, by_words, unknowns)
    order, pivots = np.arange(equations), np.zeros(unknowns, dtype=np.int64)
    assert linear.decompose_by_columns((0,) * GF2, by_columns, unknowns, order, pivots) == rank
    assert by_words.tolist() == by_columns.tolist()
    assert [found[0].tolist(), found[1][:rank].tolist()] == [order.tolist(), pivots[:rank].tolist()]


def test_halves_stay_halves():
    for seed in range(1, 9):
        terms = walked("3x3x3:tri-left", 17, seed=seed)
        full, half = full_and_half(terms.to_scheme())
        assert full_and_half(lift(terms.to_scheme()).scheme) == (full, half)
        sparse = sparsified(terms)
        assert holds(sparse)
        assert full_and_half(sparse.to_scheme())[0] <= full


@pytest.mark.parametrize(
    ("prime", "depth", "values"),
    [
        (2, 24, [(1, 3), (-2, 1), (5, 7), (0, 1), (-64, 63), (1, 1)]),
        (3, 15, [(1, 2), (-2, 1), (5, 7), (0, 1), (-64, 61), (1, 1)]),
    ],
)
def test_fractions_are_rebuilt_from_their_residues(prime, depth, values):
    x = np.array([[p * pow(q, -1, prime**depth) % prime**depth for p, q in values]])
    numerators, denominators = _rational(x, np.array([2, 2, 2]), prime)
    got = [n / denominators[i // 2] for i, n in enumerate(numerators[0].tolist())]
    assert got == [p / q for p, q in values]


def modulo_3(scheme):
    return Scheme(scheme.target, *scheme.reduced_mod(3), Z3)


@pytest.mark.parametrize("name", ["strassen", "laderman", "3x3x4", "eca-stage1"])
def test_residues_modulo_3_of_a_ternary_scheme_lift_to_it(name):
    assert lift(modulo_3(scheme(name))).scheme == scheme(name)


def test_other_bases_modulo_3_lift_to_fractions():
    shear = np.array([[1, 1, 0], [0, 1, 0], [0, -1, 1]])
    origin = modulo_3(change_of_basis(scheme("laderman"), shear, shear.T @ shear, shear))
    certify(origin)
    lifted = lift(origin, ring=Q)
    assert modulo_3(lifted.scheme) == origin
    assert lifted.certificate == certify(lifted.scheme)


def test_walking_on_brings_schemes_to_ternary(laderman):
    origins = laderman[:12]
    plain = lift_pool(origins)
    walked, again = (lift_pool(origins, walks=24, signs=0.5, jobs=jobs) for jobs in (2, 1))
    assert walked.shares["ternary"] > plain.shares["ternary"]
    assert walked.shares["ternary"] >= 11
    for one in walked.lifts:
        if one.scheme is not None:
            assert one.certificate == certify(one.scheme)
            assert one.scheme.rank == 23
    assert [one.scheme for one in walked.lifts] == [one.scheme for one in again.lifts]


def test_signs_are_found_or_proven_impossible():
    origin = scheme("laderman").over_z2()
    signed, reason = ternary_signs(origin)
    assert not reason
    assert certify(signed)
    assert signed.over_z2() == origin
    # 2x2x2 by Strassen in a basis whose only lift has a 2: no signs will do.
    shears = [np.array([[1, 1], [0, 1]]), np.array([[1, 0], [1, 1]])]
    for bases in product(shears, repeat=3):
        reason = ternary_signs(change_of_basis(scheme("strassen"), *bases).over_z2())[1]
        assert reason in ("", "no signs make it ternary")


def test_a_lift_to_q_takes_fractions_where_integers_are_not_found():
    """1/3 and 3 are odd: a scheme with them reduces modulo 2 to one that has an integer lift too."""
    third = Scheme.from_arrays(parse_target("1x1x1"), [[[1]]], [[[3]]], [[[1]]], Q, denominators=(3, 1, 1))
    certify(third)
    assert lift(third.over_z2(), ring=Q).scheme.ring is Z


@pytest.mark.parametrize(
    ("name", "rank"), [("3x3x3", 23), ("2x3x4", 21), ("3x3x3:tri-left", 17), ("3x3x3:tri-out", 17)]
)
def test_the_compiled_descent_is_the_naive_one(name, rank):
    for seed in range(1, 6):
        terms = walked(name, rank, seed=seed)
        fast, slow = sparsified(terms), sparsified_naive(terms)
        assert np.array_equal(fast.words, slow.words)
        assert holds(fast)
        masks = half_masks(terms.target)
        assert full_and_nonzeros(fast.words, masks) <= full_and_nonzeros(terms.words, masks)
        assert full_and_nonzeros(fast.words, masks)[0] == full_and_half(fast.to_scheme())[0]


def test_a_pool_is_lifted_as_one_by_one():
    pool = find("3x3x3", rank=23, ring="Z2", seed=3, count=40, policy=Policy()).schemes
    result = lift_pool(pool, jobs=2, seed=5)
    singles = [lift(scheme, seed=5) for scheme in pool]
    assert [one.scheme for one in result.lifts] == [one.scheme for one in singles]
    assert sum(result.shares.values()) == len(pool)
    assert result.shares["ternary"] == sum(one.scheme is not None and one.scheme.ternary for one in singles)
    assert result.shares["ternary"] > 0.4 * len(pool)
    assert result.shares.get("not lifted", 0) == sum(result.reasons.values()) > 0
    assert result.origins == tuple(pool)


def test_a_sparse_basis_is_of_the_same_rank(laderman):
    result = lift_pool(laderman[:5], sparse=True)
    assert all(origin.rank == 23 and origin.ring is Z2 for origin in result.origins)
    for origin, one in zip(result.origins, result.lifts, strict=True):
        assert one.scheme is None or one.scheme.over_z2() == origin


def test_every_flip_keeps_the_scheme(laderman):
    start = PackedTerms.from_scheme(laderman[0])
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
    naive = flip_graph([scheme("naive:2x2x2")], radius=2)
    assert naive.distances[0] == 1
    assert naive.distances[1] == naive.graph.degree[0] == naive.graph.nodes[0]["neighbours"] > 0
    lengths = networkx.single_source_shortest_path_length(naive.graph, 0)
    assert all(lengths[node] == data["distance"] for node, data in naive.graph.nodes(data=True))
    naive.write_graphml(tmp_path / "g.graphml")
    again = networkx.read_graphml(tmp_path / "g.graphml")
    assert len(again) == len(naive.graph)
    cut = flip_graph([scheme("naive:2x2x2")], radius=2, limit=10)
    assert len(cut.graph) == 10
    assert not cut.complete


def test_components_join_when_the_radius_grows(laderman):
    near, far = (flip_graph(laderman[:6], radius=radius) for radius in (0, 2))
    assert near.distances == {0: 6}
    assert len(far.components) <= len(near.components)
    assert sum(far.components) == len(far.graph) > 6


def test_orbits_are_distinguished_by_invariants_and_drawn(tmp_path):
    naive = [scheme("naive:2x2x2")]
    seen = flip_graph(naive, radius=1, orbits=True)
    assert sum(seen.orbits) == len(seen.graph)
    # All flips of the naive scheme are alike up to basis and roles, and none leads back to its orbit.
    assert seen.orbits == [len(seen.graph) - 1, 1]
    assert flip_graph(naive, radius=1).orbits == []
    pytest.importorskip("matplotlib")
    for name in ("graph.svg", "again.svg"):
        draw(seen, tmp_path / name)
    assert b"<svg" in (tmp_path / "graph.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    refuses(r"must end in \.png or \.svg", draw, seen, tmp_path / "graph.pdf")
