"""The walk over {-1, 0, 1}: its plain twin, validity over Z at every step, and how well it does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.errors import PlanError
from lcma.schemes_db import Scheme, Z, parse_target
from lcma.search import make_walker
from lcma.search.arena import BEST, RANK, best_terms, current_terms, make_arena
from lcma.search.policy import Policy
from lcma.search.ternary import TernaryTerms
from lcma.search.ternary_moves import plus, settle
from lcma.search.ternary_reference import TernaryReferenceWalk, packed
from lcma.search.walk import advance
from lcma.search.walker import pack_start

HASTY = Policy(plus_after=40, margin=2, restart_after=700, trap=3)


def naive(name):
    return TernaryTerms.naive(parse_target(name))


def assert_same(arena, twin):
    slots = [
        [0, 0, 0, 0] if term is None else [*map(packed, term[:3]), 32 if term[3] < 0 else 0] for term in twin.slots
    ]
    rows = arena.x.reshape(4, -1).T
    assert rows[:, :3].tolist() == [slot[:3] for slot in slots]
    taken = rows[:, 0] != 0
    assert rows[taken, 3].tolist() == [slot[3] for slot in slots if slot[0]]
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


@pytest.mark.parametrize(
    ("name", "seed", "room", "steps", "chunk"),
    [
        ("2x2x2", 1, 0, 1500, 1),
        ("2x2x2", 2, 64, 1500, 7),
        ("3x3x3:tri-left", 1, 0, 800, 10),
        ("2x2x3", 3, 0, 1200, 5),
        ("3x3x3", 1, 64, 400, 10),
        ("1x1x1", 1, 0, 50, 1),
    ],
)
def test_step_for_step_as_the_reference(name, seed, room, steps, chunk):
    start = naive(name)
    arena, twin = make_arena(start, seed, 5, room), TernaryReferenceWalk(start, seed, 5, room, HASTY)
    assert_same(arena, twin)
    for _ in range(0, steps, chunk):
        advance(arena, HASTY, 0, chunk)
        twin.advance(0, chunk)
        assert_same(arena, twin)


@given(
    st.tuples(*[st.integers(1, 3)] * 3),
    st.sampled_from(["", ":tri-left", ":tri-right", ":tri-out"]),
    st.integers(0, 1 << 40),
    st.sampled_from([0, 64]),
)
@settings(max_examples=25, deadline=None)
def test_every_step_keeps_the_tensor_over_the_integers(shape, form, seed, room):
    if form:
        shape = (shape[0],) * 3
    start = naive("x".join(map(str, shape)) + form)
    arena = make_arena(start, seed, 0, room)
    for _ in range(40):
        advance(arena, HASTY, 0, 25)
        now = current_terms(arena, start)
        assert now.holds()
        assert (now.words != 0).all()


@pytest.mark.parametrize(("name", "rank", "limit"), [("2x2x2", 7, 300_000), ("3x3x3:tri-left", 17, 20_000_000)])
def test_ten_seeds_succeed(name, rank, limit):
    start = naive(name)
    for seed in range(1, 11):
        arena = make_arena(start, seed)
        advance(arena, Policy(plus_after=10_000), rank, limit)
        assert arena.tally[BEST] <= rank, seed
        assert best_terms(arena, start).holds()


def test_a_walker_finds_a_certified_scheme_over_z():
    target = parse_target("3x3x3")
    walker = make_walker("flip-zt", pack_start("flip-zt", target), 1, 0, Policy(plus_after=10_000))
    walker.advance(23, 50_000_000)
    scheme = walker.terms().to_scheme()
    assert (scheme.rank, scheme.ring, scheme.ternary) == (23, Z, True)
    assert certify(scheme).digest == scheme.digest


def test_packing_is_undone_by_unpacking():
    terms = naive("2x3x2")
    arena = make_arena(terms, 4, 0, 64)
    advance(arena, HASTY, 0, 500)
    now = current_terms(arena, terms)
    again = TernaryTerms.from_scheme(now.to_scheme())
    assert np.array_equal(again.words, now.words)
    restarted = make_arena(again, 1)
    assert current_terms(restarted, again).to_scheme() == now.to_scheme()


def test_opposite_terms_cancel_and_equal_ones_stay():
    terms = naive("2x2x2")
    half, extra = np.uint64(32), np.array([[5], [6], [7]], dtype=np.uint64)
    negative = extra.copy()
    negative[1] <<= half
    for other, rank in ((negative, 8), (extra, 10)):
        arena = make_arena(TernaryTerms(terms.target, np.concatenate([terms.words, extra, other], axis=1)), 1)
        settle(arena)
        assert arena.tally[RANK] == rank


@pytest.mark.parametrize("name", ["2x2x2", "3x3x3:tri-out"])
def test_plus_adds_one_term_and_keeps_the_tensor(name):
    terms = naive(name)
    for seed in range(20):
        arena = make_arena(terms, seed, 0, 2)
        advance(arena, Policy(plus_after=1 << 40), 0, 30)
        rank = arena.tally[RANK]
        assert plus(arena)
        assert arena.tally[RANK] == rank + 1
        assert current_terms(arena, terms).holds()


def test_what_does_not_fit_is_refused():
    with pytest.raises(PlanError, match="36 blocks"):
        naive("6x6x6")
    target = parse_target("1x1x1")
    with pytest.raises(PlanError, match="other than -1, 0 and 1"):
        TernaryTerms.from_scheme(Scheme.from_arrays(target, [[[2]]], [[[1]]], [[[1]]]))
    zero = TernaryTerms(target, np.zeros((3, 1), dtype=np.uint64))
    with pytest.raises(PlanError, match="zero factor"):
        make_arena(zero, 1)
