"""Runs of many walks: finds, limits, reproducibility, provenance, refusals."""

import subprocess
import sys

import pytest

from lcma.schemes_db import Z2, parse_target
from lcma.search import (
    LadderPlan,
    PackedTerms,
    Policy,
    RunConfig,
    find,
    make_walker,
    walk_names,
)
from lcma.verify import certify


def digests(result):
    return [scheme.digest for scheme in result.schemes]


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


def test_the_number_of_jobs_changes_nothing():
    first, second = (find("3x3x3", rank=23, seed=5, count=10, jobs=jobs) for jobs in (1, 2))
    assert digests(first) == digests(second)
    assert first.rounds == second.rounds
    assert len(set(digests(first))) == len(first.finds) >= 10
    assert digests(first) != digests(find("3x3x3", rank=23, seed=6, count=10))


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


def test_a_walk_may_start_from_a_scheme():
    start = PackedTerms.naive(parse_target("2x2x2")).to_scheme()
    found = find("2x2x2", rank=7, start=start).finds[0]
    assert found.origin.provenance.relation == "flip walk"
    assert found.origin.provenance.parents == (start.digest,)


def test_ctrl_c_leaves_what_was_found():
    def stop(progress):
        if progress.finds >= 2:
            raise KeyboardInterrupt

    result = find("2x2x2", rank=7, count=1000, on_event=stop)
    assert result.interrupted
    assert len(result.finds) >= 2


def test_seconds_end_a_run_after_a_round():
    result = find("2x2x2", rank=6, seconds=0.0)
    assert result.rounds == 0
    assert result.best is None


def test_walks_are_named_plug_ins():
    assert "flip" in walk_names()
    walker = make_walker("flip", PackedTerms.naive(parse_target("2x2x2")), 1, 0, Policy())
    walker.advance(7, 300_000)
    assert walker.rank == walker.lowest == walker.terms().rank == 7
    walker.rewind()
    assert (walker.rank, walker.lowest) == (8, 7)


def test_the_import_brings_no_compiler():
    code = "import sys, lcma.search; lcma.search.find; lcma.search.lift; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


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
    assert shorter.lineage[0].origin.digest == longer.digest
    assert shorter.lineage[0].origin.provenance.parents == ()
    twice = find("2x2x4", rank=14, ring="Z2", start=find("2x2x2", rank=7, ring="Z2").best)
    assert twice.finds[0].origin.provenance.relation.startswith("merge along n")


def test_the_default_stages_to_a_target():
    assert RunConfig("5x5x5", 97, "Z2").walk == "flip-c3"
    assert [str(stage) for stage in RunConfig("4x5x5", 74, "Z2").stages] == ["4x4x4:47", "4x4x5:60", "4x5x5:74"]
    assert [str(stage) for stage in RunConfig("4x4x4", 47, "Z2").stages] == ["4x4x4:47"]
    assert RunConfig("5x5x5", 97, "Z2", ladder=("4x5x5:73",)).walk == "flip"
    assert RunConfig("4x4x4:tri-out", 34, seconds=1, objective="cost").walk == "flip-half"
    assert RunConfig("3x3x3", 23, "Z3").walk == "flip-z3"


def test_an_objective_keeps_what_is_better_only():
    result = find("3x3x3", rank=23, ring="Z2", objective="nonzeros", rounds=40, steps=50_000)
    counts = [sum(len(factor.values) for factor in scheme.factors) for scheme in result.schemes]
    assert len(counts) > 1
    assert counts == sorted(set(counts), reverse=True)
    assert result.rounds == 40
