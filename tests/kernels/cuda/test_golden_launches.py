"""The GPU level executors launch, call and allocate what they did: see golden_launches.py."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from . import golden_launches as golden

CASES = dict(golden.cases())
WANTED = json.loads(golden.RECORD.read_text(encoding="utf-8"))


def test_the_record_has_every_case():
    assert list(CASES) == list(WANTED)


def test_launches_are_those_of_the_record(monkeypatch):
    found = {name: golden.record(call, monkeypatch.setattr) for name, call in CASES.items()}
    assert [name for name in CASES if found[name] != WANTED[name]] == []
