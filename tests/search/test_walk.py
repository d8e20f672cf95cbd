"""The compiled walk: its plain twin, validity at every step, and how well it does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.search.arena import BEST, best_terms, current_terms, make_arena
from lcma.search.brent2 import holds
from lcma.search.packed import PackedTerms
from lcma.search.policy import Policy
from lcma.search.reference import ReferenceWalk
from lcma.search.walk import advance, rewind

HASTY = Policy(plus_after=40, margin=2, restart_after=700, trap=3)


def naive(name):
    return PackedTerms.naive(parse_target(name))


def assert_same(arena, twin):
    slots = [[0, 0, 0] if term is None else term for term in twin.slots]
    assert arena.x.reshape(3, -1).T.tolist() == slots
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
    assert [tuple(term) for term in arena.best.reshape(3, -1).T.tolist() if term[0]] == twin.best


@pytest.mark.parametrize(
    ("name", "seed", "room", "steps", "chunk"),
    [
        ("2x2x2", 1, 0, 1500, 1),
        ("2x2x2", 2, 64, 1500, 7),
        ("3x3x3:tri-left", 1, 0, 800, 10),
        ("2x2x3", 3, 0, 1200, 5),
        ("3x3x3", 1, 0, 400, 10),
        ("3x3x3", 4, 64, 300, 10),
        ("1x2x3", 1, 0, 300, 1),
        ("1x1x1", 1, 0, 50, 1),
    ],
)
def test_step_for_step_as_the_reference(name, seed, room, steps, chunk):
    start = naive(name)
    arena, twin = make_arena(start, seed, 5, room), ReferenceWalk(start, seed, 5, room, HASTY)
    assert_same(arena, twin)
    for _ in range(0, steps, chunk):
        advance(arena, HASTY, 0, chunk)
        twin.advance(0, chunk)
        assert_same(arena, twin)


def test_the_reference_reaches_the_goal_with_the_walk():
    start = naive("2x2x2")
    arena, twin = make_arena(start, 8), ReferenceWalk(start, 8)
    advance(arena, Policy(), 7, 3000)
    twin.advance(7, 3000)
    assert twin.best_rank == 7
    assert_same(arena, twin)


@given(
    st.tuples(*[st.integers(1, 3)] * 3),
    st.sampled_from(["", ":tri-left", ":tri-right", ":tri-out"]),
    st.integers(0, 1 << 40),
    st.sampled_from([0, 64]),
)
@settings(max_examples=25, deadline=None)
def test_every_step_keeps_the_tensor(shape, form, seed, room):
    if form:
        shape = (shape[0],) * 3
    start = naive("x".join(map(str, shape)) + form)
    arena = make_arena(start, seed, 0, room)
    for _ in range(40):
        advance(arena, HASTY, 0, 25)
        now = current_terms(arena, start)
        assert holds(now)
        assert (now.words != 0).all()


def test_the_active_sets_stay_what_they_mean():
    start = naive("3x3x3")
    arena = make_arena(start, 3)
    for _ in range(200):
        advance(arena, HASTY, 0, 17)
        fresh = make_arena(current_terms(arena, start), 0)
        shares = sum(int(word).bit_count() for word in fresh.active)
        assert sum(int(word).bit_count() for word in arena.active) == shares
        assert int(arena.live[0]).bit_count() == int(np.count_nonzero(arena.x[:64]))


@pytest.mark.parametrize(
    ("name", "rank", "limit"), [("2x2x2", 7, 300_000), ("3x3x3", 23, 5_000_000), ("3x3x3:tri-left", 17, 5_000_000)]
)
def test_twenty_seeds_succeed(name, rank, limit):
    start = naive(name)
    for seed in range(1, 21):
        arena = make_arena(start, seed)
        advance(arena, Policy(), rank, limit)
        assert arena.tally[BEST] <= rank, seed
        assert holds(best_terms(arena, start))


def test_the_course_depends_on_seed_and_index_only():
    start = naive("3x3x3")

    def course(seed, index, chunk):
        arena = make_arena(start, seed, index)
        for _ in range(0, 60_000, chunk):
            advance(arena, Policy(), 0, chunk)
        return arena.x.tolist(), arena.tally.tolist()

    assert course(1, 0, 60_000) == course(1, 0, 1_000)
    assert course(1, 0, 60_000) != course(1, 1, 60_000)
    assert course(1, 0, 60_000) != course(2, 0, 60_000)


def test_rewind_forgets_the_best_but_draws_on():
    start = naive("2x2x2")
    arena = make_arena(start, 1)
    advance(arena, Policy(), 7, 300_000)
    rewind(arena)
    assert arena.tally[BEST] == 8
    assert np.array_equal(current_terms(arena, start).words, start.words)
    advance(arena, Policy(), 7, 300_000)
    assert arena.tally[BEST] == 7


def test_a_zero_factor_is_no_start():
    start = naive("2x2x2")
    words = np.concatenate([start.words, np.zeros((3, 1), np.uint64)], axis=1)
    with pytest.raises(PlanError, match="zero factor"):
        make_arena(PackedTerms(start.target, words), 1)


@pytest.mark.slow
@pytest.mark.parametrize("room", [150, 400])
def test_four_and_eight_words(room):
    start = naive("3x3x3")
    arena = make_arena(start, 1, 0, room)
    advance(arena, Policy(), 23, 5_000_000)
    assert holds(best_terms(arena, start))
    assert arena.tally[BEST] == 23
