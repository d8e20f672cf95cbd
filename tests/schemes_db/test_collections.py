"""What collections publish beside the text of one scheme: borders, bit masks, several files, notebooks, rings."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db.formats import parse_text, read_file, render
from lcma.verify import ApproximateReport
from lcma.verify.files import files_below

from ..refusal import refuses_with
from ..reports import proven, reading_of, report_of

SCHEME = lcma.resolve("strassen")[0]
U, V, W = (factor.dense.reshape(7, 4).tolist() for factor in SCHEME.factors)
EXP = render(SCHEME, "exp").decode()


def transposed(rows):
    return [list(row) for row in zip(*rows, strict=True)]


@pytest.mark.parametrize(("power", "inverse"), [("x2", "x2i"), ("(x+x2)", "xi"), ("x", "xi"), ("x^2", "x^-2")])
def test_powers_of_an_infinitesimal_get_the_border_verdict(power, inverse):
    u, v, w = ([list(map(str, row)) for row in map(list, transposed(part))] for part in (U, V, W))
    for block, entries in ((u, power), (v, inverse)):
        for at in (0, 3):
            block[at][0] = entries
    report = report_of("\n#\n".join("\n".join(" ".join(row) for row in part) for part in (u, v, w)))
    assert isinstance(report, ApproximateReport)
    assert ("border scheme" in report.headline()) == ("+" in power)


FACTOR_NAMES = [("U", "V", "W"), ("u", "v", "w"), ("s_a_222", "s_b_222", "s_c_222"), ("alpha", "beta", "gamma")]


@pytest.mark.parametrize("names", FACTOR_NAMES)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npy"])
def test_factors_in_three_files_are_joined(tmp_path, names, suffix):
    for name, part in zip(names, (U, V, transposed(W)), strict=True):
        if suffix == ".npy":
            np.save(tmp_path / f"{name}.npy", np.array(part))
        else:
            separator = "," if suffix == ".csv" else " "
            text = "\n".join(separator.join(map(str, row)) for row in part)
            (tmp_path / f"{name}{suffix}").write_text(text)
    for name in names:
        report = report_of(tmp_path / f"{name}{suffix}")
        assert report.scheme == SCHEME
        assert any(note.startswith("three files: ") for note in report.notes)
    if names[0] in "Uu":
        found, _ = files_below(tmp_path, "arrays")
        assert [path.name for path in found] == [f"{names[0]}{suffix}"]
    (tmp_path / f"{names[2]}{suffix}").unlink()
    refuses_with(SchemeFormatError, "three", read_file, tmp_path / f"{names[0]}{suffix}")


def test_whole_schemes_with_the_names_of_parts_stay_whole(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.exp").write_text(EXP)
    assert not any("three files" in note for note in reading_of(tmp_path / "b.exp").notes)
    assert len(files_below(tmp_path)[0]) == 3


def notebook(*cells):
    sources = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(True)} for cell in cells]
    return json.dumps({"cells": sources, "metadata": {}, "nbformat": 4})


def test_notebooks_with_checks_and_other_results():
    check = (
        "import numpy as np\n\ndef verify_decomposition(decomposition: tuple, n: int, rank: int):\n"
        '  """Checks it.\n\n  Args:\n    decomposition: a tuple = (U, V, W)\n  """\n'
        "  one, two, three = decomposition\n  for i in range(n):\n    assert one.shape[i] == rank, f'{one}'\n"
    )
    parts = map(transposed, (U, V, [[row[0], row[2], row[1], row[3]] for row in W]))
    arrays = ", ".join(f"np.array({part}, dtype=np.float32)" for part in parts)
    cells = [check, f"#@title Data\nmatrices_222 = ({arrays})", "n = 2\nverify_decomposition(matrices_222, n, 7)\n"]
    other = "heights = np.array([1.0, 2.0])\nheights *= 2\nfor i in range(2):\n  heights[i] += 1\nplot(heights)\n"
    report = proven(notebook(*cells, other))
    assert (report.format, report.scheme) == ("alphaevolve", SCHEME)
    for change in ("matrices_222[0][0, 0] = 7\n", "scale(matrices_222)\n", "x = matrices_222[0]\nx *= 2\n"):
        refuses_with(SchemeFormatError, "may change", parse_text, notebook(*cells, change))


def test_a_table_of_coefficients_with_an_infinitesimal_gets_the_border_verdict():
    text = (Path(__file__).parent / "dialects" / "coefficients.csv").read_text()
    for letter, value in (("A", "eps"), ("B", "1/eps")):
        text = re.sub(rf"(?m)^(1,{letter},..),1$", rf"\1,{value}", text)
    report = report_of(text)
    assert isinstance(report, ApproximateReport)
    assert "with e = 1 it is exact" in report.headline()


def test_a_table_of_coefficients_of_a_triangular_scheme_needs_no_target():
    scheme = lcma.resolve("eca-stage1")[0]
    rows = [
        f"{r + 1},{letter},{index // factor.cols + 1}{index % factor.cols + 1},{value}"
        for letter, factor in zip("ABC", scheme.factors, strict=True)
        for r in range(scheme.rank)
        for index, value in factor.coefficients(r)
    ]
    report = proven("\n".join(["product,factor,block,coefficient", *rows]))
    assert report.scheme.digest == scheme.digest
