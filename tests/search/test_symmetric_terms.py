"""Terms that are invariant under a cyclic shift or an involution: naive starts, compositions, round trips."""

import math

import numpy as np
import pytest

from lcma import certify, resolve
from lcma.schemes_db import Z2, Scheme, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.constructions import change_of_basis
from lcma.search import Policy, make_walker
from lcma.search.flipgraph.walkers import walk_policy
from lcma.search.format_moves.involutions import involutions
from lcma.search.format_moves.symmetric import COPIES, invariant_copies, is_invariant, nested_sum, symmetric_starts
from lcma.search.terms.bits import reverse_bits
from lcma.search.terms.involution import mirrored_layout
from lcma.search.terms.orbits import OrbitTerms, PairTerms, ReversibleTerms
from lcma.search.terms.packed import PackedTerms

from ..refusal import refuses
from .plain_terms import holds
from .starts import walked

OTHERS = {"2x2x3": (1, 0, 1), "3x3x3": (1, 1, 0), "2x3x4": (0, 1, 1), "3x4x5": (1, 1, 1), "4x4x5": (1, 2, 0)}
SHAPES = ["1x1x1", "1x2x1", "2x2x2", "2x2x3", "3x3x3", "2x3x4", "3x4x5", "4x4x5", "1x8x8"]


def square(n, reverse=False):
    return OrbitTerms.naive(parse_target(f"{n}x{n}x{n}"), reversible=reverse)


@pytest.mark.parametrize(("n", "reverse"), [(n, False) for n in range(1, 8)] + [(n, True) for n in range(1, 9)])
def test_naive_orbits_hold_and_unpack_again(n, reverse):
    terms = square(n, reverse)
    assert reverse or len(terms.cubes) == (n + 1) // 2
    if reverse:
        assert ReversibleTerms.from_packed(terms).rank == terms.rank
    if terms.rank <= 512:
        assert holds(terms.packed())
        again = (ReversibleTerms if reverse else OrbitTerms).from_scheme(terms.to_scheme())
        assert again.rank == terms.rank
        assert again.to_scheme() == terms.to_scheme()


@pytest.mark.parametrize(("name", "swaps"), [*((name, None) for name in SHAPES), *OTHERS.items()])
def test_naive_pairs_hold_and_unpack_again(name, swaps):
    target = parse_target(name)
    terms = PairTerms.naive(target, swaps)
    counts = swaps or tuple(side // 2 for side in target.shape)
    fixed = math.prod(side - 2 * count for side, count in zip(target.shape, counts, strict=True))
    assert np.count_nonzero(terms.own) == fixed
    assert terms.rank == terms.packed().rank == len(target.terms)
    assert holds(terms.packed())
    assert PairTerms.from_scheme(terms.to_scheme(), swaps).to_scheme() == terms.to_scheme()


@pytest.mark.parametrize("n", range(1, 9))
def test_reversing_the_bits_reverses_the_matrix(n):
    matrix, backwards = np.random.default_rng(n).integers(0, 2, (n, n)), range(n * n)[::-1]
    words = (sum(int(bit) << place for place, bit in enumerate(m.ravel())) for m in (matrix, matrix[::-1, ::-1]))
    word, reversed_word = (np.array([one], dtype=np.uint64) for one in words)
    first, second = (mirrored_layout(one, backwards) for one in (word, reversed_word))
    assert reverse_bits(first[0]) == second[0]
    assert mirrored_layout(first, backwards, back=True) == word


def test_any_symmetric_scheme_is_a_start_and_so_are_its_plain_terms():
    target = parse_target("3x3x3")
    terms = OrbitTerms.from_scheme(naive(target))
    assert (terms.rank, len(terms.cubes)) == (27, 3)
    for start, rank in ((terms, 27), (PackedTerms.naive(target), 27), (square(3).packed(), 29)):
        walker = make_walker("flip-c3", start, 1, 0, walk_policy("flip-c3"))
        assert walker.rank == rank
        assert holds(walker.terms())


def test_cubes_of_a_reversible_start_of_6_are_of_neighbours():
    start = square(6, reverse=True)
    assert sorted(start.cubes.tolist()) == sorted((1 << 7 * i) | (1 << 7 * (i + 1)) for i in (0, 2, 4))
    ReversibleTerms.from_packed(start)  # refuses what reversal does not map to itself


@pytest.mark.parametrize(
    ("walk", "message"),
    [
        ("flip-c3", "not symmetric"),
        ("flip-z2", "start the walk elsewhere"),
        ("flip-z2:0,1,1", "not invariant under the swaps 0,1,1"),
    ],
)
def test_terms_without_a_symmetry_are_refused(walk, message):
    refuses(message, make_walker, walk, walked("3x3x3", 25), 1, 0, Policy())


@pytest.mark.parametrize(("axis", "inner"), [("m", "3x2x2"), ("k", "2x3x2"), ("n", "2x2x3")])
def test_a_nested_sum_is_invariant_and_exact(strassen, axis, inner):
    whole = nested_sum(strassen.over_z2(), PairTerms.naive(parse_target(inner)).to_scheme(), axis)
    assert sorted(whole.target.shape) == [2, 2, 5]
    assert whole.rank == 7 + 12
    assert certify(whole).digest == whole.digest
    assert is_invariant(whole)


def test_an_invariant_scheme_is_found_again_in_other_bases_and_starts_a_larger_format():
    scheme = resolve("3x4x6-r54")[0].over_z2()
    p, q, r = (np.triu(np.ones((side, side), dtype=np.int64)) for side in (3, 4, 6))
    moved = change_of_basis(scheme, p, q, r)
    assert not is_invariant(moved)
    assert len(list(involutions(moved))) == len(list(involutions(scheme))) == 9
    copies = invariant_copies(moved, np.random.default_rng(1))
    assert len({one.digest for one in copies}) == len(copies) == COPIES
    assert all(map(is_invariant, copies))
    assert all(certify(one).rank == 54 for one in copies[:2])
    starts = symmetric_starts((5, 3, 7), lambda shape: copies if shape == (3, 4, 6) else [])
    assert (len(starts), {start.rank for start in starts}) == (COPIES, {54 + 3 * 6 + 3 * 5})
    assert all(map(is_invariant, starts))


def test_a_scheme_without_an_involution_has_no_copies():
    assert not list(involutions(resolve("3x3x4-r29")[0].over_z2()))
    fewer_exchanges = resolve("2x3x4-r20")[0].over_z2()
    assert list(involutions(fewer_exchanges))
    assert not invariant_copies(fewer_exchanges, np.random.default_rng(1))


@pytest.mark.parametrize(("name", "count"), [("strassen", 3), ("laderman", 3), ("6x6x6-r153", 1)])
def test_involutions_of_any_format_permute_the_products(name, count):
    scheme = resolve(name)[0].over_z2()
    found = list(involutions(scheme))
    assert len(found) == count
    for x, y, z in found:
        u, v, w = (factor.dense for factor in scheme.factors)
        moved = Scheme.from_arrays(scheme.target, x @ u @ y % 2, y @ v @ z % 2, x.T @ w @ z.T % 2, Z2)
        assert (moved.u.dense != u).any()
        assert moved.digest == scheme.digest


@pytest.mark.parametrize("shape", [(5, 6, 6), (7, 5, 6)])
def test_large_formats_start_from_compositions_of_stored_schemes(strassen, shape):
    asked = set()

    def stored(wanted):
        asked.add(wanted)
        return [strassen.over_z2()] if wanted == (2, 2, 2) else []

    starts = symmetric_starts(shape, stored, most=6)
    assert all(start.target.shape == shape and is_invariant(start) for start in starts)
    assert all(start.rank < math.prod(shape) for start in starts)
    certify(starts[0])
    assert asked >= {tuple(sorted(shape)), (2, 2, 2)}


def test_only_invariant_schemes_are_used():
    scheme = walked("2x2x3", 11).to_scheme()
    assert not is_invariant(scheme)
    assert not is_invariant(naive(parse_target("2x2x2")))
    starts = symmetric_starts((5, 6, 6), lambda shape: [scheme] if shape == (2, 2, 3) else [], most=1)
    assert starts[0].rank == 180
