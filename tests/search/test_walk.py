"""The compiled walks over every ring and symmetry: their plain twins, validity at every step, and how well they do.

Four kinds of walkers run in the fast suite; the others take seconds each to compile.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.search import make_walker
from lcma.search.flipgraph.arena import make_arena, make_orbit_arena, terms_in
from lcma.search.flipgraph.constraints import BEST_FULL, FULL
from lcma.search.flipgraph.moves import plus
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import BEST, RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.terms.packed import PackedTerms, SchemeTerms
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms

from ..refusal import refuses
from .flip_reference import COUNTERS, ReferenceWalk, packed
from .orbit_reference import OrbitReferenceWalk
from .plain_terms import holds
from .searches import SEARCHES
from .starts import naive_terms, walked_terms

POLICIES = {name: Policy(**values) for name, values in SEARCHES["policies"].items()}
HASTY = POLICIES["hasty"]
SLOW = pytest.mark.slow
RINGS = {"flip": PackedTerms, "flip-zt": TernaryTerms, "flip-z3": TermsModulo3}
FAST = ("flip", "flip-zt", "flip-c3")
WHOLE = [pytest.param(f"{walk} whole", marks=SLOW) for walk in ("flip-c3z2", "flip-z2")]
WALKS = [pytest.param(walk, marks=[] if walk in FAST else SLOW) for walk in (*RINGS, "flip-c3", "flip-c3z2", "flip-z2")]


def plain(terms):
    """The terms one by one."""
    return terms if isinstance(terms, SchemeTerms) else terms.packed()


def arena_of(walk, start, seed, room=0, policy=HASTY, index=0):
    if isinstance(start, SchemeTerms):
        return make_arena(start, seed, index, room, policy)
    return make_orbit_arena(start, seed, index, room, policy)


def words_of(term, planes):
    if term is None:
        return [0] * (3 if planes == 1 else 7)
    words = [packed(values) for values in term[:3]]
    first, second = ([word[plane] for word in words] for plane in (0, 1))
    return first if planes == 1 else [*first, *second, (1 << 64) - 1 if term[3] < 0 else 0]


class Pair:
    """A walk and its plain twin, step for step."""

    def __init__(self, walk, name, seed, room, policy, index=5):
        self.policy, start = policy, walked_terms(name, walk)
        self.arena, self.planes = arena_of(walk, start, seed, room, policy, index), getattr(start, "planes", 0)
        if self.planes:
            self.twin = ReferenceWalk(start, seed, index, room, policy)
        else:
            self.twin = OrbitReferenceWalk(start, seed, index, room, policy)

    def advance(self, steps, goal=0):
        advance(self.arena, self.policy.numbers, goal, steps)
        self.twin.advance(goal, steps)

    def assert_same(self):
        arena, twin = self.arena, self.twin
        assert int(arena.rng[0]) == twin.rng
        assert arena.counters.tolist() == [getattr(twin, name) for name in COUNTERS]
        if self.planes:
            rows = arena.x.reshape(-1, 64 * len(arena.live)).T
            assert rows.tolist() == [words_of(term, self.planes) for term in twin.slots]
            best = arena.best.reshape(len(rows.T), -1)
            assert best[:, best[0] != 0].T.tolist() == [words_of(term, self.planes) for term in twin.best]
        else:
            nodes, cubes = np.split(arena.x, [192 * len(arena.live)])
            nodes = nodes.reshape(3, -1)
            assert nodes[:, nodes[0] != 0].T.tolist() == [twin.term(slot) for slot in twin.live]
            assert sorted(cubes[cubes != 0].tolist()) == sorted(twin.cubes)
        if twin.policy.guarded:
            assert (arena.guard[FULL], arena.guard[BEST_FULL]) == (twin.full, twin.best_full)


BESIDE = SEARCHES["beside"]


@pytest.mark.parametrize(
    ("walk", "name", "seed", "room", "steps", "chunk", "policy"),
    [*BESIDE["walks"], *(pytest.param(*case, marks=SLOW) for case in BESIDE["walks-slow"])],
)
def test_step_for_step_as_the_reference(walk, name, seed, room, steps, chunk, policy):
    """Compared once in a chunk of steps: a walk that took another step draws other numbers ever after."""
    pair = Pair(walk, name, seed, room, POLICIES[policy])
    pair.assert_same()
    for _ in range(0, steps, chunk):
        pair.advance(chunk)
        pair.assert_same()
    assert pair.twin.flips > 0 or name == "1x1x1"
    assert pair.twin.flips < pair.twin.steps or not pair.policy.guarded


FORMS = st.sampled_from(["", ":tri-left", ":tri-right", ":tri-out"])


@pytest.mark.parametrize("walk", [*WALKS, *WHOLE])
@given(st.tuples(*[st.integers(1, 4)] * 3), FORMS, st.integers(0, 1 << 40), st.sampled_from([0, 2]))
@settings(max_examples=15, deadline=None)
def test_every_step_keeps_the_tensor(walk, shape, form, seed, room):
    walk, _, orbits = walk.partition(" ")
    if form or "c3" in walk:
        shape = (shape[0],) * 3
    name = "x".join(map(str, shape)) + (form if walk in RINGS else "")
    start, policy = walked_terms(name, walk), replace(HASTY, margin=5, orbits=orbits or "any")
    arena = arena_of(walk, start, seed, 0 if walk in RINGS else room, policy)
    for _ in range(40):
        advance(arena, policy.numbers, 0, 25)
        now = terms_in(arena.x, arena, start)
        assert holds(plain(now))
        assert now.rank == arena.counters[RANK]
        assert plain(now).support.all()
        # A pair never becomes its own image. Two terms that are may become one or three; of a reversal there is one.
        if walk == "flip-z2" and orbits:
            assert np.count_nonzero(now.own) == np.count_nonzero(start.own)


@pytest.mark.parametrize("walk", ["flip-zt", pytest.param("flip-z3", marks=SLOW)])
def test_factors_of_more_than_half_a_word(walk):
    start = naive_terms("1x8x8", walk)
    arena = make_arena(start, 1)
    for _ in range(20):
        advance(arena, HASTY.numbers, 0, 2_000)
        assert holds(terms_in(arena.x, arena, start))
    assert (terms_in(arena.x, arena, start).words >> np.uint64(32)).any()


@SLOW
def test_whole_orbits_keep_six_terms_and_the_cubes_of_the_start():
    start, policy = walked_terms("4x4x4", "flip-c3z2"), Policy(plus_after=6_000, margin=12, orbits="whole")
    arena = arena_of("flip-c3z2", start, 1, 8, policy)
    advance(arena, policy.numbers, 50, 20_000_000)
    found = terms_in(arena.best, arena, start)
    assert found.rank <= 50
    assert sorted(found.cubes.tolist()) == sorted(start.cubes.tolist())
    assert (found.rank - len(found.cubes)) % 6 == 0
    assert holds(found.packed())


def test_no_factor_has_more_nonzeros_than_allowed():
    walker = make_walker("flip", naive_terms("3x3x3"), 1, 0, replace(HASTY, nonzeros=3, plus_after=500))
    for _ in range(20):
        walker.advance(0, 5_000)
        assert max(int(word).bit_count() for word in walker._arena.x) == 3


@pytest.mark.parametrize("walk", WALKS[:3])
def test_kept_terms_stay(walk):
    start = naive_terms("2x2x4", walk)
    walker = make_walker("flip", start, 2, 0, Policy(plus_after=20_000, keep=2))
    walker.advance(15, 2_000_000)
    terms = walker.terms()
    assert terms.rank == walker.rank == 15
    assert np.array_equal(terms.words[:, :2], start.words[:, :2])
    assert holds(terms)
    walker.start_from(terms)
    refuses("keeps terms", walker.start_from, type(start)(start.target, start.words[:, ::-1].copy()))


@SLOW
@pytest.mark.parametrize(("walk", "room"), [*((walk, 150) for walk in RINGS), ("flip-zt", 400)])
def test_four_and_eight_words(walk, room):
    start = naive_terms("3x3x3", walk)
    arena = make_arena(start, 1, 0, room)
    advance(arena, Policy(plus_after=5_000 if walk == "flip" else 20_000).numbers, 23, 60_000_000)
    assert holds(terms_in(arena.best, arena, start))
    assert arena.counters[BEST] == 23


@pytest.mark.parametrize("walk", WALKS)
def test_plus_adds_one_element_and_keeps_the_tensor(walk):
    start = walked_terms("3x3x3" if "c3" in walk else "2x2x2", walk)
    for seed in range(20):
        arena = arena_of(walk, start, seed, 2)
        advance(arena, Policy(plus_after=1 << 40).numbers, 0, 30)
        rank = arena.counters[RANK]
        assert plus(arena)
        assert arena.counters[RANK] - rank in {1: {1}, 2: {1, 2}, 3: {3}, 6: {3, 6}}[len(arena.kind.turns)]
        assert holds(plain(terms_in(arena.x, arena, start)))


def test_no_two_arrays_of_walkers_share_a_cache_line():
    start = naive_terms("3x3x3")
    arenas = [make_arena(start, 1, index) for index in range(3)]
    lines = [
        set(range(array.ctypes.data // 64, (array.ctypes.data + array.nbytes - 1) // 64 + 1))
        for arena in arenas
        for name in ("x", "buckets", "active", "live", "best", "rng", "counters", "guard", "scratch")
        for array in (getattr(arena, name),)
    ]
    assert sum(map(len, lines)) == len(set().union(*lines))
