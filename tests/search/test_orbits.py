"""The symmetric walk: its plain twin, symmetry and validity at every step, and how well it does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.schemes_db.algebra import naive
from lcma.search import RunConfig, make_walker
from lcma.search.flipgraph.moves import plus
from lcma.search.flipgraph.orbit_flips import MAX_CUBES
from lcma.search.flipgraph.orbit_walker import make_orbit_arena, orbits_in
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import BEST, RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.flipgraph.walkers import pack_start, walk_policy
from lcma.search.terms.bits import reverse_bits
from lcma.search.terms.involution import mirrored_layout
from lcma.search.terms.orbits import OrbitTerms, parse_cubes, reversible, transposed, unfolded
from lcma.search.terms.packed import PackedTerms

from .orbit_reference import OrbitReferenceWalk
from .plain_terms import holds

HASTY = Policy(plus_after=40, margin=7, restart_after=700, trap=3)
WHOLE = replace(HASTY, orbits="whole")
SLOW = pytest.mark.slow


def square(n, reverse=False):
    make = OrbitTerms.naive_reversible if reverse else OrbitTerms.naive
    return make(parse_target(f"{n}x{n}x{n}"))


@pytest.mark.parametrize(
    ("n", "seed", "room", "steps", "chunk", "reverse", "policy"),
    [
        (2, 1, 2, 1200, 1, False, HASTY),
        (3, 2, 2, 600, 7, False, HASTY),
        (4, 3, 2, 200, 10, False, HASTY),
        pytest.param(2, 4, 2, 1200, 1, True, HASTY, marks=SLOW),
        pytest.param(3, 5, 2, 800, 7, True, HASTY, marks=SLOW),
        pytest.param(4, 6, 2, 300, 10, True, HASTY, marks=SLOW),
        (2, 4, 2, 1200, 1, True, WHOLE),
        (3, 5, 2, 800, 7, True, WHOLE),
        (4, 7, 2, 300, 10, True, WHOLE),
        pytest.param(3, 1, 70, 150, 10, False, HASTY, marks=SLOW),
    ],
)
def test_step_for_step_as_the_reference(counters_of, n, seed, room, steps, chunk, reverse, policy):
    start = square(n, reverse)
    arena = make_orbit_arena(start, seed, 5, room, policy, reverse)
    twin = OrbitReferenceWalk(start, seed, 5, room, policy, reverse)
    for _ in range(0, steps, chunk):
        advance(arena, policy.numbers, 0, chunk)
        twin.advance(0, chunk)
        nodes, cubes = arena.x[:-MAX_CUBES].reshape(3, -1), arena.x[-MAX_CUBES:]
        assert nodes[:, nodes[0] != 0].T.tolist() == [twin.term(slot) for slot in twin.live]
        assert sorted(cubes[cubes != 0].tolist()) == sorted(twin.cubes)
        assert int(arena.rng[0]) == twin.rng
        assert arena.counters.tolist() == counters_of(twin)


@pytest.mark.parametrize("kind", ["c3", pytest.param("c3z2", marks=SLOW), "whole"])
@given(st.integers(1, 4), st.integers(0, 1 << 40), st.sampled_from([0, 2]))
@settings(max_examples=15, deadline=None)
def test_every_step_keeps_the_tensor(kind, n, seed, room):
    reverse = kind != "c3"
    start = square(n, reverse)
    arena = make_orbit_arena(start, seed, 0, room, WHOLE if kind == "whole" else HASTY, reverse)
    for _ in range(40):
        advance(arena, HASTY.numbers, 0, 25)
        now = orbits_in(arena.x, arena, start)
        assert now.rank == arena.counters[RANK]
        assert holds(now.packed())


def test_whole_orbits_keep_six_terms_and_the_cubes_of_the_start():
    start = square(4, reverse=True)
    policy = Policy(plus_after=6_000, margin=12, orbits="whole")
    arena = make_orbit_arena(start, 1, 0, 8, policy, True)
    advance(arena, policy.numbers, 50, 20_000_000)
    found = orbits_in(arena.best, arena, start)
    assert found.rank <= 50
    assert sorted(found.cubes.tolist()) == sorted(start.cubes.tolist())
    assert (found.rank - len(found.cubes)) % 6 == 0
    assert holds(found.packed())


def test_orbits_stay_whole_in_walks_under_a_reversal_only():
    with pytest.raises(PlanError, match="those of walks flip-c3z2 and flip-z2"):
        make_walker("flip-c3", square(3), 1, 0, Policy(orbits="whole"))
    with pytest.raises(PlanError, match="choose any or whole"):
        make_walker("flip-c3z2", square(3, reverse=True), 1, 0, Policy(orbits="all"))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_the_naive_start_holds_and_unpacks_again(n):
    terms = square(n)
    assert holds(terms.packed())
    assert len(terms.cubes) == (n + 1) // 2
    again = OrbitTerms.from_scheme(terms.to_scheme())
    assert again.rank == terms.rank == terms.packed().rank
    assert again.to_scheme() == terms.to_scheme()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8])
def test_the_reversible_start_holds_and_unfolds_again(n):
    terms = square(n, reverse=True)
    if terms.rank <= 512:
        assert holds(terms.packed())
    again = unfolded(terms.target, *reversible(terms))
    assert sorted(again.orbits.T.tolist()) != [] or n == 1
    assert again.rank == terms.rank
    assert again.rank > 512 or again.to_scheme() == terms.to_scheme()


def test_reversing_the_bits_reverses_the_matrix():
    for n in range(1, 9):
        rng = np.random.default_rng(n)
        matrix = rng.integers(0, 2, (n, n))
        words = [
            np.array([sum(int(bit) << place for place, bit in enumerate(m.ravel()))], dtype=np.uint64)
            for m in (matrix, matrix[::-1, ::-1])
        ]
        first, second = (mirrored_layout(word, range(n * n)[::-1]) for word in words)
        assert reverse_bits(first[0]) == second[0]
        assert mirrored_layout(first, range(n * n)[::-1], back=True) == words[0]


@pytest.mark.slow
def test_a_reversible_walk_finds_strassen():
    for seed in range(1, 6):
        walker = make_walker(
            "flip-c3z2", pack_start("flip-c3z2", parse_target("2x2x2")), seed, 0, Policy(plus_after=2_000, margin=7)
        )
        walker.advance(7, 100_000)
        assert walker.rank == 7
        scheme = walker.terms().to_scheme()
        assert certify(scheme).digest == scheme.digest
        assert OrbitTerms.from_scheme(scheme).rank == 7


def test_any_symmetric_scheme_is_a_start():
    scheme = naive(parse_target("3x3x3"))
    terms = OrbitTerms.from_scheme(scheme)
    assert (terms.rank, len(terms.cubes)) == (27, 3)
    arena = make_orbit_arena(terms, 1)
    advance(arena, HASTY.numbers, 0, 500)
    assert holds(orbits_in(arena.x, arena, terms).packed())


def test_what_has_no_symmetry_is_refused():
    with pytest.raises(PlanError, match="no cyclic symmetry"):
        OrbitTerms.naive(parse_target("2x2x3"))
    with pytest.raises(PlanError, match="no cyclic symmetry"):
        OrbitTerms.naive(parse_target("3x3x3:tri-left"))
    with pytest.raises(PlanError, match="not symmetric under reversal"):
        make_walker("flip-c3z2", square(3), 1, 0, Policy())
    with pytest.raises(PlanError, match="no bounds"):
        make_walker("flip-c3", square(3), 1, 0, Policy(nonzeros=3))
    walker = make_walker("flip", pack_start("flip", parse_target("3x3x3")), 1, 0, Policy())
    walker.advance(25, 1_000_000)
    with pytest.raises(PlanError, match="not symmetric"):
        OrbitTerms.from_scheme(walker.terms().to_scheme())


@pytest.mark.parametrize(("n", "rank", "limit"), [(2, 7, 100_000), (3, 23, 5_000_000)])
def test_ten_seeds_succeed(n, rank, limit):
    for seed in range(1, 11):
        arena = make_orbit_arena(square(n), seed, 0, 3)
        advance(arena, walk_policy("flip-c3").numbers, rank, limit)
        assert arena.counters[BEST] <= rank, seed
        assert holds(orbits_in(arena.best, arena, square(n)).packed())


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
        assert arena.counters[RANK] == terms.rank + 3
        assert holds(orbits_in(arena.x, arena, terms).packed())


def test_transposing_twice_changes_nothing():
    words = np.array([1, 2, 4, 8, 0b101, 511], dtype=np.uint64)
    assert transposed(words, 3).tolist() == [1, 8, 64, 2, 0b1000001, 511]
    assert np.array_equal(transposed(transposed(words, 3), 3), words)


def test_cubes_of_the_naive_start_are_a_choice():
    target = parse_target("6x6x6")
    for make, reverse in ((OrbitTerms.naive, False), (OrbitTerms.naive_reversible, True)):
        start = make(target, parse_cubes("12,34,56"))
        assert sorted(start.cubes.tolist()) == sorted((1 << 7 * i) | (1 << 7 * (i + 1)) for i in (0, 2, 4))
        assert holds(start.packed())
        if reverse:
            reversible(start)
    assert make(target, parse_cubes("16,25,34")).rank == make(target).rank
    config = RunConfig("6x6x6", 153, "Z2", walk="flip-c3z2", cubes="12,34,56")
    assert config.start_rank == start.rank
    for cubes, walk, message in (
        ("12,34", "flip-c3z2", "indices 1 to 6"),
        ("13,24,56", "flip-c3z2", "takes these cubes to others"),
        ("1x", "flip-c3", "not understood"),
        ("12,34,56", "flip", "name such a walk"),
    ):
        with pytest.raises(PlanError, match=message):
            RunConfig("6x6x6", 153, "Z2", walk=walk, cubes=cubes)
