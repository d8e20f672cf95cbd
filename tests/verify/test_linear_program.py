"""Straight-line programs whose sums are too long to be expanded: proven by running them modulo primes."""

import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from lcma.errors import SchemeFormatError, VerifyOnlyError
from lcma.schemes_db import parse_ring
from lcma.schemes_db.formats import linear_program, parse_text
from lcma.schemes_db.formats.linear_program import LinearProgram
from lcma.verify import judge
from lcma.verify.linear_program import ProgramReport
from lcma.verify.report import certified_scheme
from lcma.workbench.cli import main

program = runpy.run_path(str(Path(__file__).with_name("make_programs.py")))["program"]

FRACTIONS = "t0:=(i0+i1)/2; t1:=(i0-i1)/2; o0:=t0+t1; o1:=t0-t1;\n#\no0:=i0; o1:=i1;\n#\no0:=i0+i1;\n"
"""1x2x1: the left factors are a11 and a12, by way of halves."""


@pytest.fixture
def short(monkeypatch):
    """No program is expanded."""
    monkeypatch.setattr(linear_program, "MAX_TERMS", 1)


def report_of(text, **options):
    return judge(parse_text(text, "slp", **options)[0], "file")


def test_a_program_gets_the_verdict_of_its_expansion(short):
    found = report_of(program(2))
    assert isinstance(found, ProgramReport)
    assert found.ok
    assert (found.programs.target.name, found.programs.rank, found.ring.name) == ("4x4x4", 49, "Z")
    assert found.outcomes[0].proof.error_log2 < -100
    assert found.headline().startswith("OK 4x4x4 rank 49 over Z (program, ")
    assert found.to_json()["certificate"] is None


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_changed_sign_in_any_of_the_three_is_refuted(short, place):
    parts = program(2).split("\n#\n")
    at = parts[place].index("+") if "+" in parts[place] else parts[place].index("-")
    parts[place] = parts[place][:at] + ("-" if parts[place][at] == "+" else "+") + parts[place][at + 1 :]
    found = report_of("\n#\n".join(parts))
    assert not found.ok
    assert found.headline().startswith("FAIL 4x4x4 rank 49 over Z: ")


def test_outputs_by_the_transpose_are_found(short):
    left, right, third = program(1).split("\n#\n")
    third = third.replace("o1:", "x:").replace("o2:", "o1:").replace("x:", "o2:")
    found = report_of("\n#\n".join([left, right, third]))
    assert found.conventions == ("C^T",)


def test_fractions_are_over_q_and_not_over_z(short):
    assert report_of(FRACTIONS).ring.name == "Q"
    with pytest.raises(SchemeFormatError, match="denominators, which ring Z has not"):
        report_of(FRACTIONS, ring=parse_ring("Z"))
    with pytest.raises(SchemeFormatError, match="over Z and Q only"):
        report_of(FRACTIONS, ring=parse_ring("Z2"))


def test_the_sums_of_a_program_are_bounded():
    shared = LinearProgram(2, (((Fraction(1, 2), 0), (Fraction(-3, 5), 1)), ((1, 2), (4, 2))), (3,))
    bits, below = shared.size()
    assert below == 10
    (form,) = shared.expanded([100])
    assert form == {0: Fraction(5, 2), 1: -3}
    assert sum(abs(value) for value in form.values()) < 2**bits
    assert shared.expanded([3]) is None
    assert shared.evaluated([2, 7], 101) == [(5 - 21) % 101]


def test_it_is_neither_kept_nor_used(short, home, tmp_path, capsys):
    with pytest.raises(VerifyOnlyError, match="neither kept nor run"):
        certified_scheme(report_of(program(1)))
    path = tmp_path / "short.slp"
    path.write_text(program(1))
    assert main(["verify", str(path)]) == 0
    assert "proven by program" in capsys.readouterr().out
    assert main(["add", str(path)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_32x32x32_with_long_sums_is_proven_by_program(tmp_path):
    path = tmp_path / "nested.slp"
    path.write_text(program(5))
    command = [sys.executable, "-m", "lcma", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(tmp_path))
    assert done.returncode == 0
    assert done.stdout.startswith("OK 32x32x32 rank 16807 over Z (program, ")
