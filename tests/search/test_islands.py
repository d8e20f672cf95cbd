"""Islands: walkers go on where the last turn left them, islands without a gain begin anew, and members migrate."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import Target
from lcma.schemes_db.invariants import invariants
from lcma.search import Policy, pack_start
from lcma.search.flipgraph.gpu.fleet import Fleet
from lcma.search.improve.islands import MIGRATION, PATIENCE, SLACK, Islands

NAME = "3x3x3"


@pytest.fixture(scope="module")
def naive():
    return pack_start("flip", Target.general(3, 3, 3)).to_scheme()


@pytest.fixture(scope="module")
def fleet(naive):
    fleet = Fleet([naive], Policy(plus_after=300), seed=3, walkers=16, device="cpu")
    while fleet.score.min() > 24:
        fleet.launch(2000)
    return fleet


def test_the_next_turn_goes_on_from_the_lowest(naive, fleet):
    islands = Islands()
    assert not islands.island(NAME, "own").members
    assert islands.starts(NAME, "own", [naive]) == [naive]
    lowest = islands.settle(NAME, "own", fleet, naive.rank)
    island = islands.island(NAME, "own")
    assert (island.members[0].rank, island.turns, island.idle) == (lowest, 1, 0)
    ranks = [one.rank for one in island.members]
    assert ranks == sorted(ranks)
    assert ranks[-1] <= lowest + SLACK
    assert len({invariants(one).digest for one in island.members}) == len(ranks)
    for one in island.members:
        certify(one)
    starts = islands.starts(NAME, "own", [naive])
    assert [one.digest for one in starts] == [naive.digest, *(one.digest for one in island.members)]


def test_an_island_without_a_gain_begins_anew(naive, fleet, monkeypatch):
    islands = Islands()
    islands.settle(NAME, "own", fleet, naive.rank)
    for turn in range(3):
        assert islands.island(NAME, "own").idle == pytest.approx(turn * PATIENCE / 3)
        assert islands.starts(NAME, "own", [naive])[-1].rank < naive.rank
        monkeypatch.setattr(fleet, "seconds", PATIENCE / 3)
        islands.settle(NAME, "own", fleet, int(fleet.score.min()))
    assert islands.starts(NAME, "own", [naive]) == [naive]
    assert islands.island(NAME, "own").idle == 0


def test_members_migrate_now_and_then(naive, fleet):
    islands = Islands()
    islands.settle(NAME, "own", fleet, naive.rank)
    found = []
    for _ in range(MIGRATION):
        starts = islands.starts(NAME, "cut", [naive])
        found.append(min(one.rank for one in starts))
        islands.island(NAME, "cut").turns += 1
    assert found == [27] * (MIGRATION - 1) + [int(fleet.score.min())]
    # Islands of other formats stay out of it.
    assert islands.starts("3x3x4", "cut", [naive]) == [naive]
    np.testing.assert_array_equal(islands.island("3x3x4", "cut").members, [])
