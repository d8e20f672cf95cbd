import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.workbench.commands.list import FIELDS

FILTERS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["filter"]

pytestmark = pytest.mark.usefixtures("home")


def test_pickled_arrays_are_added_and_converted_only_when_allowed(run, tmp_path):
    u, v, w = (factor.dense for factor in lcma.resolve("naive:2x3x4")[0].factors)
    arrays = np.empty(3, dtype=object)
    arrays[:] = [u.reshape(24, -1).T, v.reshape(24, -1).T, w.transpose(0, 2, 1).reshape(24, -1).T]
    np.savez(tmp_path / "pickled.npz", **{"2,3,4": arrays})
    path, out = tmp_path / "pickled.npz", tmp_path / "out.json"
    for command in (("add", path), ("convert", path, out)):
        run.refused(65, "--allow-pickle", *command)
        assert run(*command, "--allow-pickle")[0] == 0
    assert lcma.load(out)[0].rank == 24


def test_shells_complete_commands_and_options(monkeypatch, capfd):
    def completed(words):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        monkeypatch.setenv("_LCMA_COMPLETE", "bash_complete")
        assert subprocess.run([sys.executable, "-m", "lcma"]).returncode == 0
        return [line.partition(",")[2] for line in capfd.readouterr().out.splitlines()]

    assert completed("lcma ver") == ["verify"]
    assert "--allow-pickle" in completed("lcma convert --a")
    assert {"exact", "randomized", "symbolic"} <= set(completed("lcma verify --method "))
    monkeypatch.setenv("_LCMA_COMPLETE", "zsh_source")
    assert subprocess.run([sys.executable, "-m", "lcma"]).returncode == 0
    assert capfd.readouterr().out.startswith("#compdef lcma")


@pytest.mark.parametrize("row", FILTERS, ids=lambda row: " ".join(row["where"]))
def test_a_list_is_filtered_by_what_pages_show(run, row):
    wanted = [word for one in row["where"] for word in ("--where", one)]
    assert {found["name"] for found in run.json("list", *wanted)} == set(row["names"])


def test_every_field_of_filters_is_tried_and_documented():
    page = (Path(lcma.__file__).parent / "docs" / "how-to" / "query.md").read_text()
    for name in FIELDS:
        assert any(re.match(rf"{name}([=<>!~]|$)", one) for row in FILTERS for one in row["where"]), name
        assert f"`{name}`" in page, name


def test_the_cache_is_shown_and_cleared(run, home):
    (home / "cache" / "kernels").mkdir(parents=True)
    (home / "cache" / "kernels" / "x").write_text("0123")
    assert run.json("cache")["bytes"] == 4
    assert "cleared" in run("cache", "--clear")[1]
    assert run.json("cache")["files"] == 0
