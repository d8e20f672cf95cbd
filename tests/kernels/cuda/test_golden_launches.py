"""The GPU level executors launch, call and allocate what they did: see golden_launches.py."""

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

_SPEC = importlib.util.spec_from_file_location("golden_launches", Path(__file__).with_name("golden_launches.py"))
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

CASES = dict(golden.cases())
WANTED = json.loads(golden.RECORD.read_text(encoding="utf-8"))


def test_the_record_has_every_case():
    assert list(CASES) == list(WANTED)


def test_launches_are_those_of_the_record(monkeypatch):
    found = {name: golden.record(call, monkeypatch.setattr) for name, call in CASES.items()}
    assert [name for name in CASES if found[name] != WANTED[name]] == []
