"""Packed terms: naive starts, round trips, the GF(2) check, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.errors import PlanError
from lcma.schemes_db import Q, Scheme, Z, parse_target
from lcma.schemes_db.resolve import resolve
from lcma.search.flipgraph.arena import make_arena, terms_in
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.walk import advance
from lcma.search.terms.orbits import OrbitTerms
from lcma.search.terms.packed import PackedTerms, lanes_for
from lcma.search.terms.pairs import PairTerms
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms
from lcma.verify import certify

from ..refusal import refuses
from .plain_terms import holds

NAMES = ["1x1x1", "2x3x4", "4x4x4", "3x3x3:tri-left", "4x4x4:tri-out", "3x3x2:tri-left:upper", "8x8x8"]


@pytest.mark.parametrize("name", NAMES)
def test_naive_holds_and_round_trips(name):
    terms = PackedTerms.naive(parse_target(name))
    assert terms.rank == len(terms.target.terms)
    assert holds(terms)
    scheme = terms.to_scheme()
    certify(scheme)
    assert np.array_equal(PackedTerms.from_scheme(scheme).words, terms.words)


@given(st.integers(0, 2), st.integers(0, 26), st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_any_flipped_bit_is_seen(factor, term, bit):
    terms = PackedTerms.naive(parse_target("3x3x3"))
    words = terms.words.copy()
    words[factor, term] ^= np.uint64(1) << np.uint64(bit)
    assert not holds(PackedTerms(terms.target, words))


def test_from_integers_takes_parities():
    target = parse_target("1x1x1")
    one = np.array([[[3]]])
    assert PackedTerms.from_scheme(Scheme.from_arrays(target, one, -one, one, Z)).words.tolist() == [[1], [1], [1]]
    half = Scheme.from_arrays(target, one, one, one, Q, denominators=(2, 1, 1))
    refuses("even denominator", PackedTerms.from_scheme, half)


@pytest.mark.parametrize("name", ["9x8x1", "1x9x9", "3x9x8", "2x10x13"])
def test_wide_factors_come_back_from_their_images(name):
    terms = PackedTerms.naive(parse_target(name))
    certify(terms.to_scheme())
    assert np.array_equal(PackedTerms.from_scheme(terms.to_scheme()).words, terms.words)


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("strassen*naive:1x17x1", "2x34x2"),
        pytest.param("2x3x3*4x3x3", "8x9x9", marks=pytest.mark.slow),
    ],
)
def test_walks_on_wide_factors_end_at_schemes(product, name):
    """Two factors of 2x34x2 have more than 64 blocks, and all three of 8x9x9; walks raise and lower the rank."""
    start = PackedTerms.from_scheme(resolve(product)[0])
    arena = make_arena(start, 5, room=8)
    advance(arena, Policy(plus_after=2_000).numbers, 0, 200_000)
    for flat in (arena.x, arena.best):
        terms = terms_in(flat, arena, start)
        scheme = terms.to_scheme()
        certify(scheme)
        assert (scheme.target.name, scheme.rank) == (name, terms.rank)
    assert not np.array_equal(arena.x, arena.start)


def test_a_superfluous_term_is_left_out():
    """Of three terms with a common factor of A whose factors of B are dependent, one can go."""
    start = PackedTerms.naive(parse_target("3x9x8"))
    words = start.words.copy()
    u, v = words[0, 0], words[1, [0, 1]]
    other = words[2, -1]
    more = np.array([[u, u, u], [v[0], v[1], v[0] ^ v[1]], [other, other, other]], dtype=np.uint64)
    terms = PackedTerms(start.target, np.concatenate([words, more], axis=1))
    scheme = terms.to_scheme()
    assert scheme.rank < terms.rank
    certify(scheme)


def test_words_of_no_scheme_are_refused():
    terms = PackedTerms.naive(parse_target("3x9x8"))
    words = terms.words.copy()
    words[0, 5] ^= np.uint64(1)
    refuses("no scheme of 3x9x8", PackedTerms(terms.target, words).to_scheme)


@pytest.mark.parametrize(
    ("name", "message"), [("9x9x9:tri-left", "at most 64"), ("16x16x16", "512"), ("8x8x9", "576 terms of 8x8x9")]
)
def test_too_large_is_refused_with_the_limit(name, message):
    refuses(message, PackedTerms.naive, parse_target(name))


@pytest.mark.parametrize("kind", [TernaryTerms, TermsModulo3, OrbitTerms, PairTerms])
def test_other_terms_have_no_wide_factors(kind):
    scheme = resolve("naive:9x9x2" if kind is not OrbitTerms else "naive:9x9x9")[0]
    with pytest.raises(PlanError):
        kind.from_scheme(scheme)


def test_lanes():
    assert [lanes_for(n) for n in (1, 64, 65, 128, 129, 256, 257, 512)] == [1, 1, 2, 2, 4, 4, 8, 8]
    refuses("512", lanes_for, 513)
