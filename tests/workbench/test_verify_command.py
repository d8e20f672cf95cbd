import io
import json
import sys
from pathlib import Path

import pytest

import lcma
from lcma.schemes_db.formats import written

CLAIMS = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
"""By exit code, what is changed in a certificate, and what the refusal says."""


@pytest.fixture
def run(home, run):
    """Run `lcma verify`."""
    return run.of("verify")


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


@pytest.mark.parametrize(
    ("code", "path", "value", "words"), [(int(code), *row) for code, rows in CLAIMS.items() for row in rows]
)
def test_a_certificate_that_claims_too_much_is_refused(run, strassen, tmp_path, code, path, value, words):
    scheme, file = tmp_path / "s.exp", tmp_path / "one.json"
    scheme.write_text(written.exp(strassen))
    run.ok(scheme, "--method", "exact", "--method", "randomized", "--certificate", file)
    data = json.loads(file.read_text())
    primes = data["certificate"]["proofs"][1]["primes"]
    changed(data, path, primes[1] if value == "the second prime" else value)
    file.write_text(json.dumps(data))
    run.refused(code, words, "--recheck", file)
