"""Searches for schemes whose products share factors, by the rank of their product with an inner format."""

import numpy as np
import pytest

import lcma
from lcma.schemes_db.shared_factors import best_groups, classes
from lcma.schemes_db.shipped import shipped
from lcma.schemes_db.uneven import inner_products
from lcma.search import score_of
from lcma.search.groups.fleet import GroupFleet, _state, _terms, splits, walk
from lcma.search.groups.product_rank import inner_format
from lcma.search.terms.ternary import TernaryTerms


@pytest.mark.parametrize("name", ["strassen", "3x3x3-r23-additions", "3x3x7-r49"])
def test_the_score_is_the_rank_of_the_product_with_its_groups(name):
    scheme, inner = shipped(name).scheme, inner_format("groups:1x2x2")
    m, k, n = scheme.target.shape
    groups = best_groups(classes(scheme), inner.gain)
    parts = inner_products(scheme, ((1,) * m, (2,) * k, (2,) * n), groups)
    ranks = {(1, 2, 2): 4, (2, 2, 2): 7, (3, 2, 2): 11}
    assert score_of("groups:1x2x2", scheme) == sum(ranks[part.shape] for part in parts)


def test_a_walk_keeps_the_scheme_valid_and_states_keep_their_terms():
    start = TernaryTerms.from_scheme(shipped("3x3x3-r23-additions").scheme)
    inner = inner_format("groups:3x3x3")
    assert _terms(start, _state(start, inner, 30)).to_scheme().digest == start.to_scheme().digest
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
    fleet = GroupFleet(lcma.Target.general(4, 6, 16), starts, (2, 2, 4), seed=1, walkers=2)
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
