"""The commands around searches: exit codes, what is printed, interruption from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from lcma.errors import CatalogError
from lcma.schemes_db import Program
from lcma.schemes_db.catalog import Catalog
from lcma.search.improve import catalogue, general
from lcma.search.improve.folder import ImproveFolder
from lcma.verify import check_program

pytestmark = pytest.mark.usefixtures("home")


def test_a_search_in_a_folder_is_resumed_shown_and_merged(run, tmp_path):
    folder = tmp_path / "run"
    assert "found <2x2x2:7 over Z>" in run.ok("search", "2x2x2", "--rank", 7, "--out", folder, "--jobs", 2)
    out = run.ok("status", folder)
    assert re.search(r"2x2x2 +Z +0 +finished +1 ", out)
    data = run.json("resume", folder, "--count", 100, "--rounds", 3)
    assert data["rounds"] == 3
    shown = run.json("status", folder)
    assert shown[0]["schemes"] == data["schemes"]
    text = run.ok("merge", folder, "--out", tmp_path / "all.jsonl")
    assert f"{data['finds']} distinct schemes ({data['finds']} of rank 7), {data['finds']} new" in text
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == data["finds"]


def test_many_seeds_make_a_table_of_success(run, tmp_path):
    out = run.ok("search", "2x2x2", "--rank", 7, "--seeds", 3, "--seed", 5, "--out", tmp_path)
    assert [line.split()[0] for line in out.splitlines() if re.match(r" +\d", line)] == ["5", "6", "7"]
    assert "rank 7 reached with 3 of 3 seeds, median" in out
    assert sorted(path.name for path in tmp_path.glob("seed*")) == ["seed-5", "seed-6", "seed-7"]
    code, out, _ = run("search", "2x2x2", "--rank", 6, "--seeds", 2, "--rounds", 1, "--steps", 100, "--json")
    assert code == 1
    assert [item["finds"] for item in json.loads(out)] == [0, 0]


def test_refusals_are_one_line_and_exit_3(run, tmp_path):
    run("search", "2x2x2", "--rank", 7, "--out", tmp_path / "run")
    for arguments in (
        ("search", "2x2x2", "--rank", 7, "--out", tmp_path / "run"),
        ("merge", tmp_path / "run", tmp_path),
    ):
        run.refused(3, "", *arguments)


def test_a_dry_run_says_the_way(run):
    way = "4x4x4:47 -> 4x4x5:60 -> 4x5x5:73 over Z2: from rank 64 of 4x4x4 to 73, 4 walks (flip)"
    assert way in run.ok("search", "4x5x5", "--ring", "Z2", "--dry-run")
    assert "5x5x5:93 over Z: from rank 129 of 5x5x5" in run("search", "5x5x5", "--dry-run")[1]
    assert "4x5x5:76 -> 5x5x5:93" in run("search", "5x5x5", "--start", "best", "--dry-run")[1]
    assert run("list", "--where", "origin=user", "--json")[1].strip() == "[]"


def test_starts_and_ladders_by_name(run):
    out = run.ok("search", "3x3x3", "--ring", "Z2", "--ladder", "2x3x3:15", "--steps", 50_000, "--seed", 1)
    assert re.search(r"by way of <2x3x3:1[45] over Z2> [0-9a-f]{12}\nfound <3x3x3:23 over Z2>", out)
    kept = run.json("list", "--where", "origin=user")
    assert {"3x3x3"} <= {entry["target"] for entry in kept} <= {"2x3x3", "3x3x3"}
    shown = run("show", next(entry["digest"] for entry in kept if entry["target"] == "3x3x3"))[1]
    assert "extension along m, flip walk" in shown
    for start in ("naive", "compose", "2x3x3-r15", "laderman"):
        assert run("search", "2x3x3", "--rank", 14, "--start", start, "--rounds", 2, "--steps", 1000)[0] == 1


def test_policy_and_objectives_are_options(run):
    text = run.ok("search", "3x3x3", "--ring", "Z2", "--plus", 3000, "--margin", 3, "--steps", 20_000)
    assert "found <3x3x3:23 over Z2>" in text
    limits = ("--rounds", 6, "--steps", 20_000)
    text = run.ok("search", "4x4x4:tri-out", "--ring", "Z2", "--rank", 38, "--objective", "cost", *limits)
    assert "found <4x4x4:tri-out:3" in text


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


def test_a_search_that_falls_short_keeps_its_lowest(run, home):
    text = run.said(1, "search", "3x3x3", "--rank", 22, "--ring", "Z2", "--rounds", 6, "--steps", 50_000)
    assert re.search(r"the lowest was <3x3x3:2[3-6] over Z2> \w{12}, certified, kept", text)
    with Catalog.open() as catalog:
        assert min(entry.rank for entry in catalog.entries(target="3x3x3", ring="Z2", origin="user")) <= 26
    text = run.said(1, "search", "3x3x3", "--rank", 22, "--rounds", 1, "--steps", 10)
    assert "the catalogue has rank 23: lcma compose 3x3x3" in text


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


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_search_says_how_to_go_on(run, warm_home, tmp_path, number):
    folder = tmp_path / "run"
    command = ["search", "3x3x3", "--rank", "22", "--ring", "Z2", "--steps", "50000", "--out", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "lcma", *command], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ
    )
    while not (folder / "run.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"to go on: lcma resume {folder}" in err
    rounds = run.json("status", folder)[0]["rounds"]
    assert run("resume", folder, "--rounds", rounds + 2)[0] == 1
    assert run.json("status", folder)[0]["rounds"] == rounds + 2


def test_additions_writes_a_proven_program(run, tmp_path):
    out = run.ok("additions", "winograd", "strassen", "--time", "0.5s", "--out", tmp_path / "p.json")
    assert "15 additions, proven" in out
    assert "left 4, right 4, out 7" in out
    program = Program.from_json(json.loads((tmp_path / "p.json").read_text()))
    assert program.additions == 15
    assert check_program(program).ok
    data = run.json("additions", "strassen", "--time", "0.2s")
    assert data["additions"]["now"] == sum(data["additions"][side] for side in ("left", "right", "out"))


def test_solve_answers_in_words_and_codes(run):
    assert (
        "infeasible: 1x2x2 has no scheme of rank 3 modulo 2"
        in run("solve", "1x2x2", "--rank", 3, "--ring", "z2", "--prove")[1]
    )
    assert run.json("solve", "1x2x2", "--rank", 4)["answer"] == "found"
    assert run.json("list", "--where", "origin=user")[0]["rank"] == 4
    assert run("solve", "2x2x2", "--rank", 7, "--time", "0.0001s")[0] == 1


def test_recombine_lift_and_explore_take_run_folders(run, tmp_path):
    pytest.importorskip("matplotlib")
    run("search", "2x2x2", "--rank", 7, "--out", tmp_path / "run")
    out = run.ok("recombine", "naive:2x2x2", tmp_path / "run")
    assert "7 full + 0 half products" in out
    assert "the cheapest there is" in out
    out = run.ok("lift", tmp_path / "run", "--jobs", 2)
    assert "ternary (100%)" in out
    files = ("--out", tmp_path / "g.graphml", "--out", tmp_path / "g.png")
    out = run.ok("explore", tmp_path / "run", "--radius", 1, "--orbits", *files)
    assert "orbits, by invariants: at least 1, schemes seen of each: " in out
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    assert "schemes of rank 7, " in out
    assert (tmp_path / "g.graphml").read_text().startswith("<?xml")


def test_bounds_are_options_that_the_run_remembers(run, tmp_path):
    limits = ("--seed", 1, "--ring", "Z2", "--steps", 200_000, "--time", "30s")
    bounds = ("--rank", 17, "--full", 9, "--chance", 0.2, "--nonzeros", 6)
    out = run.ok("search", "3x3x3:tri-out", *bounds, *limits, "--out", tmp_path / "a")
    assert "found <3x3x3:tri-out:17 over Z2>" in out
    policy = run.json("status", tmp_path / "a")[0]["config"]["resolved"][-1]["policy"]
    assert (policy["full"], policy["chance"], policy["nonzeros"]) == (9, 0.2, 6)
