"""The commands around searches: exit codes, and what is printed and stored."""

import json
import re

import pytest

from lcma.errors import CatalogError
from lcma.schemes_db.catalog import Catalog
from lcma.search.improve import catalogue, general
from lcma.search.improve.folder import ImproveFolder
from lcma.search.improve.run import ImprovementPlan
from lcma.workbench.commands import improve

pytestmark = pytest.mark.usefixtures("home")


def test_improving_goes_where_the_gaps_are(run, monkeypatch, tmp_path):
    out = run.ok("improve", "3x5x6", "--up-to", "--dry-run")
    assert re.search(r"\n3x5x6 +\d+ +68 +0\.\d{4} +\d+ ", out)
    assert "2x2x2" not in out
    assert "no gap" in run("improve", "3x3x3", "--up-to")[1]

    monkeypatch.setattr(catalogue, "kept_ranks", lambda catalog, over: {})
    listed = run("improve", "2x2x4", "--up-to", "--dry-run")[1]
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["2x2x2", "2x2x4", "2x2x3"]
    listed = run("improve", "4x2x2,2x2x3", "--dry-run")[1]
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["2x2x4", "2x2x3"]
    monkeypatch.setattr(general, "board", lambda: ((2, 2, 2), (2, 2, 3)))
    planned = run.json("improve", "--for", "closure", "--dry-run")
    assert [(one["target"], one["rank"], one["best_known_rank"]) for one in planned] == [
        ("2x2x2", 8, 7),
        ("2x2x3", 12, 11),
    ]
    assert planned[0]["one"] == planned[0]["all"]
    assert planned[0]["one"]["cells"] > planned[1]["one"]["cells"] > 0
    text = run.ok("improve", "--for", "closure", "--ring", "Z2", "--time", "1s", "--out", str(tmp_path / "run"))
    assert "found <2x2x2:7 over Z" in text  # also by triples, over Z
    config = ImproveFolder.read(tmp_path / "run").config
    assert (config.closure, config.targets) == (True, ())
    text = run.said(0, "improve", "2x2x3", "--ring", "Z2", "--time", "1s")
    for words in ("2x2x3: by ", "found <2x2x3:11 over Z", "rank 12 before", r"1 gained in \d+ turns"):
        assert re.search(words, text)


def test_an_improvement_goes_on_from_its_folder(run, home, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "kept_ranks", lambda catalog, over: {})
    folder = tmp_path / "run"
    run.ok("improve", "2x2x3,2x2x2", "--ring", "Z2", "--time", "1s", "--out", folder)
    first = run.json("status", folder)[0]
    assert first["state"] == "finished"
    assert first["gained"] == len(first["schemes"]) >= 1  # a slow machine has but one turn
    assert run("improve", "2x2x3", "--out", folder)[0] == 3
    again = json.loads(run("resume", folder, "--time", "2s", "--json")[1])
    assert sum(again["turns"].values()) >= sum(first["turns"].values())
    assert again["gained"] >= first["gained"]
    assert run("resume", folder, "--rounds", 3)[0] == 2
    # What a crash left of a line is no find, and a damaged folder hides no other.
    with (folder / "found.jsonl").open("a") as stream:
        stream.write('{"lcma_scheme": 1, "tar')
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    code, out, err = run("status", tmp_path / "bad", folder)
    assert (code, "bad" in err, "2x2x3,2x2x2" in out) == (3, True, True)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "code": "0"}))
    run.refused(3, "other code", "resume", folder)


def test_finds_that_can_not_be_stored_are_written_beside(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.ok("search", "2x2x2", "--rank", 7)  # the walk is compiled

    def full(self, *arguments, **options):
        raise CatalogError("the disk is full")

    monkeypatch.setattr(Catalog, "add", full)
    run.refused(3, "written beside", "search", "2x2x2", "--rank", 7, "--ring", "Z2", "--seed", 3)
    written = min(tmp_path.glob("lcma-found-*.json"))
    monkeypatch.undo()
    assert run("verify", written)[0] == 0


def test_improve_hands_retry_to_the_run(run, monkeypatch):
    seen = []
    monkeypatch.setattr(improve, "plan", lambda config: seen.append(config.retry) or ImprovementPlan([], {}))
    for more in ((), ("--retry",)):
        assert run("improve", "2x2x2", "--dry-run", *more)[0] == 0
    assert seen == [False, True]
