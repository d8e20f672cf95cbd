"""Structured targets: directed walks by the twin and what improvements keep of them; starts and finds of masks."""

import numpy as np
import pytest

from lcma.schemes_db import Z2, Z, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.resolve import resolve
from lcma.schemes_db.shipped import shipped
from lcma.search import RunConfig, find, score_of
from lcma.search.format_moves.corners import restricted
from lcma.search.improve.directed import AIMS, DirectedWalk, Front
from lcma.search.improve.directed import score_of as directed_score
from lcma.search.improve.structured import FrontUpdater
from lcma.search.starts import mask_start
from lcma.verify import certify
from lcma.workbench.commands.improve import kept_line

TRIANGLE = parse_target("3x3x3:tri-left")


def flat(scheme):
    found = scheme.over_z2()
    assert found is not None
    return found


def walk_from(target, walkers=16, **options):
    """A directed walk on a processor from the naive terms, and the list of its finds."""
    finds, front = [], Front([flat(naive(target))])
    return DirectedWalk(target, front, device="cpu", walkers=walkers, on_find=finds.append, **options), finds


def known(*names):
    return [flat(shipped(name).scheme) for name in names]


def test_a_front_has_the_points_that_no_other_is_as_good_as_in_both():
    front = Front(known("5x5x5-tri-left-r63", "5x5x5-tri-left-r65"))
    assert front.points == [(63, 44), (65, 43)]
    assert str(front) == "63 = 44 + 19, 65 = 43 + 22"
    assert [front.beaten(point) for point in ((65, 44), (63, 44), (64, 43))] == [True, True, False]
    assert [front.best(aim) for aim in AIMS] == [(63, 44), (63, 44), (65, 43)]
    assert directed_score((65, 43), (1, 64)) == 65 + 64 * 43
    (again,) = known("5x5x5-tri-left-r63")
    assert not front.add(again)
    assert front.add(flat(naive(again.target)))
    assert front.points == [(63, 44), (65, 43)]


@pytest.mark.slow
def test_a_point_remembers_so_many_schemes(monkeypatch):
    first = flat(naive(parse_target("2x2x2:tri-left")))
    assert not Front([first]).add(first.replace(name="other"))  # the same scheme by another name
    monkeypatch.setattr("lcma.search.improve.directed.POOL", 1)
    walk, _ = walk_from(TRIANGLE, walkers=4)
    walk.turn(0, 0.0, steps=3_000)
    assert all(len(pool) == 1 for pool in walk.front.pools.values())


def test_a_directed_walk_comes_from_the_blocks_to_the_best_triangle_of_three():
    walk, finds = walk_from(TRIANGLE, seed=3)
    for number in range(12):
        walk.turn(number, 0.0, steps=20_000)
        if walk.front.points == [(17, 9)]:
            break
    assert walk.front.points == [(17, 9)]
    assert walk.flips > 0
    best = [scheme for scheme in finds if scheme.rank == 17 and full_and_half(scheme) == (9, 8)]
    assert [certify(scheme).target for scheme in best[:1]] == [TRIANGLE.name]


def test_the_course_of_a_turn_depends_on_seed_and_number_alone():
    def course(seed):
        walk, finds = walk_from(TRIANGLE, walkers=4, seed=seed)
        walk.turn(1, 0.0, steps=3_000)
        return [scheme.digest for scheme in finds], walk.flips

    assert course(5) == course(5)
    assert course(5) != course(6)


def test_smaller_schemes_are_carried_over_in_any_role():
    target = parse_target("4x4x4:tri-left")
    with FrontUpdater([target], "Z2", 1) as updater:
        starts = updater.bordered_starts(target)
        # 27 products of the triangle and three columns, and the ten of the fourth.
        assert min(scheme.rank for scheme in starts) == 27 + 10
        for scheme in starts:
            certify(scheme)
        starts = {(one.rank, full_and_half(one)[0]) for one in updater.starts(target)}
        assert starts >= {(34, 22), (34, 24)}


def test_finds_no_better_than_stored_schemes_are_not_stored():
    told, target = [], parse_target("3x3x3:tri-out:upper")
    with FrontUpdater([target], "Z2", 1) as updater:
        best = min(updater.starts(target), key=lambda scheme: scheme.rank)
    assert (best.ring, best.rank) == (Z2, 17)
    with FrontUpdater([target], "Z", 1, told.append) as updater:
        for scheme in (flat(naive(target)), best):
            updater.take(scheme)
    assert updater.gained == 0
    assert told == []


def test_finds_are_stored_where_no_stored_scheme_is_as_good():
    told, target = [], parse_target("3x3x3:blocks(LF./FF./F.F,FFF/FFF/FFF,FFF/FFF/FFF)")
    with FrontUpdater([target], "Z", 1, told.append) as updater:
        walk = DirectedWalk(target, Front(updater.starts(target)), device="cpu", walkers=16, on_find=updater.take)
        for number in range(3):
            walk.turn(number, 0.0, steps=5_000)
    said = [kept_line(event) for event in told]
    assert updater.gained == len(said) >= 2
    assert all("certified, kept" in line for line in said)
    with Catalog.open() as catalog:
        kept = {(entry.ring, entry.rank) for entry in catalog.entries(target=target.name)}
    rank, _ = walk.front.points[0]
    assert rank < naive(target).rank
    assert {("Z2", rank), ("Z", rank)} <= kept


def test_an_interruption_loses_no_find():
    target = parse_target("3x3x3:blocks(FL./FF./.FF,FFF/FFF/FFF,FFF/FFF/FFF)")
    walk, finds = walk_from(target)
    walk.turn(0, 0.0, steps=20_000)
    best = min(scheme.rank for scheme in finds)
    assert best < naive(target).rank

    def interrupted():
        with FrontUpdater([target], "Z", 1) as updater:
            for scheme in finds:
                updater.take(scheme)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with Catalog.open() as catalog:
        assert best in {entry.rank for entry in catalog.entries(target=target.name, ring="Z2")}


@pytest.mark.parametrize("seed", range(12))
def test_a_general_scheme_restricted_to_random_blocks_is_exact(seed):
    rng = np.random.default_rng(seed)
    size = 4
    whole = ["4x4x4-r47-mod2", "4x4x4-r49"][seed % 2]
    grids = ["/".join("".join(rng.choice(list("FFFLU."), size)) for _ in range(size)) for _ in range(3)]
    full = "/".join(["F" * size] * size)
    for grid in (f"{full},{full},{grids[2]}", ",".join(grids)):
        target = parse_target(f"4x4x4:blocks({grid})")
        if not len(target.terms):
            continue
        found = restricted(resolve(whole)[0], target)
        assert certify(found).rank == found.rank <= resolve(whole)[0].rank


def test_a_mask_starts_from_the_better_of_its_blocks_and_the_full_product(home):
    rows = "/".join(["FFFFF"] * 4 + ["FFFF."])
    whole = "/".join(["FFFFF"] * 5)
    target = parse_target(f"5x5x5:blocks({whole},{whole},{rows})")
    start = mask_start(target, Z)
    assert start is not None
    assert start.rank <= 93 < naive(target).rank
    assert (
        mask_start(parse_target("4x4x4:blocks(FFFF/FFFF/FFFF/FFFF,FFFF/FFFF/FFFF/FFFF,F.../.F../..F./...F)"), Z) is None
    )
    assert mask_start(parse_target("5x5x5"), Z) is None


HALVES = "4x4x4:blocks(FFFF/FFFF/FFFF/FFFF,FFFF/FFFF/FFFF/FFFF,.FFF/FUFF/FLUU/.F.F)"


def test_walks_on_a_mask_start_from_the_restricted_scheme_and_from_naive(home):
    target = parse_target(HALVES)
    start = mask_start(target, Z)
    config = RunConfig(HALVES, ring="Z2", rounds=1, start=start, naive_too=True)
    assert [terms.rank for terms in config.starts] == [start.rank, naive(target).rank]


@pytest.mark.parametrize("device", ["cpu", pytest.param("twin", marks=pytest.mark.slow)])
def test_finds_of_a_mask_with_halves_cost_ever_less_than_both_starts(home, device):
    target = parse_target(HALVES)
    start = mask_start(target, Z)
    least = min(score_of("cost", start), score_of("cost", naive(target)))
    result = find(
        HALVES, ring="Z2", seed=0, steps=20_000, walks=8, rounds=30, start=start, naive_too=True,
        objective="cost", device=device,
    )  # fmt: skip
    scores = [score_of("cost", found.scheme) for found in result.finds]
    assert scores
    assert scores == sorted(set(scores), reverse=True)
    assert scores[0] < least
    for found in result.finds:
        assert certify(found.scheme).rank == found.scheme.rank
        assert start.digest in found.scheme.provenance.parents or found.scheme.provenance.parents == ()
