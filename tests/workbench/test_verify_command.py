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


def test_stability_is_shown_beside_the_proof(run, folder, tmp_path):
    code, out, _ = run(folder / "b.exp", "--stability")
    lines = [line for line in out.splitlines() if "stability:" in line]
    assert code == 0
    assert "growth factor 12, prefactor 5" in lines[0]
    assert [line.split()[1] for line in lines[1:]] == ["float64", "float32", "float16"]
    figures = run.json(folder / "b.exp", "--stability")["stability"]
    assert all(0 < one["error"] < one["bound"] for one in figures["measured"])
    (tmp_path / "z2.json").write_text(lcma_json.render(lcma.resolve("strassen")[0].over_z2()))
    assert "nothing to measure" in run(tmp_path / "z2.json", "--stability")[1]
    assert run.json(tmp_path / "z2.json", "--stability")["stability"] is None


def test_nothing_heavy_is_imported(folder):
    code = (
        "import sys; from lcma.workbench import cli; code = cli.main(['verify', '-q', sys.argv[1]]); "
        "heavy = {'torch', 'numba', 'ortools', 'sympy', 'networkx', 'scipy', 'matplotlib', 'rich'} & set(sys.modules); "
        "sys.exit(code or (str(heavy) if heavy else 0))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder / "b.exp")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_rounded_coefficients_are_one_line_and_exit_1(run, tmp_path, strassen):
    path = tmp_path / "rounded.txt"
    factors = [factor.dense.reshape(7, 4).T / 3 for factor in strassen.factors]
    rows = ["\n".join(" ".join(f"{x * scale:.9g}" for x in row) for row in f) for f, scale in zip(factors, (1, 9, 3))]  # noqa: B905
    path.write_text("\n#\n".join(rows) + "\n")
    code, out, err = run(path)
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert out.startswith("FAIL 2x2x2 rank 7: coefficients are rounded, largest residual ")
    assert f"rounded to multiples of 1/3 it is exact over Q, digest {strassen.digest[:12]}" in out
    code, out, _ = run(path, "--json", "--stability")
    data = json.loads(out)
    assert (code, data["ok"], data["approximate"], data["rounded_digest"]) == (1, False, "float", strassen.digest)
    assert run(path, "--quiet")[1].startswith("FAIL")
    assert run(tmp_path, "--certificate", tmp_path / "kept")[0] == 1
    assert not (tmp_path / "kept").exists()
    assert run.of("convert")(path, tmp_path / "out.json")[0] == 1
    run.of("convert").ok("--round", path, tmp_path / "out.json")
    assert lcma.load(tmp_path / "out.json")[0] == strassen
