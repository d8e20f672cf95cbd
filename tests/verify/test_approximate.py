"""Schemes with rounded coefficients and border schemes: never valid, and told what they are."""

import json
import re

import numpy as np
import pytest

from lcma.errors import VerificationError
from lcma.schemes_db.formats import written
from lcma.schemes_db.target import Target
from lcma.verify import ApproximateReport, load, verify_file

from ..refusal import read_beside
from ..reports import report_of
from ..schemes_db.archives import archive

ROUNDED = read_beside(__file__, "rounded.toml")

W_STATE = Target.of_terms([(0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 1)])
"""The tensor of rank 3 and border rank 2: e^-1 ((a0 + e a1)(b0 + e b1)(c0 + e c1) - a0 b0 c0) = it + O(e)."""


def blocks(*factors):
    """fast-matmul text of three factors (R, entries) of numbers or words."""
    return "\n#\n".join("\n".join(" ".join(map(str, entry)) for entry in np.transpose(rows)) for rows in factors)


def border(name="x", inverse="xi", sign="-"):
    """fast-matmul text of the scheme of W_STATE, with words for e and its inverse."""
    return f"1 1\n{name} 0\n#\n1 1\n{name} 0\n0 0\n0 0\n#\n{inverse} {sign}{inverse}\n1 0\n"


def plain(strassen):
    """Strassen's factors as matrices (R, entries)."""
    return [factor.dense.reshape(7, 4) for factor in strassen.factors]


def noisy(strassen, size, seed=0):
    rng = np.random.default_rng(seed)
    return [rows + rng.normal(0, size, (7, 4)) for rows in plain(strassen)]


def test_a_rounded_scheme_is_reported_with_its_residual_and_its_rounding(strassen):
    factors = noisy(strassen, 1e-6)
    report = report_of(blocks(*factors))
    assert isinstance(report, ApproximateReport)
    assert (report.ok, report.certificate, report.rounded, report.grid) == (False, None, strassen, 1)
    u, v, w = factors
    wanted = np.zeros((4, 4, 4))
    wanted[tuple(strassen.target.terms.T)] = 1
    residual = np.abs(np.einsum("rp,rq,rs->pqs", u, v, w) - wanted).max()
    assert report.residual == pytest.approx(residual, rel=1e-6)
    line = report.headline()
    assert line.startswith(f"FAIL 2x2x2 rank 7: coefficients are rounded, largest residual {residual:.1e}; ")
    assert line.endswith(f"rounded to integers it is exact over Z, digest {strassen.digest[:12]}")


def test_thirds_are_found_and_noise_is_not(strassen):
    u, v, w = plain(strassen)
    third = report_of(blocks((u / 3).round(9), 3 * v, w))
    assert (third.rounded, third.grid, third.rounded.ring.name) == (strassen, 3, "Q")
    assert "multiples of 1/3" in third.headline()
    noise = report_of(blocks(*noisy(strassen, 1.0)))
    assert noise.rounded is None
    assert noise.headline().split("residual")[1].strip() == f"{noise.residual:.1e}"


@pytest.mark.parametrize(("format", "text"), ROUNDED.items())
def test_every_format_with_decimals_says_so(strassen, format, text):
    report = report_of(text)
    assert (report.format, report.rounded) == (format, strassen)
    assert 0 < report.residual < 1e-4


def test_arrays_with_decimals_say_so_too(strassen):
    u, v, w = noisy(strassen, 1e-7, seed=3)
    by_columns = w.reshape(7, 2, 2).swapaxes(1, 2).reshape(7, 4)
    report = report_of(archive(**{"2,2,2": np.stack([u.T, v.T, by_columns.T])}))
    assert (report.format, report.rounded) == ("alphatensor", strassen)
    assert 0 < report.residual < 1e-4


@pytest.mark.parametrize(("name", "inverse"), [("x", "xi"), ("e", "e^-1"), ("eps", "1*eps^-1")])
def test_a_border_scheme_is_reported_with_the_order_at_which_it_fails(name, inverse):
    report = report_of(border(name, inverse), target=W_STATE)
    assert (report.ok, report.order) == (False, 1)
    assert report.headline().startswith(f"FAIL {W_STATE} rank 2: a border scheme, A B + O(e), first wrong at order 1: ")
    assert report.to_json()["approximate"] == "border"


def test_powers_that_do_not_cancel_fail_below_order_1():
    report = report_of(border(sign="+"), target=W_STATE)
    assert report.order == -1
    assert "powers of e, first wrong at order -1: coefficient of A[1,1] B[1,1] in C[1,1] is 2, wanted 0" in (
        report.headline()
    )
    assert report_of(border(name="0"), target=W_STATE).order == 0


def test_powers_that_all_cancel_leave_an_exact_scheme(strassen):
    words = [np.array(["0", one, f"-{one}"])[rows] for rows, one in zip(plain(strassen), ("x", "1", "xi"), strict=True)]
    report = report_of(blocks(*words))
    assert (report.ok, report.order, report.rounded) == (False, None, strassen)
    assert "with e = 1 it is exact" in report.headline()


def test_files_are_verified_loaded_rounded_and_refused(strassen, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(blocks(*noisy(strassen, 1e-6)))
    (report,) = verify_file(path)
    data = json.loads(json.dumps(report.to_json()))
    assert (data["ok"], data["rounded_digest"], data["file"]) == (False, strassen.digest, str(path))
    with pytest.raises(VerificationError, match="coefficients are rounded"):
        load(path)
    scheme, certificate = load(path, rounded=True)
    assert (scheme, certificate.digest) == (strassen, strassen.digest)


def test_a_border_scheme_by_running_index_has_the_border_verdict(strassen):
    text = re.sub(r"(?m)^#.*|(?<=[abc])1(?=[12])", "", written.equations(strassen))
    text = re.sub(r"\b([abc])2([12])\b", lambda name: f"{name[1]}{int(name[2]) + 2}", text)
    report = report_of(text.replace("c1 = m1", "c1 = (1+eps)*m1"))
    assert report.headline().startswith("FAIL 2x2x2 rank 7: a border scheme, A B + O(e)")


def test_a_power_of_the_infinitesimal_times_0_is_0(strassen):
    rows = [factor.tolist() for factor in plain(strassen)]
    assert report_of("U = {}\nV = {}\nW = {}".format(*rows).replace(" 0,", " 0*eps,", 1)).ok
