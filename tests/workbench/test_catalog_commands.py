import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lcma
from lcma.workbench.commands.list import FIELDS

FILTERS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["filter"]

pytestmark = pytest.mark.usefixtures("home")


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
