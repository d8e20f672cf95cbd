"""Islands: walkers go on where the last turn left them, islands without a gain begin anew, and members migrate."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db.invariants import invariants
from lcma.search.improve.islands import MIGRATION, PATIENCE, SLACK, Islands

from .starts import fleet_of, naive

NAME = "3x3x3"


@pytest.fixture(scope="module")
def start():
    return naive(NAME)


@pytest.fixture(scope="module")
def fleet(start):
    fleet = fleet_of(start, walkers=16)
    while fleet.score.min() > 24:
        fleet.launch(2000)
    return fleet


def test_the_next_turn_goes_on_from_the_lowest(start, fleet):
    islands = Islands()
    assert not islands.island(NAME, "own").members
    assert islands.starts(NAME, "own", [start]) == [start]
    lowest = islands.settle(NAME, "own", fleet, start.rank)
    island = islands.island(NAME, "own")
    assert (island.members[0].rank, island.turns, island.idle) == (lowest, 1, 0)
    ranks = [one.rank for one in island.members]
    assert ranks == sorted(ranks)
    assert ranks[-1] <= lowest + SLACK
    assert len({invariants(one).digest for one in island.members}) == len(ranks)
    for one in island.members:
        certify(one)
    starts = islands.starts(NAME, "own", [start])
    assert [one.digest for one in starts] == [start.digest, *(one.digest for one in island.members)]


def test_an_island_without_a_gain_begins_anew(start, fleet, monkeypatch):
    islands = Islands()
    islands.settle(NAME, "own", fleet, start.rank)
    for turn in range(3):
        assert islands.island(NAME, "own").idle == pytest.approx(turn * PATIENCE / 3)
        assert islands.starts(NAME, "own", [start])[-1].rank < start.rank
        monkeypatch.setattr(fleet, "seconds", PATIENCE / 3)
        islands.settle(NAME, "own", fleet, int(fleet.score.min()))
    assert islands.starts(NAME, "own", [start]) == [start]
    assert islands.island(NAME, "own").idle == 0


def test_members_migrate_now_and_then(start, fleet):
    islands = Islands()
    islands.settle(NAME, "own", fleet, start.rank)
    found = []
    for _ in range(MIGRATION):
        starts = islands.starts(NAME, "cut", [start])
        found.append(min(one.rank for one in starts))
        islands.island(NAME, "cut").turns += 1
    assert found == [27] * (MIGRATION - 1) + [int(fleet.score.min())]
    # Islands of other formats stay out of it.
    assert islands.starts("3x3x4", "cut", [start]) == [start]
    np.testing.assert_array_equal(islands.island("3x3x4", "cut").members, [])
