"""Runs of many walks: finds, limits, reproducibility, provenance, refusals."""

import subprocess
import sys

import pytest

from lcma.errors import PlanError, TargetError
from lcma.schemes_db import Z2, parse_target
from lcma.search import PackedTerms, Policy, find, make_walker, register_walk, walk_names
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
    result = find("3x3x3", ring="Z2", rounds=4, walks=2, steps=20_000, on_progress=seen.append)
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

    result = find("2x2x2", rank=7, count=1000, on_progress=stop)
    assert result.interrupted
    assert len(result.finds) >= 2


def test_seconds_end_a_run_after_a_round():
    result = find("2x2x2", rank=6, seconds=0.0)
    assert result.rounds == 0
    assert result.best is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "2x2x2"}, "nothing limits"),
        ({"target": "2x2x2", "rank": 8}, "rank 8 already"),
        ({"target": "9x9x9", "rank": 500}, "at most"),
        ({"target": "2x2x2", "rank": 7, "walk": "no"}, "choose one of flip"),
        ({"target": "2x2x2", "rank": 7, "walks": 0}, "at least 1"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(PlanError, match=message):
        find(**arguments)


def test_wrong_names_and_starts():
    with pytest.raises(TargetError):
        find("2x2", rank=7)
    with pytest.raises(PlanError, match="the start computes"):
        find("2x2x3", rank=11, start=PackedTerms.naive(parse_target("2x2x2")).to_scheme())


def test_walks_are_named_plug_ins():
    assert "flip" in walk_names()
    with pytest.raises(PlanError, match="registered already"):
        register_walk("flip", make_walker)
    walker = make_walker("flip", PackedTerms.naive(parse_target("2x2x2")), 1, 0, Policy())
    walker.advance(7, 300_000)
    assert walker.rank == walker.lowest == walker.terms().rank == 7
    walker.rewind()
    assert (walker.rank, walker.lowest) == (8, 7)


def test_the_import_brings_no_compiler():
    code = "import sys, lcma.search; lcma.search.find; lcma.search.lift; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
