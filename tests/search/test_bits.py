"""Compiled bit operations against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma.jit import njit
from lcma.search.terms import bits

WORDS = st.integers(1, (1 << 64) - 1)


@njit
def compiled_select(word, k):
    return bits.select_bit(word, k)


@njit
def compiled_counts(word):
    return bits.popcount(word), bits.first_bit(word), bits.reverse_bits(word)


@given(WORDS, st.data())
@settings(max_examples=200, deadline=None)
def test_select_is_the_kth_set_bit(word, data):
    places = [b for b in range(64) if word >> b & 1]
    k = data.draw(st.integers(0, len(places) - 1))
    for select in (compiled_select, bits._select_portable, bits.select_bit):
        assert select(np.uint64(word), np.uint64(k)) == places[k]


@given(WORDS)
@settings(max_examples=50, deadline=None)
def test_counts(word):
    reverse = sum(1 << (63 - place) for place in range(64) if word >> place & 1)
    assert compiled_counts(np.uint64(word)) == (word.bit_count(), (word & -word).bit_length() - 1, reverse)
    assert bits.reverse_bits(np.uint64(word)) == reverse
    assert bits.popcount(np.uint64(word)) == word.bit_count()
    assert bits.first_bit(np.uint64(word)) == (word & -word).bit_length() - 1


@pytest.mark.parametrize("k", range(64))
def test_select_in_the_full_word(k):
    full = np.uint64((1 << 64) - 1)
    assert compiled_select(full, np.uint64(k)) == bits._select_portable(full, np.uint64(k)) == k
