"""Runs of many walks: finds, provenance, bounds on what is found, and the settings that runs have by default."""

import csv
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from lcma.schemes_db import Z2, Target, parse_target
from lcma.schemes_db.costs import full_and_half
from lcma.search import (
    LadderPlan,
    Policy,
    RunConfig,
    common_products,
    find,
    kept_first,
    make_walker,
    resume,
    walk_names,
    walk_policy,
)
from lcma.search.runs.bounds import broken
from lcma.search.runs.plan import setting_for
from lcma.verify import certify

from .starts import naive, naive_terms, scheme


def test_strassen_from_its_name():
    result = find("2x2x2", rank=7)
    assert result.best.rank == 7
    found = result.finds[0]
    assert found.certificate == certify(found.scheme)
    assert found.scheme.provenance.kind == "search"
    assert found.scheme.provenance.relation == "Hensel lift"
    assert found.scheme.provenance.parents == (found.origin.digest,)
    assert found.scheme.provenance.date
    assert found.origin.ring is Z2
    assert found.origin.provenance.relation == "flip walk from naive"
    assert found.origin.provenance.seed == 0
    assert "find('2x2x2', rank=7" in found.origin.provenance.command
    assert sum(result.ranks.values()) == 4


def test_without_a_rank_improvements_are_the_finds():
    seen = []
    result = find("3x3x3", ring="Z2", rounds=4, walks=2, steps=20_000, on_event=seen.append)
    ranks = [scheme.rank for scheme in result.schemes]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == len(ranks) > 0
    assert result.rounds == len(seen) == 4
    assert result.best.rank == min(result.ranks) == seen[-1].rank
    assert [progress.round for progress in seen] == [1, 2, 3, 4]
    assert seen[-1].flips == result.flips > 0
    assert result.to_json()["finds"] == len(ranks)


def test_ctrl_c_leaves_what_was_found():
    def stop(progress):
        if progress.finds >= 2:
            raise KeyboardInterrupt

    result = find("2x2x2", rank=7, count=1000, on_event=stop)
    assert result.interrupted
    assert len(result.finds) >= 2


def test_a_walker_is_rewound_to_its_start():
    walker = make_walker("flip", naive_terms("2x2x2"), 1, 0, Policy())
    walker.advance(7, 300_000)
    assert walker.rank == walker.lowest == walker.terms().rank == 7
    walker.rewind()
    assert (walker.rank, walker.lowest) == (8, 7)


@pytest.mark.parametrize("ring", ["Z2", "Z", "ZT"])
def test_stages_lead_to_the_target_with_its_lineage(ring):
    plan = LadderPlan(passed=3)
    result = find("3x3x3", rank=23, ring=ring, seed=1, ladder=("2x3x3:15",), steps=50_000, plan=plan, seconds=60)
    best = result.finds[0]
    assert best.scheme.rank == 23
    assert best.scheme.ring.name == ring.replace("ZT", "Z")
    assert best.origin.provenance.relation == "extension along m, flip walk"
    steps = {step.origin.digest: step for step in result.lineage}
    assert set(best.origin.provenance.parents) <= set(steps)
    for step in steps.values():
        assert step.scheme.target.name == "2x3x3"
        assert step.scheme.rank <= 15
        assert step.certificate == certify(step.scheme)
        assert step.origin.provenance.relation == "flip walk from naive"
        if ring == "Z":
            assert step.scheme.ring.name == "Z"
            assert step.scheme.over_z2() == step.origin


def test_a_start_of_another_format_is_brought_to_the_target():
    longer = find("2x3x3", rank=15, ring="Z2").best
    shorter = find("2x2x3", rank=11, ring="Z2", start=longer, seconds=30)
    assert shorter.best.rank == 11
    assert shorter.finds[0].origin.provenance.relation.startswith("projection along k")
    (step,) = shorter.lineage
    assert (step.origin.digest, step.origin.provenance.parents) == (longer.digest, ())
    twice = find("2x2x4", rank=14, ring="Z2", start=scheme("strassen").over_z2())
    assert twice.finds[0].origin.provenance.relation.startswith("merge along n")


def test_an_objective_keeps_what_is_better_only():
    result = find("3x3x3", rank=23, ring="Z2", objective="nonzeros", rounds=40, steps=50_000)
    counts = [sum(len(factor.values) for factor in scheme.factors) for scheme in result.schemes]
    assert len(counts) > 1
    assert counts == sorted(set(counts), reverse=True)
    assert result.rounds == 40


def test_a_find_has_no_more_full_products_than_asked_for():
    target = "3x3x3:tri-out"
    config = RunConfig(target, 17, "Z2", policy={"full": 9})
    assert config.walk == "flip-half"
    assert config.target_policy == replace(walk_policy("flip-half"), full=9)
    found = find(target, rank=17, ring="Z2", seed=1, policy={"full": 9}, steps=200_000, seconds=30).best
    assert full_and_half(found)[0] <= 9
    start = naive(target)
    assert broken(start, Policy(full=8)) == "9 products are full, more than 8"
    # The rank of the start is no find by itself where it has too many full products.
    assert RunConfig(target, start.rank, "Z2", policy={"full": 8}).start_rank == start.rank


def test_nonzeros_are_bounded_in_the_lift_too():
    found = find("3x3x3", rank=24, policy={"nonzeros": 3}, seconds=30)
    for one in (found.best, found.finds[0].origin):
        assert max(int(np.diff(factor.indptr).max()) for factor in one.factors) <= 3
    dense = scheme("winograd")
    assert broken(dense, Policy(nonzeros=3)) == "a factor has 4 nonzeros, more than 3"
    assert not broken(dense, Policy(nonzeros=4))


@pytest.mark.parametrize("ring", ["Z2", "ZT"])
def test_fixed_products_are_in_every_find_and_after_a_resume(ring, tmp_path):
    ordered = kept_first(naive("2x2x4", "flip-zt"), [4, 2])
    limits = {"rank": 15, "ring": ring, "start": ordered, "policy": {"keep": 2}, "steps": 100_000}
    result = find("2x2x4", **limits, rounds=1, out=tmp_path / "run")
    again = resume(tmp_path / "run", rounds=3, count=1000)
    kept = ordered.over_z2() if ring == "Z2" else ordered
    assert len(again.finds) > len(result.finds) > 0
    for found in again.schemes:
        assert {0, 1} <= set(common_products(kept, found))
    whole = find("2x2x4", **limits, rounds=3, count=1000)
    assert [one.digest for one in whole.schemes] == [one.digest for one in again.schemes]


def test_products_are_the_same_up_to_sign(strassen):
    u, v, w = (factor.dense.copy() for factor in strassen.factors)
    u[2], w[2] = -u[2], -w[2]
    turned = type(strassen).from_arrays(strassen.target, u[::-1], v[::-1], w[::-1])
    assert common_products(strassen, turned) == list(range(7))
    w[0] = -w[0]
    assert common_products(strassen, type(strassen).from_arrays(strassen.target, u, v, w)) == list(range(1, 7))
    assert kept_first(strassen, [3, 1]).digest == strassen.digest
    assert np.array_equal(kept_first(strassen, [3, 1]).u.dense[:2], strassen.u.dense[[3, 1]])


def test_settings_by_target_and_walk():
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert len({(row["target"], row["walk"]) for row in rows}) == len(rows) > 0
    for row in rows:
        target = parse_target(row["target"])
        assert row["walk"] in walk_names()
        assert list(target.shape) == sorted(target.shape)
        shapes = {target.shape, target.shape[::-1]} if target.is_general else {target.shape}
        for shape in shapes:
            known = setting_for(Target.general(*shape) if target.is_general else target, row["walk"])
            assert (known.walkers, known.steps) == (int(row["walks"]), int(row["steps"]))
            assert known.policy.plus_after == int(row["plus_after"])
    config = RunConfig("3x3x3", 23, "Z2")
    own = setting_for(config.final_target, "flip")
    assert (config.walks, config.steps, config.target_policy) == (own.walkers, own.steps, own.policy)
    assert RunConfig("3x3x3", 23, "Z2", policy={"margin": 4}).target_policy == replace(config.target_policy, margin=4)
    assert RunConfig("3x3x3", 23, "Z2", walks=3, steps=7, policy=Policy()).target_policy == Policy()
    assert setting_for(parse_target("8x8x8"), "flip").policy == walk_policy("flip")
