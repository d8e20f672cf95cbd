"""Terms in two planes: packing, signs, and what is refused."""

import numpy as np
import pytest

from lcma.schemes_db import Scheme, parse_target
from lcma.search.flipgraph.arena import make_arena, terms_in
from lcma.search.flipgraph.moves import reduce
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.slots import RANK
from lcma.search.flipgraph.walk import advance
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms, canonical, with_signs

from .plain_terms import holds

HASTY = Policy(plus_after=40, margin=2, restart_after=700, trap=3)
BOTH = [TernaryTerms, pytest.param(TermsModulo3, marks=pytest.mark.slow)]


@pytest.mark.parametrize("room", [2, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", BOTH)
def test_packing_is_undone_by_unpacking(kind, room):
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
    again = with_signs(terms, forms, signs)
    products = [np.einsum("ra,rb,rc->rabc", *each.dense()) for each in (terms, again)]
    assert np.array_equal(*products)


@pytest.mark.parametrize(
    ("kind", "other", "rank"),
    [
        (TernaryTerms, [0, 4, 2, 3, 1, 5], 8),
        (TernaryTerms, range(6), 10),
        pytest.param(TermsModulo3, range(6), 9, marks=pytest.mark.slow),
    ],
)
def test_opposite_terms_cancel_and_equal_ones_stay_or_become_one_modulo_3(kind, other, rank):
    terms = kind.naive(parse_target("2x2x2"))
    extra = np.array([[5], [6], [7], [0], [0], [0]], dtype=np.uint64)
    arena = make_arena(kind(terms.target, np.concatenate([terms.words, extra, extra[list(other)]], axis=1)), 1)
    reduce(arena)
    assert arena.counters[RANK] == rank


def test_the_largest_factors_and_coefficients_fit():
    assert holds(TernaryTerms.naive(parse_target("6x6x6")))
    four = Scheme.from_arrays(parse_target("1x1x1"), [[[4]]], [[[-1]]], [[[2]]])
    assert TermsModulo3.from_scheme(four).words[:, 0].tolist() == [1, 0, 0, 0, 1, 1]
