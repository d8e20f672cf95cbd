"""Folders of runs and improvements with damaged files: one clear line, exit code 3, whichever file it is."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.search import find
from lcma.search.improve.folder import ImproveConfig, ImproveFolder, ImproveState

from ..refusal import read_beside
from ..schemes_db.archives import archive


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of a search and one of an improvement, each with finds."""
    root = tmp_path_factory.mktemp("folders")
    find("2x2x2", rank=7, walks=2, steps=2000, rounds=3, count=9, seed=2, out=root / "search")
    folder = ImproveFolder.create(root / "improve", ImproveConfig(targets=("2x2x2",), ring="Z2", seconds=0.5))
    folder.append("found.jsonl", lcma.resolve("strassen")[0])
    folder.append("starts.jsonl", lcma.resolve("strassen")[0])
    folder.save(ImproveState({"2x2x2": 2}, 0.25, 1))
    folder.close()
    return root


FILES = {"search": ("run.json", "found.jsonl", "state.npz"), "improve": ("run.json", "found.jsonl", "state.json")}
CONTENTS = {
    "empty": lambda raw: b"",
    # More than one: that may be the date of an array in the archive, which nothing reads.
    "wrong bytes": lambda raw: raw[: len(raw) // 2] + 60 * b"\xff" + raw[len(raw) // 2 + 60 :],
    "cut": lambda raw: raw[: len(raw) // 2] + b"\n",
    "deep": lambda raw: b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "a number": lambda raw: b"1\n",
    "digits": lambda raw: b"1" * 10_000 + b"\n",
    "half a surrogate": lambda raw: b'"\xed\xa0\x80"\n',
}


def commands(kind, folder):
    yield "status", folder
    if kind == "search":
        yield "merge", folder
        yield "resume", folder, "--rounds", 4


@pytest.mark.parametrize("damage", CONTENTS)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_a_damaged_file_is_named(folders, home, tmp_path, run, kind, name, damage):
    folder = shutil.copytree(folders / kind, tmp_path / "run")
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(CONTENTS[damage](raw))
    if name == "found.jsonl" and damage == "empty":
        assert run("status", folder)[0] == 0  # a run without finds
        return
    for command in commands(kind, folder):
        run.refused(3, name, *command)


SETTINGS = [(*row, "run.json is damaged") for row in read_beside(__file__, "settings_of_no_run.json")]
OF_A_FILE = [("search", "target", "mask:mask.txt"), ("improve", "targets", ["mask:mask.txt"])]


@pytest.mark.parametrize(
    ("kind", "field", "value", "said"), [*SETTINGS, *((*row, "names a mask file") for row in OF_A_FILE)]
)
def test_settings_that_no_run_has_are_refused(folders, home, elsewhere, run, kind, field, value, said):
    """A target of a folder opens no file, one that is there neither."""
    Path("mask.txt").write_text("1 0\n1 1\n")
    folder = Path(shutil.copytree(folders / kind, "run"))
    about = json.loads((folder / "run.json").read_text())
    about["config"][field] = value
    (folder / "run.json").write_text(json.dumps(about))
    for command in (*commands(kind, folder), ("resume", folder)):
        run.refused(3, said, *command)


def checkpoint(folder, change):
    """Rewrite the checkpoint of a folder after a change of its facts and arrays."""
    path = folder / "state.npz"
    with np.load(path) as members:
        arrays = dict(members)
    facts = json.loads(str(arrays.pop("facts")))
    change(facts, arrays)
    path.write_bytes(archive(facts=np.array(json.dumps(facts)), **arrays))


FACTS = [("stage", 1), ("stage", -1), ("round", -1), ("round", 1.5), ("lowest", "7"), ("flips", None), ("done", 1)]


@pytest.mark.parametrize(("field", "value"), [*FACTS, ("seconds", "x"), ("gained", []), ("flips", 10**40)])
def test_a_checkpoint_of_no_round_is_refused(folders, home, tmp_path, run, field, value):
    folder = shutil.copytree(folders / "search", tmp_path / "run")
    checkpoint(folder, lambda facts, arrays: facts.update({field: value}))
    for command in commands("search", folder):
        run.refused(3, "state.npz is damaged", *command)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("run/numbers"),
        lambda arrays: arrays.update({"run/numbers": np.array(0)}),
        lambda arrays: arrays.update({"run/numbers": np.array([0, 2**62])}),
        lambda arrays: arrays.update({"strategy/_from": np.array("x")}),
        lambda arrays: arrays.update({name: array[:-1] for name, array in arrays.items() if name[:8] == "session/"}),
    ],
)
def test_a_checkpoint_of_other_walks_is_refused(folders, home, tmp_path, run, change):
    folder = shutil.copytree(folders / "search", tmp_path / "run")
    checkpoint(folder, lambda facts, arrays: change(arrays))
    run.refused(3, "state.npz is damaged", "resume", folder, "--rounds", 4)


def test_a_torn_line_of_an_improvement_is_dropped_before_others_follow(folders, home, tmp_path):
    folder = shutil.copytree(folders / "improve", tmp_path / "run")
    with (folder / "found.jsonl").open("ab") as stream:
        stream.write(b'{"lcma_scheme": 1, "na')
    again = ImproveFolder.open(folder)
    again.append("found.jsonl", lcma.resolve("winograd")[0])
    assert [scheme.name for scheme in again.schemes("found.jsonl")] == ["strassen", "winograd"]
    again.close()
