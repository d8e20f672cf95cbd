"""Which format, route and policy has the next turn of `lcma improve`, by what earlier turns gained."""

import numpy as np
import pytest

from lcma.schemes_db import Z2, Target, Z
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.composed_ranks import composed_ranks
from lcma.schemes_db.ranks import best_known, board
from lcma.schemes_db.run_record import RunRecord
from lcma.search import Policy
from lcma.search.flipgraph.policy import Selection
from lcma.search.improve.catalogue import kept_ranks
from lcma.search.improve.gaps import Gap, gaps
from lcma.search.improve.history import DEAD_END, KEEN, SELECTING, VARIANTS, Choice, History


def test_turns_share_the_time_out_by_priority():
    formats = [Target.general(2, 2, 2), Target.general(2, 2, 3), Target.general(2, 2, 4)]
    found = gaps({}, Z2, formats)
    assert [(gap.target, gap.rank, gap.known) for gap in found] == [
        (target, len(target.terms), known) for target, known in zip(formats, (7, 11, 14), strict=True)
    ]
    # Ranks of compositions count: 2x2x4 is made of two 2x2x2.
    assert gaps({(2, 2, 2): 7}, Z2, formats) == []
    pair = [Gap(Target.general(2, 2, 2), 10, 7), Gap(Target.general(2, 2, 3), 15, 11)]
    history, turns = History(), [0, 0]
    for _ in range(40):
        gap = max(pair, key=history.worth)
        turns[pair.index(gap)] += 1
        history.turns.append(turn_of(gap, seconds=60.0))
    # 3 and 4 ranks, neither gains: in proportion.
    assert turns == [17, 23]


def test_priority_is_what_the_best_known_rank_takes_from_the_mean_gap():
    with Catalog.in_memory() as catalog:
        kept = kept_ranks(catalog, Z)
    (gap,) = gaps(kept, Z, [Target.general(5, 6, 7)])
    before, known = composed_ranks(kept, 16), {shape: best_known(Target.general(*shape), Z).rank for shape in board()}
    for influence, rank in ((gap.one, gap.rank - 1), (gap.all, gap.known)):
        after = composed_ranks({**kept, (5, 6, 7): rank}, 16)
        fallen = {shape: int(before[shape] - after[shape]) for shape in known}
        assert influence.cells == sum(fall > 0 for fall in fallen.values()) >= 5
        assert influence.points == pytest.approx(100 * np.mean([fall / known[s] for s, fall in fallen.items()]))
    assert gap.priority == gap.all.points > gap.one.points
    assert gaps(kept, Z, [Target.general(2, 2, 17)]) == []


def turn_of(gap, **values):
    given = {"route": "own", "start": gap.rank, "rank": gap.rank, "reached": gap.rank, "device": "cpu", **values}
    return RunRecord(command="", target=gap.target.name, ring="Z", **given)


def test_what_gained_gets_more_and_what_did_not_less():
    gap, other = Gap(Target.general(2, 2, 2), 10, 7), Gap(Target.general(2, 2, 4), 17, 14)
    history = History([turn_of(gap, seconds=60.0), turn_of(other, seconds=60.0, reached=16)])
    assert history.worth(other) == pytest.approx(2 * history.worth(gap))
    # A rank lower everything begins anew.
    assert History([turn_of(gap, seconds=600.0)]).worth(Gap(gap.target, 9, 7)) == Gap(gap.target, 9, 7).priority


def test_routes_and_policies_by_what_they_gained():
    gap = Gap(Target.general(3, 3, 3), 25, 23)
    starts = {"own": 25, "cut": 26, "symmetry": 27}
    history = History()
    chosen = []
    for _ in range(24):
        choice = history.choose(gap, starts)
        chosen.append((choice.route, choice.policy))
        gained = choice == Choice("cut", "wide")
        history.turns.append(turn_of(gap, route=choice.route, policy=choice.policy, reached=24 if gained else 25))
    assert chosen[0] == ("own", "")
    assert {route for route, _ in chosen} == set(starts)
    first = chosen.index(("cut", "wide"))
    assert set(chosen[first:]) == {("cut", "wide")}  # what gains stays the choice


def test_a_gpu_walks_from_borders_with_a_keen_selection_first():
    gap = Gap(Target.general(3, 3, 3), 25, 23)
    on_processor = [one for one in VARIANTS if one not in SELECTING]
    chosen = {
        (route, len(some)): History().choose(gap, {route: 27}, some)
        for route in ("border", "cut")
        for some in (VARIANTS, on_processor)
    }
    policies = {key: choice.policy for key, choice in chosen.items()}
    every, few = len(VARIANTS), len(on_processor)
    assert policies == {("border", every): "keen", ("border", few): "", ("cut", every): "keen", ("cut", few): ""}
    vain = [turn_of(gap, route="border", policy="keen"), turn_of(gap, route="border", policy="keen")]
    assert History(vain).choose(gap, {"border": 27}).policy == ""


def test_a_route_that_had_half_an_hour_in_vain_is_a_dead_end():
    gap = Gap(Target.general(3, 3, 3), 25, 23)
    vain = [turn_of(gap, route=route, seconds=DEAD_END / 2) for route in ("own", "own", "cut")]
    history = History(vain)
    assert history.choose(gap, {"own": 25}) is None
    assert history.choose(gap, {"own": 25, "cut": 26}).route == "cut"
    assert history.choose(gap, {"own": 24}).route == "own"  # it starts lower now
    assert history.choose(Gap(gap.target, 24, 23), {"own": 25}).route == "own"  # and so where the format stands lower
    assert History([*vain[:1], turn_of(gap, seconds=DEAD_END, reached=24)]).choose(gap, {"own": 25}).route == "own"


def test_variants_of_a_policy():
    policy = Policy(plus_after=1000, margin=2, selection=Selection(10, 0.2, 0.2))
    found = {name: vary(policy).checked() for name, vary in VARIANTS.items()}
    assert found[""] == policy
    assert len(set(found.values())) == len(VARIANTS)
    assert (found["keen"].selection, found["apart"].selection) == (KEEN, Selection())
    assert (found["often"].plus_after, found["seldom"].plus_after, found["wide"].margin) == (200, 5000, 5)
