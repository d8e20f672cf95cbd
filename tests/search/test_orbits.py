"""The symmetric walk: its plain twin, symmetry and validity at every step, and how well it does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.schemes_db.algebra import naive
from lcma.search import make_walker
from lcma.search.arena import BEST, RANK
from lcma.search.brent2 import holds
from lcma.search.orbit_moves import plus
from lcma.search.orbit_reference import OrbitReferenceWalk
from lcma.search.orbits import OrbitTerms, transposed
from lcma.search.orbitwalker import make_orbit_arena, orbits_in
from lcma.search.packed import PackedTerms
from lcma.search.policy import Policy
from lcma.search.walk import advance
from lcma.search.walker import pack_start, walk_policy

HASTY = Policy(plus_after=40, margin=7, restart_after=700, trap=3)


def square(n):
    return OrbitTerms.naive(parse_target(f"{n}x{n}x{n}"))


def state_of(arena, start):
    now = orbits_in(arena.x, start.target)
    return now.orbits.T.tolist(), sorted(now.cubes.tolist())


@pytest.mark.parametrize(
    ("n", "seed", "room", "steps", "chunk"),
    [(2, 1, 2, 1500, 1), (3, 2, 2, 800, 7), (4, 3, 2, 300, 10), (3, 1, 70, 150, 10)],
)
def test_step_for_step_as_the_reference(n, seed, room, steps, chunk):
    start = square(n)
    arena = make_orbit_arena(start, seed, 5, room)
    twin = OrbitReferenceWalk(start, seed, 5, room, HASTY)
    for _ in range(0, steps, chunk):
        advance(arena, HASTY, 0, chunk)
        twin.advance(0, chunk)
        assert state_of(arena, start) == ([twin.term(slot) for slot in twin.live], sorted(twin.cubes))
        assert int(arena.rng[0]) == twin.rng
        assert arena.tally.tolist() == [
            twin.steps,
            twin.flips,
            twin.misses,
            twin.since,
            twin.rank,
            twin.walk_best,
            twin.walk_steps,
            twin.trapped,
            twin.best_rank,
            twin.pluses,
            twin.restarts,
            twin.reductions,
            twin.gain_step,
        ]


@given(st.integers(1, 4), st.integers(0, 1 << 40), st.sampled_from([0, 2, 70]))
@settings(max_examples=20, deadline=None)
def test_every_step_keeps_the_tensor(n, seed, room):
    start = square(n)
    arena = make_orbit_arena(start, seed, 0, room)
    for _ in range(40):
        advance(arena, HASTY, 0, 25)
        now = orbits_in(arena.x, start.target)
        assert now.rank == arena.tally[RANK]
        assert holds(now.packed())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_the_naive_start_holds_and_unpacks_again(n):
    terms = square(n)
    assert holds(terms.packed())
    assert len(terms.cubes) == (n + 1) // 2
    again = OrbitTerms.from_scheme(terms.to_scheme())
    assert again.rank == terms.rank == terms.packed().rank
    assert again.to_scheme() == terms.to_scheme()


def test_any_symmetric_scheme_is_a_start():
    scheme = naive(parse_target("3x3x3"))
    terms = OrbitTerms.from_scheme(scheme)
    assert (terms.rank, len(terms.cubes)) == (27, 3)
    arena = make_orbit_arena(terms, 1)
    advance(arena, HASTY, 0, 500)
    assert holds(orbits_in(arena.x, terms.target).packed())


def test_what_has_no_symmetry_is_refused():
    with pytest.raises(PlanError, match="no cyclic symmetry"):
        OrbitTerms.naive(parse_target("2x2x3"))
    with pytest.raises(PlanError, match="no cyclic symmetry"):
        OrbitTerms.naive(parse_target("3x3x3:tri-left"))
    walker = make_walker("flip", pack_start("flip", parse_target("3x3x3")), 1, 0, Policy())
    walker.advance(25, 1_000_000)
    with pytest.raises(PlanError, match="not symmetric"):
        OrbitTerms.from_scheme(walker.terms().to_scheme())


@pytest.mark.parametrize(("n", "rank", "limit"), [(2, 7, 100_000), (3, 23, 5_000_000)])
def test_ten_seeds_succeed(n, rank, limit):
    for seed in range(1, 11):
        arena = make_orbit_arena(square(n), seed, 0, 3)
        advance(arena, walk_policy("flip-c3"), rank, limit)
        assert arena.tally[BEST] <= rank, seed
        assert holds(orbits_in(arena.best, square(n).target).packed())


def test_plain_terms_are_a_start_too():
    target = parse_target("3x3x3")
    for start, rank in ((PackedTerms.naive(target), 29), (square(3).packed(), 29)):
        walker = make_walker("flip-c3", start, 1, 0, walk_policy("flip-c3"))
        assert walker.rank == rank
        assert holds(walker.terms())


def test_a_walker_gives_plain_terms():
    target = parse_target("3x3x3")
    walker = make_walker("flip-c3", pack_start("flip-c3", target), 1, 0, walk_policy("flip-c3"))
    walker.advance(23, 5_000_000)
    scheme = walker.terms().to_scheme()
    assert scheme.rank == walker.rank <= 23
    assert certify(scheme).digest == scheme.digest
    walker.rewind()
    assert walker.rank == 29
    assert walker.lowest <= 23


def test_plus_adds_one_orbit_and_keeps_the_tensor():
    terms = square(3)
    for seed in range(20):
        arena = make_orbit_arena(terms, seed)
        assert plus(arena)
        assert arena.tally[RANK] == terms.rank + 3
        assert holds(orbits_in(arena.x, terms.target).packed())


def test_transposing_twice_changes_nothing():
    words = np.array([1, 2, 4, 8, 0b101, 511], dtype=np.uint64)
    assert transposed(words, 3).tolist() == [1, 8, 64, 2, 0b1000001, 511]
    assert np.array_equal(transposed(transposed(words, 3), 3), words)
