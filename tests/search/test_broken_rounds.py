"""A round that `stop` ends early: its finds are stored, and a resumed run repeats it."""

import time

import pytest

from lcma.search import find, resume, status
from lcma.search.runs import walk_run

SETTINGS = {"rank": 7, "seed": 3, "walks": 2, "steps": 20_000, "count": 10**6}


@pytest.fixture
def _short_parts(monkeypatch):
    monkeypatch.setattr(walk_run, "STEPS_AT_ONCE", 4_000)


def digests(result):
    return [scheme.digest for scheme in result.schemes]


@pytest.mark.usefixtures("_short_parts")
def test_a_broken_round_is_repeated_and_changes_no_find(tmp_path):
    whole = find("2x2x2", **SETTINGS, rounds=5)
    calls = []

    def stop():
        calls.append(time.perf_counter())
        return len(calls) > 25  # 10 calls a round: within the third

    broken = find("2x2x2", **SETTINGS, rounds=5, out=tmp_path / "run", stop=stop)
    assert broken.interrupted
    assert broken.rounds == 2
    assert status(tmp_path / "run").round <= broken.rounds
    again = resume(tmp_path / "run")
    assert digests(again) == digests(whole)
    assert again.rounds == 5


@pytest.mark.usefixtures("_short_parts")
def test_parts_of_a_round_change_no_find(monkeypatch):
    parts = find("2x2x2", **SETTINGS, rounds=4)
    monkeypatch.setattr(walk_run, "STEPS_AT_ONCE", 10**9)
    assert digests(parts) == digests(find("2x2x2", **SETTINGS, rounds=4))
