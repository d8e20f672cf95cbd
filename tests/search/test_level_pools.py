"""Pools by rank: they go down, are the same for every split of the work, and survive a checkpoint."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.search import make_walker
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.walkers import pack_start
from lcma.search.runs.engine import Threads, Walks
from lcma.search.runs.plan import PoolPlan
from lcma.search.runs.pools import RankPools, open_flips
from lcma.search.terms.packed import PackedTerms

from .plain_terms import holds


def threads(walk, start, seed, walkers):
    return Threads().start(Walks(walk, [start], POLICY, seed, first=0, walkers=walkers))


PLAN = PoolPlan(small=2, large=5, near=2, restart_rounds=2, stall=3)
POLICY = Policy(plus_after=2_000)


class Search:
    """A few walks with their pools."""

    def __init__(self, walk="flip", name="3x3x3", goal=23, seed=1, walks=4):
        start = pack_start(walk, parse_target(name))
        self.pools = RankPools([start], walks, goal, seed, PLAN)
        self.session = threads(walk, start, seed, walks)
        self.pools.begin(self.session)

    def go(self, rounds, jobs=1, steps=5_000):
        with ThreadPoolExecutor(jobs) as executor:
            for _ in range(rounds):
                self.session.advance(self.pools.goals(), steps, executor if jobs > 1 else None)
                self.pools.after_round(self.session)
        return self


def state(pools):
    return {name: array.tolist() for name, array in pools.to_arrays().items()}


@pytest.mark.parametrize(("walk", "name", "goal"), [("flip", "3x3x3", 23), ("flip-zt", "2x3x3", 15)])
def test_pools_lead_to_the_goal(walk, name, goal):
    search = Search(walk, name, goal)
    for _ in range(400):
        search.go(1)
        if goal in search.pools.sizes():
            break
    assert min(search.pools.sizes()) == goal
    target = parse_target(name)
    members = list(search.pools.members(search.session))
    assert members[0][0].rank == goal
    for terms, root in members:
        assert terms.target == target
        assert root == 0
        assert holds(terms)


def test_a_pool_is_left_when_it_is_full_and_not_before():
    search = Search()
    while search.pools.level > 24:
        level = search.pools.level
        search.go(1)
        if search.pools.level < level:
            assert search.pools.sizes()[search.pools.level] >= search.pools.wanted(search.pools.level)
    assert search.pools.wanted(25) == PLAN.large
    assert search.pools.wanted(26) == PLAN.small
    assert all(size <= 2 * PLAN.large for size in search.pools.sizes().values())


def test_the_same_for_any_number_of_workers():
    first, second = (state(Search(seed=7).go(60, jobs).pools) for jobs in (1, 3))
    assert first == second
    assert first != state(Search(seed=8).go(60).pools)


def test_a_state_put_back_draws_on_alike():
    search = Search(seed=3).go(40)
    saved = search.pools.to_arrays()
    start = pack_start("flip", parse_target("3x3x3"))
    again = RankPools([start], 4, 23, 3, PLAN)
    again.take_arrays(saved)
    assert state(again) == state(search.pools)
    for pools in (search.pools, again):
        pools.begin(threads("flip", start, 9, 4))
    assert state(again) == state(search.pools)
    assert state(again) != {name: array.tolist() for name, array in saved.items()}


def test_when_nothing_is_found_every_other_walk_feeds_the_pool():
    search = Search(goal=7)  # no walk gets there
    while search.pools.level > 23:
        search.go(1)
    search.go(PLAN.stall + PLAN.restart_rounds + 1)
    assert search.pools.goals().tolist() == [22, 23, 22, 23]


def test_walks_must_be_as_many_as_the_pools_are_for():
    search = Search()
    with pytest.raises(PlanError, match="not sent"):
        search.pools.after_round(Search(walks=2).session)


def test_symmetric_walks_have_no_pools():
    start = pack_start("flip-c3", parse_target("3x3x3"))
    with pytest.raises(PlanError, match="without pools"):
        RankPools([start], 4, 23, 1)


def test_a_walk_refuses_terms_that_do_not_fit_it():
    start = pack_start("flip", parse_target("3x3x3"))
    walker = make_walker("flip", start, 1, 0, POLICY)
    target = parse_target("3x3x3")
    with pytest.raises(PlanError, match="can't go on"):
        walker.start_from(pack_start("flip", parse_target("2x2x2")))
    with pytest.raises(PlanError, match="can't go on"):
        walker.start_from(pack_start("flip-zt", target))
    with pytest.raises(PlanError, match="do not fit"):
        walker.start_from(PackedTerms(target, np.tile(pack_start("flip", target).words, 3)))


def test_open_flips_counts_equal_factors_up_to_sign():
    assert open_flips(pack_start("flip", parse_target("2x2x2"))) == 24
    assert open_flips(pack_start("flip", parse_target("1x1x1"))) == 0
    terms = pack_start("flip-zt", parse_target("1x1x2"))
    assert open_flips(terms) == 2
    words = terms.words.copy()
    words[[0, 3, 1, 4], 0] = words[[3, 0, 4, 1], 0]
    assert open_flips(type(terms)(terms.target, words)) == 2


def test_a_dead_end_is_not_kept():
    search = Search(name="2x2x2", goal=6)
    search.go(60)
    assert search.pools.level == 8  # rank 7 is reached, and nothing flips there
    assert 7 not in search.pools.sizes()
