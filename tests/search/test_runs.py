"""Runs that are killed, interrupted, stopped in a round, locked or out of disk lose nothing and can be resumed."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lcma.schemes_db import Z2
from lcma.search import LadderPlan, Policy, RunFolderError, find, merge, resume, status
from lcma.search.runs import walk_run
from lcma.search.runs.folder import RunFolder
from lcma.search.runs.result import Record
from lcma.search.runs.snapshot import restore, snapshot
from lcma.verify import certify
from lcma.workbench.interrupts import Interrupts

from ..refusal import refuses, refuses_with
from .searches import SEARCHES, searched

# Many short rounds that find much, so that a kill falls between two checkpoints.
COURSE = {"target": "3x3x3", "rank": 23, "ring": "Z2", "seed": 7, "walks": 4, "steps": 20_000, "count": 10**6}


def search(out, rounds, **changes):
    return find(**{**COURSE, "rounds": rounds, "out": out, **changes})


def digests(result):
    return sorted(scheme.digest for scheme in result.schemes)


def lines(folder):
    return (folder / "found.jsonl").read_text().splitlines()


def same_walks(*folders):
    a, b = (RunFolder.read(folder).checkpoint().arrays for folder in folders)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    return folder, search(folder, 60)


def test_a_folder_holds_every_find(unbroken):
    folder, result = unbroken
    records = [Record.from_line(line) for line in lines(folder)]
    assert sorted(record.found.scheme.digest for record in records) == digests(result)
    assert len(records) > 20
    assert all(record.found.scheme.ring is Z2 for record in records)
    assert [record.round for record in records] == sorted(record.round for record in records)
    about = json.loads((folder / "run.json").read_text())
    assert about["config"]["seed"] == 7
    assert about["versions"]["numpy"] == np.__version__
    run_status = status(folder)
    assert (run_status.word, run_status.round, run_status.best) == ("finished", 60, 23)
    assert len(run_status.finds) == len(records)


@pytest.mark.parametrize(
    ("jobs", "changes"),
    [
        pytest.param(1, {}, marks=pytest.mark.slow),
        (2, {}),
        pytest.param(3, {}, marks=pytest.mark.slow),
        (2, {"ladder": ("2x3x3:15",), "plan": LadderPlan(passed=3)}),
    ],
)
def test_killed_runs_go_on_as_if_nothing_had_been(unbroken, folder, tmp_path, jobs, changes):
    code = (
        "import sys, lcma.search.runs.search_run as r\n"
        "from lcma.search import LadderPlan\n"
        "r.CHECKPOINT_SECONDS, r.CHECKPOINT_SHARE = 0.02, 1\n"
        f"r_find = __import__('lcma.search', fromlist=['find']).find\n"
        f"r_find(**{ {**COURSE, **changes}!r}, rounds=100000, jobs={jobs}, out=sys.argv[1])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    while not (folder / "state.npz").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    broken = status(folder)
    assert broken.word == "stopped"
    assert 0 < broken.round < 100_000
    # What stood on the disk beyond the checkpoint is kept, and found again rather than twice.
    rounds = max(60, broken.round + 20)
    result = resume(folder, rounds=rounds, jobs=jobs)
    plain = rounds == 60 and not changes
    whole = unbroken[0] if plain else tmp_path / "whole"
    reference = unbroken[1] if plain else search(whole, rounds, **changes)
    assert digests(result) == digests(reference)
    assert [step.origin for step in result.steps] == [step.origin for step in reference.steps]
    assert same_walks(folder, whole)
    assert sorted(json.loads(line)["round"] for line in lines(folder)) == sorted(
        json.loads(line)["round"] for line in lines(whole)
    )


def test_a_run_resumed_before_its_first_checkpoint_starts_over(unbroken, folder):
    search(folder, 60)
    (folder / "state.npz").unlink()
    content = (folder / "found.jsonl").read_bytes()
    (folder / "found.jsonl").write_bytes(content[: len(content) // 2])
    assert digests(resume(folder)) == digests(unbroken[1])
    assert len(lines(folder)) == len(lines(unbroken[0]))


def test_finds_that_were_lifted_come_back_with_what_they_were_lifted_from(folder):
    first = find("3x3x3", rank=23, seed=3, count=40, policy=Policy(), out=folder)
    again = resume(folder)
    assert digests(again) == digests(first)
    assert again.rounds == first.rounds
    assert [one.origin.digest for one in again.finds] == [one.origin.digest for one in first.finds]
    assert [one.reason for one in again.unlifted] == [one.reason for one in first.unlifted]
    assert again.unlifted
    for one in again.finds:
        assert one.certificate == certify(one.scheme)
        assert one.scheme.provenance.seed == 3


@pytest.mark.parametrize("kind", SEARCHES["resumed"])
def test_every_kind_of_run_goes_on_as_if_nothing_had_been(tmp_path, kind):
    course = {"count": 100, **SEARCHES["resumed"][kind]}
    first, rounds = course.pop("first"), course["rounds"]
    whole = searched(course, jobs=1, out=tmp_path / "whole")
    searched(course, rounds=first, out=tmp_path / "run")
    again = resume(tmp_path / "run", rounds=rounds, jobs=1 if "device" in course else 2)
    assert [one.digest for one in again.schemes] == [one.digest for one in whole.schemes]
    assert [step.origin.digest for step in again.steps] == [step.origin.digest for step in whole.steps]
    assert (again.ranks, again.flips) == (whole.ranks, whole.flips)
    assert same_walks(tmp_path / "run", tmp_path / "whole")
    assert whole.schemes or "device" in course
    assert ("ladder" in course) == bool(whole.steps)


def interrupted(folder, *numbers):
    """A run of 60 rounds that gets signals in its fifth."""

    def stop(progress):
        for number in numbers if progress.round == 5 else ():
            os.kill(os.getpid(), number)

    with Interrupts() as interrupts:
        result = search(folder, 60, on_event=stop, stop=lambda: interrupts.wanted)
    assert result.interrupted
    return result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_after_its_round(folder, number):
    before = signal.getsignal(number)
    assert interrupted(folder, number).rounds == status(folder).round == 5
    assert signal.getsignal(number) is before


def test_the_second_signal_gives_the_round_up(folder, unbroken):
    interrupted(folder, signal.SIGINT, signal.SIGINT)
    assert digests(resume(folder)) == digests(unbroken[1])


def test_a_folder_is_of_one_process_and_one_run(folder):
    search(folder, 1)
    refuses_with(RunFolderError, "holds a run already", search, folder, 1)
    held = RunFolder.open(folder)
    assert status(folder).word == "running"
    refuses_with(RunFolderError, f"in use by process {os.getpid()}", resume, folder, rounds=2)
    held.close()
    assert resume(folder, rounds=2).rounds == 2


def test_a_folder_of_other_code_is_refused_but_can_be_merged(folder):
    result = search(folder, 4)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "code": "0123"}))
    refuses_with(RunFolderError, "made by other code", resume, folder)
    assert sorted(found.scheme.digest for found in merge([folder])[1]) == digests(result)
    (folder / "run.json").write_text(json.dumps({**about, "lcma_run": 99}))
    refuses_with(RunFolderError, "format 99", status, folder)


def test_a_scheme_that_was_tampered_with_is_rejected(folder):
    search(folder, 30)
    record = json.loads(lines(folder)[0])
    product = record["scheme"]["products"][0]
    product["u"], product["v"] = product["v"], product["u"]
    (folder / "found.jsonl").write_text(json.dumps(record) + "\n")
    refuses_with(RunFolderError, "not valid", resume, folder, rounds=31)


def no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_loses_nothing(folder, unbroken, monkeypatch):
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        return real(handle) if len(calls) <= 5 else no_space()

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        refuses_with(RunFolderError, r"No space left on device.*free some space", search, folder, 60)
    before = lines(folder)
    assert len(before) > 0
    assert all(Record.from_line(line) for line in before)
    assert digests(resume(folder)) == digests(unbroken[1])
    assert lines(folder)[: len(before)] == before


def test_a_checkpoint_that_can_not_be_written_leaves_the_last_one(folder, monkeypatch):
    search(folder, 2)
    with monkeypatch.context() as patch:
        patch.setattr("lcma.search.runs.folder.write_atomic", no_space)
        refuses_with(RunFolderError, "No space left", resume, folder, rounds=4)
    assert status(folder).round == 2


def test_a_bad_search_leaves_no_folder(tmp_path):
    for bad in ({"target": "9x9x9", "rank": 500}, {"walk": "no"}, {"rank": 27}):
        refuses(".", search, tmp_path / "run", 1, **bad)
    assert not (tmp_path / "run").exists()
    refuses_with(RunFolderError, "holds no run", status, tmp_path)


def test_merging_takes_each_scheme_once(tmp_path):
    folders, everything = [tmp_path / name for name in "abc"], tmp_path / "all.jsonl"
    first, second = search(folders[0], 3), search(folders[1], 3, seed=8)
    search(folders[2], 2)
    runs, finds = merge(folders, everything)
    assert len(runs) == 3
    assert {found.scheme.digest for found in finds} == {*digests(first), *digests(second)}
    written = everything.read_text().splitlines()
    assert [Record.from_line(line).found.scheme.digest for line in written] == [one.scheme.digest for one in finds]
    refuses_with(RunFolderError, r"all\.jsonl can.t be written", merge, folders[:1], everything)
    find("2x2x2", rank=7, ring="Z2", out=tmp_path / "d")
    refuses_with(RunFolderError, "merge like with like", merge, [folders[0], tmp_path / "d"])


class Odd:
    """A walk that declares no state."""

    def __init__(self):
        self.steps = 4


class Plain:
    STATE = ("words", "steps")

    def __init__(self, more=0, steps=4):
        self.words, self.steps, self.name = np.arange(3) + more, steps, "x"


def test_snapshots_have_a_schema():
    refuses("declare no STATE", snapshot, [Odd()])
    saved, others = snapshot([Plain(), Plain(more=5)]), [Plain(steps=9), Plain()]
    assert set(saved) == {"words", "steps"}
    restore(others, saved)
    assert others[1].words.tolist() == [5, 6, 7]
    assert others[0].steps == 4
    for wrong in ([Plain()], [Odd()]):
        refuses(r"does not fit|declare no", restore, wrong, saved)
    refuses("does not fit these walks: it has words", restore, others, {"words": saved["words"]})


def test_a_run_of_stages_reports_its_stage(folder):
    plan = LadderPlan(passed=3)
    search(folder, 1, target="3x3x3", ladder=("2x3x3:15",), steps=5000, plan=plan)
    run_status = status(folder)
    assert (run_status.target.name, run_status.best, run_status.steps) == ("2x3x3", None, ())
    result = resume(folder, rounds=400)
    run_status = status(folder)
    assert run_status.target.name == "3x3x3"
    assert [step.origin for step in run_status.steps] == [step.origin for step in result.steps]
    assert run_status.to_json()["steps"] == [step.scheme.digest for step in result.steps]
    assert 1 <= len(result.steps) <= plan.passed


def short_rounds(parts=4_000, **options):
    """A search of rounds that walk in parts, and the digests of its finds in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_run, "STEPS_AT_ONCE", parts)
        result = find("2x2x2", rank=7, seed=3, walks=2, steps=20_000, count=10**6, rounds=5, **options)
    return result, [scheme.digest for scheme in result.schemes]


def test_a_broken_round_is_repeated_and_changes_no_find(folder, monkeypatch):
    monkeypatch.setattr(walk_run, "STEPS_AT_ONCE", 4_000)
    calls = itertools.count(1)
    broken, _ = short_rounds(out=folder, stop=lambda: next(calls) > 25)  # 10 calls a round: within the third
    assert broken.interrupted
    assert broken.rounds == 2
    assert status(folder).round <= broken.rounds
    again = resume(folder)
    assert [scheme.digest for scheme in again.schemes] == short_rounds()[1]
    assert again.rounds == 5


def test_parts_of_a_round_change_no_find():
    assert short_rounds()[1] == short_rounds(parts=10**9)[1]
