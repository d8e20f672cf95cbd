"""Searches for schemes whose products share factors, by the rank of their product with an inner format."""

import numpy as np
import pytest

import lcma
from lcma.schemes_db.closure import OuterScheme
from lcma.schemes_db.composed_ranks import BOARD_SIDE, composed_ranks
from lcma.schemes_db.ranks import board
from lcma.schemes_db.shared_factors import best_groups, classes
from lcma.schemes_db.shipped import shipped
from lcma.schemes_db.uneven import inner_products, product_shapes
from lcma.search import score_of
from lcma.search.groups import kernel
from lcma.search.groups.fleet import GroupFleet, splits
from lcma.search.groups.product_rank import InnerFormat, board_ranks, inner_format, rank_of
from lcma.search.groups.walk import cooling_of, costs_of, state_of, terms_of, walk
from lcma.search.terms.ternary import TernaryTerms


@pytest.mark.parametrize("name", ["strassen", "3x3x3-r23-additions", "3x3x7-r49"])
def test_the_score_is_the_rank_of_the_product_with_its_groups(name):
    scheme, inner = shipped(name).scheme, inner_format("groups:1x2x2")
    m, k, n = scheme.target.shape
    groups = best_groups(classes(scheme), inner.gain)
    parts = inner_products(scheme, ((1,) * m, (2,) * k, (2,) * n), groups)
    ranks = {(1, 2, 2): 4, (2, 2, 2): 7, (3, 2, 2): 11}
    assert score_of("groups:1x2x2", scheme) == sum(ranks[part.shape] for part in parts)


@pytest.mark.parametrize(
    "longer", [((), (), ()), ((False, True), (), (True, False)), ((True, True), (False, True), ())]
)
def test_walks_know_what_products_over_blocks_of_two_sizes_cost(longer):
    scheme, inner = shipped("winograd").scheme, InnerFormat((2, 3, 4), longer)
    terms = TernaryTerms.from_scheme(scheme)
    state, best = state_of(terms, inner, 10), state_of(terms, inner, 10)
    costs, rng = costs_of(inner, (2, 2, 2), 10), np.ones(1, dtype=np.uint64)
    assert kernel.walk(state, best, costs, cooling_of(inner, 7, 0), 7, rng)
    shapes = product_shapes(scheme, inner.sizes((2, 2, 2)))
    assert best.numbers.tolist() == [7, sum(map(rank_of, shapes))]
    assert inner.product_rank(scheme) == best.numbers[1]


def test_a_search_lowers_the_ranks_of_formats(monkeypatch):
    ranks = composed_ranks({(2, 2, 2): 7}, BOARD_SIDE, recipes=())
    monkeypatch.setattr("lcma.search.groups.fleet.board_ranks", lambda: ranks)
    found, *_ = lcma.find("2x3x3", objective="formats", start=shipped("2x3x3-r15").scheme, seed=1, rounds=1).schemes
    assert {rank[0] for rank in OuterScheme(found).lower(ranks.copy())} >= {(2, 3, 3), (4, 6, 6)}
    assert score_of("formats", found) == sum(int(board_ranks()[shape]) for shape in board())  # nothing is lower now


def test_a_walk_keeps_the_scheme_valid_and_states_keep_their_terms():
    start = TernaryTerms.from_scheme(shipped("3x3x3-r23-additions").scheme)
    inner = inner_format("groups:3x3x3")
    assert terms_of(start, state_of(start, inner, 30)).to_scheme().digest == start.to_scheme().digest
    for index in range(3):
        found = walk(start, inner, 23 + index, 10_000, 5, index)
        assert found.rank <= 23 + index
        assert lcma.check(found.to_scheme()).ok
        assert np.array_equal(found.words, walk(start, inner, 23 + index, 10_000, 5, index).words)


def test_a_run_finds_a_scheme_with_more_groups():
    start = shipped("2x3x4-r20").scheme
    results = [
        lcma.find("2x3x4", objective="groups:2x2x4", start=start, seed=1, rounds=2, jobs=jobs) for jobs in (1, 2)
    ]
    scores = [score_of("groups:2x2x4", found.scheme) for found in results[0].finds]
    assert score_of("groups:2x2x4", start) == 280
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == 276  # 4x6x16, as in the table of 2 July 2026
    assert [one.digest for one in results[0].schemes] == [one.digest for one in results[1].schemes]


def test_a_fleet_finds_products_with_an_inner_format():
    starts = [shipped("2x3x4-r20").scheme]
    fleet = GroupFleet(lcma.Target.general(4, 6, 16), starts, InnerFormat((2, 2, 4)), seed=1, walkers=2)
    for _ in range(4):
        fleet.launch(fleet.STEPS)
    best = int(fleet.score.argmin())
    scheme = fleet.scheme(best)
    assert scheme.rank == fleet.score[best] <= 280
    assert (scheme.target.shape, lcma.check(scheme).ok) == ((4, 6, 16), True)
    assert (fleet.launches, fleet.flips) == (4, 0)


def test_splits_are_all_pairs_of_formats_that_walks_take():
    found = set(splits((2, 4, 6)))
    assert found >= {((2, 2, 3), (1, 2, 2)), ((4, 2, 3), (1, 1, 2))}
    for outer, inner in found:
        assert min(outer) >= 1
        assert sorted(outer)[1] > 1
        assert outer != (2, 4, 6)
        assert sorted(a * b for a, b in zip(outer, inner, strict=True)) == [2, 4, 6]
