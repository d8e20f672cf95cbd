"""Straight-line programs whose sums are too long to be expanded: proven by running them modulo primes."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from lcma.errors import SchemeFormatError, VerifyOnlyError
from lcma.schemes_db import parse_ring
from lcma.schemes_db.formats import linear_program
from lcma.schemes_db.formats.linear_program import LinearProgram
from lcma.schemes_db.resolve import resolve
from lcma.verify.linear_program import ProgramReport
from lcma.verify.report import certified_scheme

from ..refusal import refuses_with
from ..reports import report_of

U, V, W = (factor.dense.reshape(7, 4).tolist() for factor in resolve("strassen")[0].factors)


def joined(terms):
    return "".join(f"{'+' if sign > 0 else '-'}{name}" for sign, name in terms).removeprefix("+")


class Writer:
    """The lines of a program, each of which names a sum."""

    def __init__(self):
        self.lines = []

    def sum(self, terms):
        """The name of a sum of (sign, name) terms."""
        if len(terms) == 1 and terms[0][0] == 1:
            return terms[0][1]
        self.lines.append(f"t{len(self.lines)}:={joined(terms)};")
        return self.lines[-1].partition(":")[0]

    def factors(self, grid, table):
        """The names of the factors of all products of a square grid of names."""
        if grid.size == 1:
            return [grid.item()]
        half, products = len(grid) // 2, []
        quarters = [grid[i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
        for row in table:
            block = np.empty((half, half), object)
            for place in np.ndindex(block.shape):
                block[place] = self.sum([(c, part[place]) for c, part in zip(row, quarters, strict=True) if c])
            products += self.factors(block, table)
        return products

    def blocks(self, products, size):
        """The grid of sums of a list of products."""
        grid = np.array([products], object)
        if size > 1:
            half, grid = size // 2, np.empty((size, size), object)
            parts = [self.blocks(part, half) for part in np.array_split(products, 7)]
            for i, j in np.ndindex(grid.shape):
                signs = [row[2 * (i // half) + j // half] for row in W]
                grid[i, j] = self.sum([(c, x[i % half, j % half]) for c, x in zip(signs, parts, strict=True) if c])
        return grid


def program(levels):
    """Strassen's scheme of so many levels as three programs, in a basis that makes its expansion long.

    The programs are written level by level, with names for all sums. Before, the rows of A are replaced by running sums
    and the columns of B as well; afterwards that is undone by differences of rows and columns of C: a few thousand
    additions, but every expanded sum grows by a factor of the size.
    """
    size, texts = 2**levels, []
    for table, (down, right) in ((U, (1, 0)), (V, (0, 1))):
        writer, grid = Writer(), np.array([f"i{i}" for i in range(size * size)], object).reshape(size, size)
        for i, j in np.ndindex(size, size):
            if i >= down and j >= right:
                grid[i, j] = writer.sum([(1, grid[i - down, j - right]), (1, grid[i, j])])
        names = writer.factors(grid, table)
        texts.append("\n".join([*writer.lines, *(f"o{r}:={name};" for r, name in enumerate(names))]))
    writer = Writer()
    grid = writer.blocks([f"i{r}" for r in range(7**levels)], size)
    for i, j in np.ndindex(size, size):
        corners = [(1, i, j), (-1, i - 1, j), (-1, i, j - 1), (1, i - 1, j - 1)]
        terms = [(sign, grid[x, y]) for sign, x, y in corners if x >= 0 and y >= 0]
        writer.lines.append(f"o{i * size + j}:={joined(terms)};")
    return "\n#\n".join([*texts, "\n".join(writer.lines)]) + "\n"


FRACTIONS = "t0:=(i0+i1)/2; t1:=(i0-i1)/2; o0:=t0+t1; o1:=t0-t1;\n#\no0:=i0; o1:=i1;\n#\no0:=i0+i1;\n"
"""1x2x1: the left factors are a11 and a12, by way of halves."""


@pytest.fixture
def short(monkeypatch):
    """No program is expanded."""
    monkeypatch.setattr(linear_program, "MAX_TERMS", 1)


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
    assert "+" in parts[place]
    parts[place] = parts[place].replace("+", "-", 1)
    found = report_of("\n#\n".join(parts))
    assert not found.ok
    assert found.headline().startswith("FAIL 4x4x4 rank 49 over Z: ")


def test_outputs_by_the_transpose_are_found(short):
    left_right, third = program(1).rsplit("\n#\n", 1)
    third = third.replace("o1:", "x:").replace("o2:", "o1:").replace("x:", "o2:")
    assert report_of(f"{left_right}\n#\n{third}").conventions == ("C^T",)


def test_fractions_are_over_q_and_not_over_z(short):
    assert report_of(FRACTIONS).ring.name == "Q"
    refuses_with(SchemeFormatError, "denominators, which ring Z has not", report_of, FRACTIONS, ring=parse_ring("Z"))
    refuses_with(SchemeFormatError, "over Z and Q only", report_of, FRACTIONS, ring=parse_ring("Z2"))


def test_the_sums_of_a_program_are_bounded():
    shared = LinearProgram(2, (((Fraction(1, 2), 0), (Fraction(-3, 5), 1)), ((1, 2), (4, 2))), (3,))
    bits, below = shared.size()
    assert below == 10
    (form,) = shared.expanded([100])
    assert form == {0: Fraction(5, 2), 1: -3}
    assert sum(abs(value) for value in form.values()) < 2**bits
    assert shared.expanded([3]) is None
    assert shared.evaluated([2, 7], 101) == [(5 - 21) % 101]


def test_it_is_neither_kept_nor_used(short, home, tmp_path, run):
    refuses_with(VerifyOnlyError, "neither kept nor run", certified_scheme, report_of(program(1)))
    path = tmp_path / "short.slp"
    path.write_text(program(1))
    assert "proven by program" in run.ok("verify", path)
    run.refused(3, "", "add", path)


@pytest.mark.slow
def test_32x32x32_with_long_sums_is_proven_by_program(tmp_path):
    path = tmp_path / "nested.slp"
    path.write_text(program(5))
    command = [sys.executable, "-m", "lcma", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=True)
    assert done.stdout.startswith("OK 32x32x32 rank 16807 over Z (program, ")
