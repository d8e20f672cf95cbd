"""The reductions and the plus transition, one at a time."""

import numpy as np
import pytest

from lcma.schemes_db import parse_target
from lcma.search.flipgraph.arena import make_arena, terms_in
from lcma.search.flipgraph.flips import reduce_dependent
from lcma.search.flipgraph.moves import reduce
from lcma.search.flipgraph.slots import RANK
from lcma.search.terms.packed import PackedTerms

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
    assert holds(terms_in(arena.x, arena, split))


def test_equal_terms_cancel():
    doubled = with_columns(naive(), (5, 6, 7), (5, 6, 7))
    arena = make_arena(doubled, 1)
    reduce(arena)
    assert arena.counters[RANK] == 8
    assert holds(terms_in(arena.x, arena, doubled))


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
    assert holds(terms_in(arena.x, arena, longer))
    assert not reduce_dependent(arena)
