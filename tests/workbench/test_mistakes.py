"""Mistakes: the exit code of each, and one line on stderr that names the cause and the mend."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma import errors, kronecker
from lcma.kernels import safetensors
from lcma.kernels.kronecker import FactoredMatrix
from lcma.workbench import cli

pytestmark = pytest.mark.usefixtures("home")

PAGE = Path(lcma.__file__).resolve().parent / "docs" / "reference" / "exit-codes.md"
MISTAKES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8"))
FILES = MISTAKES.pop("files")


def test_the_page_has_the_exit_codes_of_the_code():
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)
    found = {0, *(value for name, value in vars(cli).items() if name.startswith("EXIT_"))}
    found |= {error.exit_code for error in vars(errors).values() if hasattr(error, "exit_code")}
    assert sorted(found) == [int(row) for row in rows]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with matrices that do not fit, and files that are no schemes or models."""
    folder = tmp_path_factory.mktemp("mistakes")
    dtypes = {"a": "f4", "double": "f8", "half": "f2", "small": "i1", "whole": "i8", "complex": "c8"}
    shapes = {"short": (6, 8), "vector": (8,), "first": (50, 24), "last": (24, 50), "odd": (50, 23)}
    arrays = {name: np.ones((8, 8), dtype) for name, dtype in dtypes.items()}
    arrays |= {name: np.ones(shape, "f4") for name, shape in shapes.items()}
    arrays |= {"text": np.full((8, 8), "x"), "wide": np.ones((50, 24))}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    kronecker.save(folder / "k.npz", FactoredMatrix.random(kronecker.monarch(12, 24, 3)))
    np.savez(folder / "bad.npz", patterns=np.zeros((1, 4), np.int64))
    shapes = {"up.weight": (24, 16), "up.bias": (24,), "down.weight": (16, 24), "head.weight": (7, 16)}
    for name, value in (("model", 1.0), ("nan", np.nan)):
        tensors = {name: ("F32", np.full(shape, value, "f4")) for name, shape in shapes.items()}
        (folder / f"{name}.safetensors").write_bytes(safetensors.pack(tensors))
    (folder / "cut.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-5])
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "bytes.csv").write_bytes(b"m,k,n\n1,2,\xff\n")
    (folder / "sub").mkdir()
    return folder


@pytest.fixture
def folder(files, monkeypatch):
    monkeypatch.chdir(files)
    return files


@pytest.mark.parametrize(
    ("line", "code", "mend"),
    [(line, int(code), mend) for code, lines in MISTAKES.items() for line, mend in lines.items()],
)
def test_a_mistake_is_one_line_that_names_the_mend_or_what_was_meant(run, folder, line, code, mend):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    run.refused(code, mend, *shlex.split(line))
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


ON_A_GPU = ("run strassen a.npy a.npy", "bench causal --out rows", "time auto 64", "tune 64 64 64")


@pytest.mark.parametrize("line", [f"{line} --device cuda{':1' * (line[:4] == 'tune')}" for line in ON_A_GPU])
def test_no_gpu_and_no_torch(run, folder, no_gpu, line, monkeypatch):
    code, out, err = run(*line.split())
    assert (code, out, err) == (3, "", "lcma: torch sees no GPU; without --device the CPU is used\n")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "torch", None)
    run.refused(3, "pip install 'lcma[torch]'", *line.split())
    assert not (folder / "rows").exists()


def test_a_home_that_is_no_folder_and_a_reader_that_has_gone(run, folder, monkeypatch):
    monkeypatch.setenv("LCMA_HOME", str(folder / "note.txt"))
    run.refused(65, "", "add", "missing.json")
    for line in ("search 2x2x2 --rank 7", "improve 5x5x5"):
        run.refused(3, "can't be written", *line.split())
    code, out, err = run("rename", "0123456", "mine")
    assert (code in (2, 3), out, err.count("\n")) == (True, "", 1), err
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "lcma", "list"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
