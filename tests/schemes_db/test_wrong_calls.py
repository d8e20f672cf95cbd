"""Wrong calls are refused before anything is computed, each with its reason; nothing of a file is run."""

import json
from pathlib import Path

from ..refusal import refuses_as_said, wrong_calls
from .archives import Evil, archive, header, json_with, maple, npy, npz_with, pickled, sample, zipped

CALLED = Evil, archive, header, json_with, maple, npy, npz_with, pickled, sample, zipped
MADE = {one.__name__: one for one in CALLED}


@wrong_calls(__file__)
def test_a_wrong_call_is_refused_in_one_line(modules, call, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses_as_said(modules, call, error, json=json, **MADE)
    assert not Path("pickled-and-run").exists()
