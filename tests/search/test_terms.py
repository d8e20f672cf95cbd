"""Packed terms: bits, naive terms over every ring, round trips, reductions one at a time, and wide factors."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcma.jit import njit
from lcma.schemes_db import parse_target
from lcma.search.basis.shears import sparsified
from lcma.search.cpsat.brent import solve
from lcma.search.flipgraph.arena import make_arena, terms_in
from lcma.search.flipgraph.flips import reduce_dependent
from lcma.search.flipgraph.moves import reduce
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.format_moves.corners import bordered, cut
from lcma.search.terms import bits
from lcma.search.terms.packed import PackedTerms
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms, canonical, with_signs
from lcma.verify import certify

from .plain_terms import holds, sparsified_naive
from .starts import naive, naive_terms, scheme

SLOW = pytest.mark.slow
HASTY = Policy(plus_after=40, margin=2, restart_after=700, trap=3)
EVERY_RING = [PackedTerms, TernaryTerms, TermsModulo3]
NAMES = [
    *("1x1x1", "2x3x4", "4x4x4", "3x3x3:tri-left", "4x4x4:tri-out", "3x3x2:tri-left:upper", "8x8x8"),
    *("2x2x2:sk", "3x3x3:ks", "3x3x2:kg", "3x3x3:kk", "3x3x3:wt", "3x3x3:uw"),
]
"""Products, and pairs of symmetric and skew matrices, whose terms have other coefficients than 1."""


@njit
def compiled_select(word, k):
    return bits.select_bit(word, k)


@njit
def compiled_counts(word):
    return bits.popcount(word), bits.first_bit(word), bits.reverse_bits(word)


@given(st.integers(1, (1 << 64) - 1))
@example((1 << 64) - 1)
@settings(max_examples=50, deadline=None)
def test_bits_are_selected_counted_and_reversed(word):
    places = [place for place in range(64) if word >> place & 1]
    word = np.uint64(word)
    for k, place in enumerate(places):
        for select in (compiled_select, bits._select_portable, bits.select_bit):
            assert select(word, np.uint64(k)) == place
    counts = len(places), places[0], sum(1 << (63 - place) for place in places)
    assert compiled_counts(word) == counts == (bits.popcount(word), bits.first_bit(word), bits.reverse_bits(word))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", EVERY_RING)
def test_naive_terms_hold_and_round_trip(name, kind):
    terms = kind.naive(parse_target(name))
    assert terms.rank == len(terms.target.terms)
    assert holds(terms)
    certify(terms.to_scheme())
    assert np.array_equal(kind.from_scheme(terms.to_scheme()).words, terms.words)


@pytest.mark.parametrize("name", ["9x8x1", "1x9x9", "3x9x8", "2x10x13"])
def test_wide_factors_come_back_from_their_images(name):
    terms = naive_terms(name)
    certify(terms.to_scheme())
    assert np.array_equal(PackedTerms.from_scheme(terms.to_scheme()).words, terms.words)


@given(st.integers(0, 2), st.integers(0, 26), st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_any_flipped_bit_is_seen(factor, term, bit):
    terms = naive_terms("3x3x3")
    words = terms.words.copy()
    words[factor, term] ^= np.uint64(1) << np.uint64(bit)
    assert not holds(PackedTerms(terms.target, words))


@pytest.mark.parametrize("room", [2, pytest.param(64, marks=SLOW)])
@pytest.mark.parametrize("kind", [TernaryTerms, pytest.param(TermsModulo3, marks=SLOW)])
def test_terms_of_a_walk_round_trip(kind, room):
    terms = kind.naive(parse_target("2x3x2"))
    arena = make_arena(terms, 4, 0, room)
    advance(arena, HASTY.numbers, 0, 500)
    now = terms_in(arena.x, arena, terms)
    again = kind.from_scheme(now.to_scheme())
    assert np.array_equal(again.words, now.words)
    restarted = make_arena(again, 1)
    assert terms_in(restarted.x, restarted, again).to_scheme() == now.to_scheme()


def test_signs_are_removed_and_restored():
    rng = np.random.default_rng(1)
    values = rng.integers(-1, 2, (3, 5, 4))
    values[:, :, 0] = 0
    values[:, :, 1] |= 1
    bits = np.uint64(1) << np.arange(4, dtype=np.uint64)
    words = np.concatenate([((values == sign) * bits).sum(axis=2, dtype=np.uint64) for sign in (1, -1)])
    terms = TernaryTerms(parse_target("2x2x2"), words)
    forms, signs = canonical(terms)
    lowest = (forms[:3] | forms[3:]) & (~(forms[:3] | forms[3:]) + np.uint64(1))
    assert (forms[:3] & lowest).all()
    products = [np.einsum("ra,rb,rc->rabc", *each.dense()) for each in (terms, with_signs(terms, forms, signs))]
    assert np.array_equal(*products)


DEPENDENT = [(1, 1, 1 ^ 15), (1, 2, 2 ^ 15), (1, 3, 15)]
"""The first two of the naive terms of 2x2x2, which share a factor, and a third one whose factor of B is their sum."""


@pytest.mark.parametrize(
    ("kind", "more", "without", "rank", "room"),
    [
        (PackedTerms, [(1, 1 ^ 8, 1), (1, 8, 1)], [0], 8, 0),  # the first term, split
        (PackedTerms, [(5, 6, 7), (5, 6, 7)], [], 8, 0),
        (PackedTerms, DEPENDENT, [0, 1], 8, 0),
        pytest.param(PackedTerms, DEPENDENT, [0, 1], 8, 64, marks=SLOW),
        (TernaryTerms, [(5, 6, 7, 0, 0, 0), (5, 0, 7, 0, 6, 0)], [], 8, 0),  # opposite
        (TernaryTerms, [(5, 6, 7, 0, 0, 0), (5, 6, 7, 0, 0, 0)], [], 10, 0),  # equal: not 0 in this ring
        pytest.param(TermsModulo3, [(5, 6, 7, 0, 0, 0), (5, 6, 7, 0, 0, 0)], [], 9, 0, marks=SLOW),  # the opposite one
    ],
)
def test_superfluous_terms_cancel_or_become_one(kind, more, without, rank, room):
    terms = kind.naive(parse_target("2x2x2"))
    kept = np.delete(terms.words, without, axis=1)
    longer = kind(terms.target, np.concatenate([kept, np.array(more, dtype=np.uint64).T], axis=1))
    arena = make_arena(longer, 1, 0, room)
    if more is DEPENDENT:
        assert reduce_dependent(arena)
        assert not reduce_dependent(arena)
    else:
        reduce(arena)
    assert arena.counters[RANK] == rank
    assert holds(longer) == holds(terms_in(arena.x, arena, longer)) == (rank == 8)


@pytest.mark.parametrize(
    ("product", "name"), [("strassen*naive:1x17x1", "2x34x2"), pytest.param("2x3x3*4x3x3", "8x9x9", marks=SLOW)]
)
def test_walks_on_wide_factors_end_at_schemes(product, name):
    """Two factors of 2x34x2 have more than 64 blocks, and all three of 8x9x9; walks raise and lower the rank."""
    start = PackedTerms.from_scheme(scheme(product))
    arena = make_arena(start, 5, room=8)
    advance(arena, Policy(plus_after=2_000).numbers, 0, 200_000)
    for flat in (arena.x, arena.best):
        terms = terms_in(flat, arena, start)
        found = terms.to_scheme()
        certify(found)
        assert (found.target.name, found.rank) == (name, terms.rank)
    assert not np.array_equal(arena.x, arena.start)


def test_a_superfluous_term_is_left_out():
    """Of three terms with a common factor of A whose factors of B are dependent, one can go."""
    start = naive_terms("3x9x8")
    u, v, w = start.words
    more = np.array([[u[0]] * 3, [v[0], v[1], v[0] ^ v[1]], [w[-1]] * 3], dtype=np.uint64)
    terms = PackedTerms(start.target, np.concatenate([start.words, more], axis=1))
    assert terms.to_scheme().rank < terms.rank
    certify(terms.to_scheme())


@pytest.mark.parametrize("name", ["2x2x2:sk", "3x3x3:wg"])
def test_sparse_bases_keep_the_target(name):
    terms = naive_terms(name)
    sparse = sparsified(terms)
    assert holds(sparse)
    assert np.array_equal(sparse.words, sparsified_naive(terms).words)


def test_the_equations_have_the_coefficients():
    target = parse_target("2x2x2:sk")
    assert certify(solve(target, 3).scheme).target == "2x2x2:sk"
    assert solve(target, 2, ring="Z2", ordered=True).scheme is None


@pytest.mark.parametrize(
    ("small", "large"),
    [
        *(("2x2x2", "3x2x4"), ("3x3x3:tri-left", "4x4x5:tri-left"), ("2x3x2:tri-out", "3x3x3:tri-out")),
        *((f"2x2x2:{pair}", f"3x3x3:{pair}") for pair in ("kg", "ss", "uw")),
    ],
)
@pytest.mark.parametrize("walk", ["flip", "flip-zt"])
def test_a_border_and_its_cut_are_exact(small, large, walk):
    grown = bordered(naive(small, walk), parse_target(large))
    certify(grown)
    assert grown.rank == len(parse_target(large).terms)
    back = cut(grown, parse_target(small))
    certify(back)
    assert back.digest == naive(small, walk).digest
