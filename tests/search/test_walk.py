"""The compiled walk over every ring: its plain twin, validity at every step, and how well it does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.schemes_db.costs import full_and_half
from lcma.search import make_walker
from lcma.search.flipgraph.arena import best_terms, current_terms, make_arena
from lcma.search.flipgraph.constraints import BEST_FULL, FULL
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import BEST, RANK
from lcma.search.flipgraph.walk import advance, begin
from lcma.search.flipgraph.walkers import pack_start
from lcma.search.terms.packed import PackedTerms
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms

from .flip_reference import ReferenceWalk, packed
from .plain_terms import holds

HASTY = Policy(plus_after=40, margin=2, restart_after=700, trap=3)
BIASED = replace(HASTY, chance=0.3, full=9)
SPARSE = replace(HASTY, nonzeros=2)
RINGS = (PackedTerms, TernaryTerms, TermsModulo3)


def naive(ring, name):
    return ring.naive(parse_target(name))


def words_of(term, planes):
    if term is None:
        return [0] * (3 if planes == 1 else 7)
    words = [packed(values) for values in term[:3]]
    first, second = ([word[plane] for word in words] for plane in (0, 1))
    return first if planes == 1 else [*first, *second, (1 << 64) - 1 if term[3] < 0 else 0]


@pytest.fixture
def assert_same(counters_of):
    def same(arena, twin, start):
        rows = arena.x.reshape(-1, 64 * len(arena.kind.lanes)).T
        assert rows.tolist() == [words_of(term, start.planes) for term in twin.slots]
        assert int(arena.rng[0]) == twin.rng
        assert arena.counters.tolist() == counters_of(twin)
        best = arena.best.reshape(len(rows.T), -1)
        assert best[:, best[0] != 0].T.tolist() == [words_of(term, start.planes) for term in twin.best]
        if twin.policy.guarded:
            assert (arena.guard[FULL], arena.guard[BEST_FULL]) == (twin.full, twin.best_full)

    return same


CASES = [
    ("2x2x2", 1, 0, 1200, 8),
    ("2x2x2", 2, 64, 1200, 40),
    ("3x3x3:tri-left", 1, 0, 800, 40),
    ("2x2x3", 3, 0, 900, 30),
    ("3x3x3", 4, 64, 200, 40),
    ("1x1x1", 1, 0, 50, 5),
]


SLOW = pytest.mark.slow
TWINS = [
    # Two words a set of slots are another walk to compile, for every ring.
    pytest.param(ring, *case, marks=[SLOW] if case[2] and ring is not PackedTerms else [])
    for ring in RINGS
    for case in CASES
]


@pytest.mark.parametrize(("ring", "name", "seed", "room", "steps", "chunk"), TWINS)
def test_step_for_step_as_the_reference(assert_same, ring, name, seed, room, steps, chunk):
    """Compared once in a chunk of steps: a walk that took another step draws other numbers ever after."""
    start = naive(ring, name)
    arena, twin = make_arena(start, seed, 5, room), ReferenceWalk(start, seed, 5, room, HASTY)
    assert_same(arena, twin, start)
    for _ in range(0, steps, chunk):
        advance(arena, HASTY.numbers, 0, chunk)
        twin.advance(0, chunk)
        assert_same(arena, twin, start)


@pytest.mark.parametrize(
    ("ring", "name", "policy"),
    [
        (PackedTerms, "3x3x3:tri-left", BIASED),
        (PackedTerms, "3x3x3:tri-out", BIASED),
        (PackedTerms, "2x3x3", SPARSE),
        pytest.param(TernaryTerms, "3x3x3:tri-right", BIASED, marks=pytest.mark.slow),
    ],
)
def test_guarded_walks_too(assert_same, ring, name, policy):
    start = naive(ring, name)
    arena, twin = make_arena(start, 3, 0, 0, policy), ReferenceWalk(start, 3, 0, 0, policy)
    for _ in range(30):
        advance(arena, policy.numbers, 0, 25)
        twin.advance(0, 25)
        assert_same(arena, twin, start)
    assert 0 < twin.flips < twin.steps


def test_the_reference_reaches_the_goal_with_the_walk(assert_same):
    start = naive(PackedTerms, "2x2x2")
    arena, twin = make_arena(start, 8), ReferenceWalk(start, 8)
    advance(arena, Policy().numbers, 7, 3000)
    twin.advance(7, 3000)
    assert twin.best_rank == 7
    assert_same(arena, twin, start)


@given(
    st.sampled_from(RINGS),
    st.tuples(*[st.integers(1, 3)] * 3),
    st.sampled_from(["", ":tri-left", ":tri-right", ":tri-out"]),
    st.integers(0, 1 << 40),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_every_step_keeps_the_tensor(ring, shape, form, seed, wide):
    if form:
        shape = (shape[0],) * 3
    start = naive(ring, "x".join(map(str, shape)) + form)
    arena = make_arena(start, seed, 0, 64 if wide and ring is PackedTerms else 0)
    for _ in range(40):
        advance(arena, HASTY.numbers, 0, 25)
        now = current_terms(arena, start)
        assert holds(now)
        assert now.rank == arena.counters[RANK]
        assert now.support.all()


@pytest.mark.parametrize("ring", [TernaryTerms, pytest.param(TermsModulo3, marks=SLOW)])
def test_factors_of_more_than_half_a_word(ring):
    start = naive(ring, "2x8x8")
    arena = make_arena(start, 1, 0, 0)
    for _ in range(20):
        advance(arena, HASTY.numbers, 0, 2_000)
        assert holds(current_terms(arena, start))
    assert (current_terms(arena, start).words >> np.uint64(32)).any()


def test_the_active_sets_stay_what_they_mean():
    start = naive(PackedTerms, "3x3x3")
    arena = make_arena(start, 3)
    for _ in range(200):
        advance(arena, HASTY.numbers, 0, 17)
        fresh = make_arena(current_terms(arena, start), 0)
        shares = sum(int(word).bit_count() for word in fresh.active)
        assert sum(int(word).bit_count() for word in arena.active) == shares
        assert int(arena.live[0]).bit_count() == int(np.count_nonzero(arena.x[:64]))


@pytest.mark.parametrize(
    ("ring", "name", "rank", "limit", "plus_after"),
    [
        (PackedTerms, "2x2x2", 7, 300_000, 5_000),
        (PackedTerms, "3x3x3", 23, 5_000_000, 5_000),
        (PackedTerms, "3x3x3:tri-left", 17, 5_000_000, 5_000),
        (TernaryTerms, "2x2x2", 7, 300_000, 10_000),
        (TernaryTerms, "3x3x3:tri-left", 17, 20_000_000, 10_000),
        (TermsModulo3, "2x2x2", 7, 1_000_000, 10_000),
    ],
)
def test_ten_seeds_succeed(ring, name, rank, limit, plus_after):
    start = naive(ring, name)
    for seed in range(1, 11):
        arena = make_arena(start, seed)
        advance(arena, Policy(plus_after=plus_after).numbers, rank, limit)
        assert arena.counters[BEST] <= rank, seed
        assert holds(best_terms(arena, start))


@pytest.mark.parametrize("form", ["tri-left", "tri-right", "tri-out"])
def test_a_biased_walk_finds_few_full_products(form):
    policy = Policy(plus_after=20_000, margin=3, chance=0.15, full=9)
    target = parse_target(f"3x3x3:{form}")
    walker = make_walker("flip-half", pack_start("flip-half", target), 1, 0, policy)
    walker.advance(17, 20_000_000)
    assert walker.rank == 17
    assert full_and_half(walker.terms().to_scheme()) == (9, 8)


def test_a_biased_walk_needs_half_blocks():
    with pytest.raises(PlanError, match="no half blocks"):
        make_walker("flip-half", pack_start("flip-half", parse_target("2x2x2")), 1, 0, Policy())


def test_no_factor_has_more_nonzeros_than_allowed():
    start = naive(PackedTerms, "3x3x3")
    policy = replace(HASTY, nonzeros=3, plus_after=500)
    walker = make_walker("flip", start, 1, 0, policy)
    for _ in range(20):
        walker.advance(0, 5_000)
        assert max(int(word).bit_count() for word in walker._arena.x) == 3
    with pytest.raises(PlanError, match="3 nonzeros"):
        make_walker("flip", walker.terms(), 1, 0, replace(policy, nonzeros=2))


@pytest.mark.parametrize("ring", RINGS)
def test_kept_terms_stay(ring):
    start = naive(ring, "2x2x4")
    walker = make_walker("flip", start, 2, 0, Policy(plus_after=20_000, keep=2))
    walker.advance(15, 2_000_000)
    terms = walker.terms()
    assert terms.rank == walker.rank == 15
    assert np.array_equal(terms.words[:, :2], start.words[:, :2])
    assert holds(terms)
    walker.start_from(terms)
    with pytest.raises(PlanError, match="keeps terms"):
        walker.start_from(type(start)(start.target, start.words[:, ::-1].copy()))
    with pytest.raises(PlanError, match="none would be left"):
        make_walker("flip", start, 2, 0, Policy(keep=16))


def test_the_course_depends_on_seed_and_index_only():
    start = naive(PackedTerms, "3x3x3")

    def course(seed, index, chunk):
        arena = make_arena(start, seed, index)
        for _ in range(0, 60_000, chunk):
            advance(arena, Policy().numbers, 0, chunk)
        return arena.x.tolist(), arena.counters.tolist()

    assert course(1, 0, 60_000) == course(1, 0, 1_000)
    assert course(1, 0, 60_000) != course(1, 1, 60_000)
    assert course(1, 0, 60_000) != course(2, 0, 60_000)


def test_a_new_beginning_forgets_the_best_but_draws_on():
    start = naive(PackedTerms, "2x2x2")
    arena = make_arena(start, 1)
    advance(arena, Policy().numbers, 7, 300_000)
    begin(arena, Policy().numbers)
    assert arena.counters[BEST] == 8
    assert np.array_equal(current_terms(arena, start).words, start.words)
    advance(arena, Policy().numbers, 7, 300_000)
    assert arena.counters[BEST] == 7


@pytest.mark.parametrize("ring", RINGS)
def test_a_zero_factor_is_no_start(ring):
    start = naive(ring, "2x2x2")
    words = np.concatenate([start.words, np.zeros((len(start.words), 1), np.uint64)], axis=1)
    with pytest.raises(PlanError, match="zero factor"):
        make_arena(ring(start.target, words), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("ring", "room"), [*((ring, 150) for ring in RINGS), (TernaryTerms, 400)])
def test_four_and_eight_words(ring, room):
    start = naive(ring, "3x3x3")
    arena = make_arena(start, 1, 0, room)
    advance(arena, Policy(plus_after=5_000 if ring is PackedTerms else 20_000).numbers, 23, 60_000_000)
    assert holds(best_terms(arena, start))
    assert arena.counters[BEST] == 23


def test_no_two_arrays_of_walkers_share_a_cache_line():
    start = naive(PackedTerms, "3x3x3")
    arenas = [make_arena(start, 1, index) for index in range(3)]
    lines = [
        set(range(array.ctypes.data // 64, (array.ctypes.data + array.nbytes - 1) // 64 + 1))
        for arena in arenas
        for name in ("x", "buckets", "active", "live", "best", "rng", "counters", "guard", "scratch")
        for array in (getattr(arena, name),)
    ]
    assert sum(map(len, lines)) == len(set().union(*lines))
