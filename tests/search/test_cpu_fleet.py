"""Walks that follow one another on a processor: what is stored, what later walks start from."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import Z, parse_target
from lcma.search import Policy
from lcma.search.format_moves.corners import bordered
from lcma.search.improve import cpu_fleet
from lcma.search.improve.cpu_fleet import CpuFleet

from .starts import naive, scheme

POLICY = Policy(plus_after=3000, margin=2)


def fleet(walk="flip", **options):
    return CpuFleet([naive("3x3x3", walk)], walk, POLICY, **{"seed": 1, "jobs": 1, **options})


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for name, steps in (("PATIENCE", 200_000), ("LONGER", 100_000), ("SHORT", 50_000)):
        monkeypatch.setattr(cpu_fleet, name, steps)


@pytest.mark.parametrize(
    ("walk", "jobs", "rank"),
    [("flip", 1, 23), ("flip", 2, 23), ("flip-zt", 1, 24), pytest.param("flip-z2", 1, 24, marks=pytest.mark.slow)],
)
def test_walks_descend_and_what_is_stored_is_exact(walk, jobs, rank):
    walks = fleet(walk, jobs=jobs)
    assert (walks.score.min(), walks.target.name) == (27, "3x3x3")
    while walks.score.min() > rank and walks.launches < 200:
        walks.launch(50_000)
        fresh = np.flatnonzero(walks.ranks() <= 27)
        assert all(walks.ranks()[fresh] == walks.score[fresh])
    assert walks.score.min() <= rank
    assert walks.flips > 0 < walks.seconds
    for place in np.flatnonzero(walks.score < 27).tolist():
        found = walks.scheme(place)
        assert found.rank == walks.score[place]
        certify(found)
        assert (found.ring == Z) == (walk == "flip-zt")


def test_one_seed_gives_one_course():
    found = []
    for seed in (1, 1, 2):
        walks = fleet(seed=seed)
        for _ in range(20):
            walks.launch(20_000)
        found.append([walks.scheme(place).digest for place in np.flatnonzero(walks.score < 27)])
    assert found[0] == found[1] != found[2]


def test_the_first_walks_are_short_and_from_all_starts():
    walks = fleet()
    assert [walks._next().patience for _ in range(8)] == 4 * [50_000] + 2 * [100_000] + 2 * [200_000]
    starts = [naive("3x3x3"), bordered(scheme("2x3x3"), parse_target("3x3x3"))]
    walks = CpuFleet(starts, "flip", POLICY, seed=1, jobs=2)
    begun = [walks._next() for _ in range(8)]
    assert {one.start for one in begun} == {start.rank for start in starts}
    walks = fleet()
    walks.launch(1_000_000)
    assert 0 < walks.flips <= 50_000


def test_half_of_the_walks_begin_at_the_lowest_rank_and_some_at_every_start():
    walks = fleet()
    while walks.score.min() > 24:
        walks.launch(20_000)
    begun = [walks._next().start for _ in range(400)]
    lowest = int(walks.score.min())
    assert begun.count(lowest) == pytest.approx(200, abs=60)
    assert 27 in begun


def test_a_scheme_replaces_one_of_the_highest_rank_when_all_places_are_taken(monkeypatch):
    monkeypatch.setattr(cpu_fleet, "MEMBERS", 2)
    walks = fleet()
    while walks.score.min() > 23 and walks.launches < 400:
        walks.launch(20_000)
    assert walks.walkers == 3
    assert walks.score[0] == 27  # the start stays
    assert walks.score.min() == 23
    worst = int(walks.score[1:].max())
    assert walks._place(worst + 1) == -1
    assert walks.score[walks._place(worst)] == worst
