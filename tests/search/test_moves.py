"""The reductions and the plus transition, one at a time."""

import numpy as np
import pytest

from lcma.schemes_db import parse_target
from lcma.search.flipgraph.arena import current_terms, make_arena
from lcma.search.flipgraph.dependence import reduce_dependent
from lcma.search.flipgraph.moves import plus, reduce
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.terms.packed import PackedTerms
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms

from .plain_terms import holds


def naive(name="2x2x2"):
    return PackedTerms.naive(parse_target(name))


def with_columns(terms, *columns, without=()):
    kept = np.delete(terms.words, list(without), axis=1)
    added = np.array(columns, dtype=np.uint64).reshape(-1, 3).T
    return PackedTerms(terms.target, np.concatenate([kept, added], axis=1))


def test_a_split_term_is_merged_again():
    terms = naive()
    a, b, c = (int(word) for word in terms.words[:, 0])
    split = with_columns(terms, (a, b ^ 8, c), (a, 8, c), without=[0])
    assert holds(split)
    arena = make_arena(split, 1)
    reduce(arena)
    assert arena.counters[RANK] == 8
    assert holds(current_terms(arena, split))


def test_equal_terms_cancel():
    doubled = with_columns(naive(), (5, 6, 7), (5, 6, 7))
    arena = make_arena(doubled, 1)
    reduce(arena)
    assert arena.counters[RANK] == 8
    assert holds(current_terms(arena, doubled))


@pytest.mark.parametrize("room", [0, pytest.param(64, marks=pytest.mark.slow)])
def test_a_linear_dependence_takes_a_term_out(room):
    terms = naive()
    first, second = np.flatnonzero(terms.words[0] == terms.words[0, 0])[:2]
    (a, b, d), (_, b2, d2) = ([int(x) for x in terms.words[:, i]] for i in (first, second))
    extra = 15
    longer = with_columns(terms, (a, b, d ^ extra), (a, b2, d2 ^ extra), (a, b ^ b2, extra), without=[first, second])
    assert longer.rank == 9
    assert holds(longer)
    arena = make_arena(longer, 1, 0, room)
    assert reduce_dependent(arena)
    assert arena.counters[RANK] == 8
    assert holds(current_terms(arena, longer))
    assert not reduce_dependent(arena)


@pytest.mark.parametrize("name", ["2x2x2", "3x3x3:tri-out"])
@pytest.mark.parametrize("ring", [PackedTerms, TernaryTerms, TermsModulo3])
def test_plus_adds_one_term_and_keeps_the_tensor(ring, name):
    terms = ring.naive(parse_target(name))
    for seed in range(20):
        arena = make_arena(terms, seed, 0, 2)
        advance(arena, Policy(plus_after=1 << 40).numbers, 0, 30)
        rank = arena.counters[RANK]
        assert plus(arena)
        assert arena.counters[RANK] == rank + 1
        now = current_terms(arena, terms)
        assert holds(now)


def test_plus_needs_a_free_slot_and_a_pair():
    assert not plus(make_arena(naive("4x4x4"), 1))
    assert not plus(make_arena(naive("1x1x1"), 1))
