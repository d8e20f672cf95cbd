import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

import lcma
from lcma.workbench import cli
from lcma.workbench.commands.demo import NEXT, draw, multiply
from lcma.workbench.commands.list import FIELDS
from lcma.workbench.help import summary

FILTERS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["filter"]

pytestmark = pytest.mark.usefixtures("empty_home")


def test_every_command_has_help_that_agrees_with_the_list(run):
    out = run.ok("--help")
    for name in cli.COMMANDS:
        assert f"\n  {name} " in out
        assert " ".join(run.ok(name, "--help").split("\n\n")[1].split()).startswith(summary(name))


@pytest.mark.parametrize(("error", "code", "said"), [
    (RuntimeError("surprise"), 70, "surprise\nlcma: internal error"), (KeyboardInterrupt(), 130, "lcma: interrupted"),
])  # fmt: skip
def test_a_crash_or_an_interrupt_is_never_read_as_invalid(run, monkeypatch, error, code, said):
    def broken(*_):
        raise error

    monkeypatch.setattr(lcma.Catalog, "open", broken)
    assert said in run.said(code, "list")


def test_the_demo_leaves_out_what_would_take_too_long(capsys):
    title, bars = multiply(256, 1, ends=0.0)
    assert "128 x 128 is left out: it would take more than a minute" in capsys.readouterr().out
    assert title.startswith("64 x 64 float32 product: speed over ")
    assert set(bars) >= {"numpy", "strassen, 1 level"}


@pytest.mark.parametrize("line", [part.partition(" > ")[0] for _, line in NEXT for part in line.split("&& ")])
def test_the_commands_that_the_demo_names_are_understood(line):
    _, name, *arguments = shlex.split(line)
    command = import_module(f"lcma.workbench.commands.{name}").command
    assert command.make_context(name, arguments, resilient_parsing=False).command is command


def test_the_demo_draws_a_bar_a_contender_with_hostile_names():
    text = draw([("title <&>", {"numpy": 1.0, "<b>": 1.25}), ("second", {"x": 0.5})])
    bars = [one for one in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    assert [round(float(bar.get("width")) / float(bars[0].get("width")), 2) for bar in bars] == [1, 1.25, 0.5]
    assert "&lt;b&gt;" in text


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
