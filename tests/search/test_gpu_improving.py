"""Searches of `lcma search --improve` on a GPU: runs of many walks there, each with the command that repeats it."""

from __future__ import annotations

from lcma.schemes_db import Target, Z
from lcma.search import RunConfig
from lcma.search.gaps import Gap
from lcma.workbench import improving


def test_searches_on_a_gpu_have_walks_enough_for_it(monkeypatch):
    gap = Gap(Target.general(4, 4, 4), 48, 47)
    config = improving._config(gap, "Z2", 3, "cuda", walk="flip-c3")
    assert (config.device, config.walks, config.steps) == ("cuda", improving.GPU_WALKS, improving.GPU_STEPS)
    assert f"--device cuda --walks {improving.GPU_WALKS}" in config.command
    assert "--device" not in improving._config(gap, "Z2", 3, "cpu").command
    monkeypatch.setattr(improving, "best_below", lambda *_: None)
    ways = list(improving._ways(gap, "Z", Z, None, 0, "cuda"))
    assert [one.walk for one in ways] == ["flip-c3", "flip"]
    assert all(isinstance(one, RunConfig) and one.device == "cuda" for one in ways)
