"""Packed terms: naive starts, round trips, the GF(2) check, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.schemes_db import Q, Scheme, Z, parse_target
from lcma.search.terms.packed import PackedTerms, lanes_for
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


@pytest.mark.parametrize(("name", "message"), [("9x8x1", "at most 64"), ("1x9x9", "at most 64"), ("16x16x16", "512")])
def test_too_large_is_refused_with_the_limit(name, message):
    refuses(message, PackedTerms.naive, parse_target(name))


def test_lanes():
    assert [lanes_for(n) for n in (1, 64, 65, 128, 129, 256, 257, 512)] == [1, 1, 2, 2, 4, 4, 8, 8]
    refuses("512", lanes_for, 513)
