"""The CPU level executors keep their bits, their workspace and their predicted stages: see golden_levels.py."""

import json

import numpy as np
import pytest

from . import golden_levels as golden

CASES = dict(golden.cases())
WANTED = json.loads(golden.RECORD.read_text(encoding="utf-8"))


QUICK = ("int8 ", "strips ", "grouped 2x2x2-tri-left-r6 left ")


def is_quick(name: str) -> bool:
    """Return whether the kernels of a case are few and small: compiling them is most of the time."""
    return name.startswith(QUICK) or " strassen * strassen (35" in name


def check(monkeypatch, names):
    monkeypatch.setattr(np, "matmul", golden.multiply_in_order)
    wrong = []
    for name in names:
        one, two = (golden.record(CASES[name], threads) for threads in (1, 2))
        wrong += [name] * ([one["c"], one["stages"], one["workspace"], two["workspace"]] != WANTED[name])
        wrong += [name] * (one["c"] != two["c"])
    assert wrong == []


def test_the_record_has_every_case():
    assert list(CASES) == list(WANTED)


def test_results_workspace_and_stages_are_those_of_the_record(monkeypatch):
    check(monkeypatch, filter(is_quick, CASES))


@pytest.mark.slow
def test_other_dtypes_and_larger_schemes_too(monkeypatch):
    check(monkeypatch, (name for name in CASES if not is_quick(name)))
