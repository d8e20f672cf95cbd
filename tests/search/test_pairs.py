"""Walks on schemes that are invariant under an involution: their plain twin, validity at every step, their finds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.search import RunConfig, find, make_walker
from lcma.search.flipgraph.moves import plus
from lcma.search.flipgraph.orbit_walker import make_orbit_arena, orbits_in
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.flipgraph.walkers import pack_start
from lcma.search.terms.involution import other_involutions
from lcma.search.terms.packed import PackedTerms
from lcma.search.terms.pairs import PairTerms

from .orbit_reference import OrbitReferenceWalk
from .plain_terms import holds

HASTY = Policy(plus_after=40, margin=4, restart_after=700, trap=3)
WHOLE = replace(HASTY, orbits="whole")
SLOW = pytest.mark.slow
OTHERS = {"2x2x3": (1, 0, 1), "3x3x3": (1, 1, 0), "2x3x4": (0, 1, 1), "3x4x5": (1, 1, 1), "4x4x5": (1, 2, 0)}
SHAPES = ["1x1x1", "1x2x1", "2x2x2", "2x2x3", "3x3x3", "2x3x4", "3x4x5", "4x4x5", "1x8x8"]


@pytest.mark.parametrize(
    ("name", "seed", "room", "steps", "chunk", "policy", "swaps"),
    [
        ("2x2x2", 1, 2, 1200, 1, HASTY, None),
        ("2x2x3", 4, 2, 1200, 1, HASTY, None),
        ("3x3x3", 2, 2, 900, 7, HASTY, None),
        pytest.param("2x3x4", 3, 2, 600, 10, WHOLE, None, marks=SLOW),
        ("2x3x5", 6, 2, 400, 10, HASTY, None),
        ("2x3x4", 7, 2, 600, 10, HASTY, (0, 1, 1)),
        ("3x3x3", 8, 2, 600, 10, HASTY, (1, 0, 1)),
        pytest.param("3x3x3", 8, 2, 600, 10, WHOLE, (1, 0, 1), marks=SLOW),
        pytest.param("3x4x4", 5, 60, 300, 10, HASTY, None, marks=SLOW),
    ],
)
def test_step_for_step_as_the_reference(counters_of, name, seed, room, steps, chunk, policy, swaps):
    start = PairTerms.naive(parse_target(name), swaps)
    arena = make_orbit_arena(start, seed, 5, room, policy)
    twin = OrbitReferenceWalk(start, seed, 5, room, policy)
    for _ in range(0, steps, chunk):
        advance(arena, policy.numbers, 0, chunk)
        twin.advance(0, chunk)
        rows = arena.x.reshape(3, -1)
        assert rows[:, rows[0] != 0].T.tolist() == [twin.term(slot) for slot in twin.live]
        assert int(arena.rng[0]) == twin.rng
        assert arena.counters.tolist() == counters_of(twin)


@pytest.mark.parametrize("policy", [HASTY, pytest.param(WHOLE, marks=SLOW)], ids=["any", "whole"])
@given(
    st.sampled_from([*((name, None) for name in SHAPES), *OTHERS.items()]),
    st.integers(0, 1 << 40),
    st.sampled_from([0, 2]),
)
@settings(max_examples=20, deadline=None)
def test_every_step_keeps_the_tensor(policy, case, seed, room):
    name, swaps = case
    start = PairTerms.naive(parse_target(name), swaps)
    arena = make_orbit_arena(start, seed, 0, room, policy)
    for _ in range(30):
        advance(arena, policy.numbers, 0, 25)
        now = orbits_in(arena.x, arena, start)
        assert now.rank == arena.counters[RANK]
        assert holds(now.packed())
        # A pair never becomes its own image. Two terms that are may become one or three; of a reversal there is one.
        if policy.orbits == "whole" and swaps is None:
            assert np.count_nonzero(now.own) == np.count_nonzero(start.own)


@pytest.mark.parametrize("name", SHAPES)
def test_the_naive_start_holds_and_unpacks_again(name):
    target = parse_target(name)
    terms = PairTerms.naive(target)
    packed = terms.packed()
    assert terms.rank == packed.rank == len(target.terms)
    assert holds(packed)
    assert np.count_nonzero(terms.own) == all(side % 2 for side in target.shape)
    assert PairTerms.from_scheme(terms.to_scheme()).to_scheme() == terms.to_scheme()


@pytest.mark.parametrize(("name", "swaps"), OTHERS.items())
def test_the_naive_start_of_other_involutions_holds_and_unpacks_again(name, swaps):
    target = parse_target(name)
    terms = PairTerms.naive(target, swaps)
    fixed = math.prod(side - 2 * count for side, count in zip(target.shape, swaps, strict=True))
    assert np.count_nonzero(terms.own) == fixed
    assert terms.rank == terms.packed().rank == len(target.terms)
    assert holds(terms.packed())
    assert PairTerms.from_scheme(terms.to_scheme(), swaps).to_scheme() == terms.to_scheme()


def test_involutions_that_equal_sides_exchange_are_listed_once():
    assert other_involutions(parse_target("2x2x2")) == [(1, 1, 0), (1, 0, 0)]
    assert len(other_involutions(parse_target("2x3x4"))) == 2 * 2 * 3 - 2
    assert (1, 0, 0) not in other_involutions(parse_target("2x6x6"))


@pytest.mark.parametrize(("name", "rank"), [("2x2x2", 7), ("2x2x3", 11), ("3x3x3", 23), ("2x3x4", 20)])
def test_walks_reach_the_best_known_rank(name, rank):
    walker = make_walker("flip-z2", pack_start("flip-z2", parse_target(name)), 1, 0, Policy(plus_after=5_000, margin=4))
    walker.advance(rank, 20_000_000)
    assert walker.rank == rank
    scheme = walker.terms().to_scheme()
    assert certify(scheme).digest == scheme.digest
    assert PairTerms.from_scheme(scheme).rank == rank
    walker.rewind()
    assert walker.rank == len(scheme.target.terms)


@pytest.mark.parametrize("walk", ["flip-z2", "flip-z2:0,1,1"])
def test_a_run_lifts_what_it_finds(walk):
    result = find("2x2x3", rank=11, ring="Z", walk=walk, seed=1, rounds=20, steps=100_000)
    assert result.finds[0].scheme.rank == 11
    assert result.finds[0].scheme.ring.name == "Z"


def test_plus_adds_one_pair_and_keeps_the_tensor():
    terms = PairTerms.naive(parse_target("2x3x4"))
    for seed in range(20):
        arena = make_orbit_arena(terms, seed)
        assert plus(arena)
        assert arena.counters[RANK] == terms.rank + 2
        assert holds(orbits_in(arena.x, arena, terms).packed())


def test_what_has_no_symmetry_is_refused():
    with pytest.raises(PlanError, match="not invariant under reversal: walk flip-z2 needs a full product"):
        PairTerms.naive(parse_target("3x3x3:tri-left"))
    walker = make_walker("flip", pack_start("flip", parse_target("3x3x3")), 1, 0, Policy())
    walker.advance(25, 1_000_000)
    with pytest.raises(PlanError, match="start the walk elsewhere"):
        make_walker("flip-z2", walker.terms(), 1, 0, Policy())
    start = PackedTerms.naive(parse_target("2x2x2"))
    with pytest.raises(PlanError, match="no bounds"):
        make_walker("flip-z2", start, 1, 0, Policy(nonzeros=3))
    target = parse_target("2x6x6")
    for walk, message in {
        "flip:1,1,1": "only flip-z2 has swaps",
        "flip-z2:1,1": "write those along m, k and n",
        "flip-z2:2,1,1": "at most 1,3,3 pairs to exchange along m, k and n, not 2,1,1",
        "flip-z2:0,0,0": "exchange nothing: take walk flip",
        "flip-z2:1,0,0": "leave 36 entries of a matrix of 2x6x6",
    }.items():
        with pytest.raises(PlanError, match=message):
            pack_start(walk, target)
    with pytest.raises(PlanError, match="not invariant under the swaps 0,1,1"):
        pack_start("flip-z2:0,1,1", walker.terms().target, walker.terms().to_scheme())
    with pytest.raises(PlanError, match="those of walks flip-c3z2 and flip-z2"):
        RunConfig("2x2x3", 11, "Z2", walk="flip", policy=Policy(orbits="whole"))
