import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json
from lcma.workbench.commands.list import FIELDS

FILTERS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["filter"]

pytestmark = pytest.mark.usefixtures("home")


def test_compose_builds_proves_and_keeps(run, tmp_path):
    out = run.ok("compose", "4x6x6", "--add", "--out", tmp_path / "c.json")
    assert out.splitlines()[0] == "4x6x6:105 product"
    assert "rank 105; best known 105, certified" in out
    assert lcma.load(tmp_path / "c.json")[0].target.name == "4x6x6"
    assert run.json("list", "4x6x6")[0]["rank"] == 105
    data = run.json("compose", "6x4x6", "--dry-run")
    assert (data["rank"], data["composition"]["how"]) == (105, "scheme")
    out = run.ok("compose", "7x7x7", "--add", "--explain")
    assert out.splitlines()[:3] == [
        "7x7x7:250 uneven product 4+3 x 4+3 x 4+3",
        "  2x2x2:7 scheme strassen",
        f"  4x4x4:49 scheme {lcma.resolve('4x4x4:49')[0].digest[:16]}, shipped as 4x4x4-r49",
    ]
    assert "  3 times 3x4x4:38 scheme" in out
    data = run.json("compose", "7x8x7", "--dry-run")
    assert (data["rank"], data["composition"]["sizes"]) == (279, [[4, 3], [4, 3], [4, 4]])
    assert "5 steps make the same scheme" in run("show", "7x7x7", "--reproduce")[1]


def test_same_tells_what_is_proven(run):
    assert run("same", "strassen", "strassen")[:2] == (
        0, "identical: the same products but for their order, signs and scale\n")  # fmt: skip
    assert run("same", "laderman", "naive:3x3x3")[0] == 1
    assert run.json("same", "strassen", "winograd")["relation"] == "not told apart"


def test_cache_is_shown_and_cleared(run, home):
    (home / "cache" / "kernels").mkdir(parents=True)
    (home / "cache" / "kernels" / "x").write_text("0123")
    assert run.json("cache")["bytes"] == 4
    assert "cleared" in run("cache", "--clear")[1]
    assert run.json("cache")["files"] == 0


def test_add_improved_skips_what_is_dominated(run, tmp_path):
    worse = change_of_basis(lcma.resolve("strassen")[0], [[1, 2], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [3, 1]])
    path = tmp_path / "worse.json"
    path.write_text(lcma_json.render(worse))
    assert run("add", path, "--improved")[1].startswith("not kept")
    assert "not kept, the same up to symmetry as strassen and no better: worse" in run("add", path)[1]
    assert run("add", path, "--improved", "--keep-both")[0] == 2
    assert run("add", path, "--keep-both")[1].startswith("added worse")
    assert run("add", path)[1].startswith("not kept, there already as worse")


def test_list_records_and_filters(run):
    rows = run.json("list", "--records")
    assert {(row["target"], row["rank"], row["gap"]) for row in rows} >= {
        ("2x2x2", 7, 0),
        ("3x3x3", 23, 0),
        ("3x4x5", 47, 0),
    }
    assert [row["schemes"] for row in rows if row["target"] == "2x2x2"] == [2]
    assert "gap" in run("list", "--records")[1]
    assert run("list", "--records", "--csv")[1].startswith("target,ring")
    assert all(entry["ternary"] for entry in run.json("list", "--where", "ternary"))
    assert "eca-stage1" in run("list", "--where", "ternary")[1]


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
