"""Mistakes: the exit code of each, and one line on stderr that names the cause and the mend."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma import errors
from lcma.workbench import cli

pytestmark = pytest.mark.usefixtures("home")

PAGE = Path(lcma.__file__).resolve().parent / "docs" / "reference" / "exit-codes.md"


def test_the_page_has_the_exit_codes_of_the_code():
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)
    found = {0, *(value for name, value in vars(cli).items() if name.startswith("EXIT_"))}
    found |= {error.exit_code for error in vars(errors).values() if hasattr(error, "exit_code")}
    assert sorted(found) == [int(row) for row in rows]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with matrices that do not fit, and files that are no schemes."""
    arrays = {
        "a": np.ones((8, 8), "f4"),
        "short": np.ones((6, 8), "f4"),
        "double": np.ones((8, 8)),
        "half": np.ones((8, 8), "f2"),
        "small": np.ones((8, 8), "i1"),
        "whole": np.ones((8, 8), "i8"),
        "complex": np.ones((8, 8), "c8"),
        "vector": np.ones(8, "f4"),
        "text": np.full((8, 8), "x"),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    for name, text in (
        ("note.txt", "hello\n"),
        ("empty.json", ""),
        ("torn.json", '{"lcma_scheme": 1, '),
        ("no.npy", "no array"),
        ("shapes.csv", "m,k,n\n8,8,eight\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "mend"),
    [
        ("show strasen", 2, "did you mean strassen"),
        ("show 9x9x9:1", 2, "lcma search 9x9x9"),
        ("time strassenn 64", 2, "did you mean strassen"),
        ("analyse causal --scheme eca-stage3", 2, "did you mean eca-stage"),
        ("remove nobody", 2, "lcma list"),
        ("rename nobody mine", 2, "lcma list"),
        ("export ladermann", 2, "did you mean laderman"),
        ("search 3x3", 2, "such as 3x3x3"),
        ("search 3x3x3:tri-letf", 2, "did you mean tri-left"),
        ("list 3,4,5", 2, "such as 3x4x5"),
        ("list --where ring=ZZ", 2, "choose one of Z"),
        ("search 3x3x3 --walk flp --dry-run", 2, "did you mean flip"),
        ("search 3x3x3 --by tripels --dry-run", 2, "did you mean triples"),
        ("search 3x3x3 --objective ranks --dry-run", 2, "did you mean rank"),
        ("search 3x3x3 --start strasen --dry-run", 2, "did you mean strassen"),
        ("plan 8 8 8 --strategy vender", 2, "did you mean vendor"),
        ("plan 8 8 8 --dtype flaot32", 2, "float32"),
        ("plan 8 8 8 --profile nvidia-h1000", 2, "did you mean nvidia-h100"),
        ("bench causel", 2, "did you mean causal"),
        ("convert --to equation a b", 2, "did you mean equations"),
        ("lst", 2, "did you mean list"),
        ("list --jsno", 2, "Did you mean '--json'"),
        ("verify --format jason x", 2, "did you mean"),
        ("search 3x3x3 --walk flop --restart 1000 --dry-run", 2, "flop"),
        ("list --where rank<=x", 2, "'x' is no number, and rank is one"),
        ("list --where rank~2", 2, "rank is a number; ~ looks for a part of a text"),
        ("list --where addition<5", 2, "did you mean additions"),
        ("list --where zzz=1", 2, "the fields are additions, coefficients"),
        ("list --where <5", 2, "'<5' is no filter; write FIELD<=VALUE"),
        ("verfy note.txt", 2, "did you mean verify?"),
        ("list --rank 23", 2, "No such option"),
        ("show", 2, "Missing argument 'SCHEME'"),
        ("show 123456", 2, "`lcma list` shows"),
        ("show missing.json", 65, "there is no such file"),
        ("show note.txt", 65, "such as m1 = (a11 + a22)(b11 + b22)"),
        ("verify missing.json", 65, "No such file"),
        ("verify empty.json", 65, "is empty"),
        ("verify torn.json", 65, "torn.json:1: not JSON"),
        ("verify note.txt --ring Q9", 2, "choose one of Z, Q"),
        ("add note.txt", 65, "not a scheme in any known format"),
        ("rename strassen mine", 3, "comes with lcma and can't be renamed"),
        ("export strassen --out sub", 3, "name a file"),
        ("export strassen --out note.txt", 3, "replace it by --force"),
        ("run strassen a.npy", 2, "give SCHEME A B"),
        ("run strassen a.npy short.npy", 3, "transpose or slice one"),
        ("run strassen a.npy double.npy", 3, "convert both with --dtype"),
        ("run strassen half.npy half.npy", 3, "convert to one of float32"),
        ("run strassen text.npy text.npy", 3, "convert to one of float32"),
        ("run strassen small.npy small.npy", 3, "int8"),
        ("run strassen small.npy small.npy --max-abs 64", 3, "63 is the largest"),
        ("run strassen a.npy a.npy --dtype int64", 3, "fractions"),
        ("run auto a.npy a.npy --dtype tf32", 3, "of GPUs"),
        ("run auto a.npy a.npy --dtype fp32-accurate", 3, "of GPUs"),
        ("run auto a.npy a.npy --dtype fp8", 3, "of GPUs"),
        ("run strassen complex.npy complex.npy --dtype float32", 3, "can't become"),
        ("run 7x7x7 a.npy a.npy", 2, "no scheme for 7x7x7"),
        ("run naive:2x2x999 a.npy a.npy", 2, "must be 1 to"),
        ("run 4x4x4:47 whole.npy whole.npy --ring Z", 3, "holds over Z2 only"),
        ("run 4x4x4:47 whole.npy whole.npy --ring GF(100)", 2, "100 is not prime; write Z/100"),
        ("run strassen whole.npy whole.npy --ring Z2 --out c.npz", 3, "written to a .npy"),
        ("run strassen whole.npy whole.npy --ring Z2 --dtype float32", 2, "--ring takes no"),
        ("run strassen a.npy missing.npy", 65, "missing.npy: can't be read"),
        ("run strassen a.npy vector.npy", 65, "a matrix has two or more"),
        ("run strassen a.npy no.npy", 65, "is not a .npy matrix"),
        ("run strassen a.npy a.npy --dtype int9", 2, "did you mean int8"),
        ("run strassen a.npy a.npy --device gpu", 2, "write cpu, cuda or cuda:N"),
        ("run strassen a.npy a.npy --ring Z", 3, "convert it"),
        ("run strassen a.npy a.npy --levels 99", 2, "0<=x<=12"),
        ("run strassen a.npy a.npy --out a.npy", 3, "name another file"),
        ("run auto a.npy a.npy --causal kq", 2, "'qk'"),
        ("time strassen 512 512", 2, "three sizes M K N"),
        ("time strassen 0", 2, "each from 1 to"),
        ("plan 8 8", 2, "give three sizes M K N"),
        ("plan 8 8 8 --profile missing.json", 2, "nvidia-h200"),
        ("tune --from shapes.csv", 65, "shapes.csv:2"),
        ("tune --from missing.csv", 65, "missing.csv"),
        ("tune 1 2 3 --from shapes.csv", 2, "or --from SHAPES.csv"),
        ("search 3x3x3 --time soon", 2, "write 90, 90s, 10m or 2h"),
        ("search 3x3x3 --rank 0", 2, "x>=1"),
        ("search 99x99x99", 3, "a walk holds at most"),
        ("resume sub", 3, "`lcma search TARGET --out sub` starts one"),
        ("lift strassen", 3, "only a scheme over Z2 or Z3 can"),
        ("bench exact --measure energy", 2, "has no --measure energy"),
        ("bench ks --measure shares --dry-run", 2, "suite ks has no --measure shares"),
        ("bench cpu --sizes 64", 2, "suite cpu has no --sizes"),
        ("compress note.txt --dry-run", 65, "is not a .safetensors file"),
        ("structure a.npy --patterns (1,2", 3, "write four sizes"),
        ("site out --results missing", 2, "is no folder"),
        ("report figures --results missing", 2, "name the one with the rows"),
        ("explore strassen laderman", 3, "one level at a time"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_mend_or_what_was_meant(run, folder, line, code, mend):
    run.refused(code, mend, *shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "run strassen a.npy a.npy --device cuda",
        "bench causal --device cuda --out rows",
        "time auto 64 --device cuda",
        "tune 64 64 64 --device cuda:1",
    ],
)
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
