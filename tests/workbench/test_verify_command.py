import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lcma
from lcma.schemes_db.formats import lcma_json, written

CLAIMS = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
"""What is changed in a certificate, and what the refusal says."""


@pytest.fixture
def run(home, run):
    """Run `lcma verify`."""
    return run.of("verify")


@pytest.fixture
def folder(tmp_path):
    """Two valid schemes, one wrong one, one that is broken off, and files that are no schemes."""
    root = tmp_path / "schemes"
    (root / "deep" / ".hidden").mkdir(parents=True)
    strassen, laderman = (lcma.resolve(name)[0] for name in ("strassen", "laderman"))
    (root / "b.exp").write_text(written.exp(strassen))
    (root / "deep" / "a.json").write_text(lcma_json.render(laderman))
    (root / "readme.md").write_text("x = 1\n")
    (root / "notes.txt").write_text("no scheme\n")
    (root / "deep" / ".hidden" / "c.exp").write_text("nothing to be seen")
    return root


def test_several_processes_say_the_same_in_the_same_order(run, folder):
    for i in range(10):
        (folder / f"s{i}.exp").write_text(written.exp(lcma.resolve("winograd")[0]))
    (folder / "wrong.exp").write_text(written.exp(lcma.resolve("strassen")[0]).replace("a11", "a12", 1))
    alone, together = (run(folder, "--json", "--jobs", jobs) for jobs in (1, 2))
    assert alone[0] == together[0] == 1
    assert alone[2] == together[2]
    first, second = ([json.loads(line) for line in text.splitlines()] for text in (alone[1], together[1]))
    for report in first + second:
        del report["seconds"]
    assert first == second
    assert len(first) == 13


def test_standard_input(run, monkeypatch):
    def feed(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    feed(written.exp(lcma.resolve("strassen")[0]))
    report = run.json("-")
    assert (report["file"], report["rank"]) == ("-", 7)
    feed("(a11)*(b11\n")
    code, out, err = run("-")
    assert (code, out) == (65, "")
    assert err.startswith("lcma: -:")
    feed("")
    assert run("-")[0] == 65


@pytest.mark.parametrize("field", ["hope", "primes_too"])
def test_unknown_claims_of_a_certificate_are_refused(run, folder, tmp_path, field):
    path = tmp_path / "one.json"
    assert run(folder / "b.exp", "--certificate", path)[0] == 0
    for place in (lambda data: data["certificate"], lambda data: data["certificate"]["proofs"][0]):
        data = json.loads(path.read_text())
        place(data)[field] = 1
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(data))
        run.refused(65, f"unexpected keyword argument '{field}'", "--recheck", changed)


def changed(data, path, value):
    """Set a place in JSON data to a value, behind the end of a list too; None removes it."""
    *parents, last = (int(key) if key.isdigit() else key for key in path.split("/"))
    for key in parents:
        data = data[key]
    if value is None:
        del data[last]
    elif isinstance(data, list):
        data[last : last + 1] = [value]
    else:
        data[last] = value


@pytest.mark.parametrize(("path", "value", "words"), CLAIMS)
def test_a_certificate_that_claims_too_much_is_refused(run, folder, tmp_path, path, value, words):
    file = tmp_path / "one.json"
    assert run(folder / "b.exp", "--method", "exact", "--method", "randomized", "--certificate", file)[0] == 0
    data = json.loads(file.read_text())
    primes = data["certificate"]["proofs"][1]["primes"]
    changed(data, path, primes[1] if value == "the second prime" else value)
    file.write_text(json.dumps(data))
    run.refused(1, words, "--recheck", file)


def test_nothing_heavy_is_imported(folder):
    code = (
        "import sys; from lcma.workbench import cli; code = cli.main(['verify', '-q', sys.argv[1]]); "
        "heavy = {'torch', 'numba', 'ortools', 'sympy', 'networkx', 'scipy', 'matplotlib', 'rich'} & set(sys.modules); "
        "sys.exit(code or (str(heavy) if heavy else 0))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder / "b.exp")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
