"""Schemes with rounded coefficients and border schemes: never valid, and told what they are."""

import io
import json
import re
from fractions import Fraction

import numpy as np
import pytest

from lcma.errors import SchemeFormatError, VerificationError
from lcma.schemes_db.formats import parse_bytes, parse_text, written
from lcma.schemes_db.inexact import Approximation, Inexact
from lcma.schemes_db.target import Target
from lcma.verify import ApproximateReport, judge, load, verify_file
from lcma.verify.approximate import judge_approximations

from ..refusal import refuses_with

W_STATE = Target.of_terms([(0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 1)])
"""The tensor of rank 3 and border rank 2: e^-1 ((a0 + e a1)(b0 + e b1)(c0 + e c1) - a0 b0 c0) = it + O(e)."""


def blocks(*factors):
    """fast-matmul text of three factors (R, entries) of words."""
    return "\n#\n".join("\n".join(" ".join(map(str, entry)) for entry in zip(*rows, strict=True)) for rows in factors)


def padded(rows, entries):
    return [[*row, *["0"] * (entries - len(row))] for row in rows]


def border(name="x", inverse="xi", sign="-"):
    target = W_STATE
    rows = [[["1", name], ["1", "0"]], [["1", name], ["1", "0"]], [[inverse, "1"], [f"{sign}{inverse}", "0"]]]
    sizes = (target.m * target.k, target.k * target.n, target.m * target.n)
    return blocks(*(padded(part, size) for part, size in zip(rows, sizes, strict=True)))


def noisy(strassen, size, seed=0):
    rng = np.random.default_rng(seed)
    return [factor.dense.reshape(7, 4) + rng.normal(0, size, (7, 4)) for factor in strassen.factors]


def report_of(text, target=None):
    (reading,) = parse_text(text, target=target)
    return judge(reading, "file")


def test_a_rounded_scheme_is_reported_with_its_residual_and_its_rounding(strassen):
    factors = noisy(strassen, 1e-6)
    report = report_of(blocks(*(factor.tolist() for factor in factors)))
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
    u, v, w = (factor.dense.reshape(7, 4) for factor in strassen.factors)
    third = report_of(blocks((u / 3).round(9).tolist(), (3 * v).tolist(), w.tolist()))
    assert (third.rounded, third.grid, third.rounded.ring.name) == (strassen, 3, "Q")
    assert "multiples of 1/3" in third.headline()
    noise = report_of(blocks(*(factor.tolist() for factor in noisy(strassen, 1.0))))
    assert noise.rounded is None
    assert noise.headline().split("residual")[1].strip() == f"{noise.residual:.1e}"


def test_every_format_with_decimals_says_so(strassen):
    u, v, w = noisy(strassen, 1e-7, seed=3)
    stream = io.BytesIO()
    np.savez(stream, **{"2,2,2": np.stack([u.T, v.T, w.reshape(7, 2, 2).swapaxes(1, 2).reshape(7, 4).T])})

    def braces(matrix):
        return "{" + ",".join("{" + ",".join(f"{x:.9f}" for x in row) + "}" for row in matrix.reshape(2, 2)) + "}"

    def summed(letter, matrix):
        terms = [f"{x:+.9f}*{letter}{i + 1}{j + 1}" for (i, j), x in np.ndenumerate(matrix.reshape(2, 2))]
        return f"({''.join(terms)})"

    third = w.reshape(7, 2, 2).swapaxes(1, 2)
    mathematica = ",\n".join(f"{{{braces(a)}, {braces(b)}, {braces(c)}}}" for a, b, c in zip(u, v, third, strict=True))
    exp = "\n".join(f"{summed('a', a)}*{summed('b', b)}*{summed('c', c)}" for a, b, c in zip(u, v, third, strict=True))
    equations = [f"m{r + 1} = {summed('a', a)}{summed('b', b)}" for r, (a, b) in enumerate(zip(u, v, strict=True))]
    for entry in range(4):
        total = "".join(f"{w[r, entry]:+.9f}*m{r + 1}" for r in range(7))
        equations.append(f"c{entry // 2 + 1}{entry % 2 + 1} = {total}")
    contents = [stream.getvalue(), mathematica.encode(), exp.encode(), "\n".join(equations).encode()]
    for content, format_ in zip(contents, ("alphatensor", "mathematica", "exp", "equations"), strict=True):
        (reading,) = parse_bytes(content)
        report = judge(reading, format_)
        assert (report.format, report.rounded) == (format_, strassen)
        assert 0 < report.residual < 1e-4


@pytest.mark.parametrize(("name", "inverse"), [("x", "xi"), ("e", "e^-1"), ("eps", "1*eps^-1"), ("2*x", "1/2*xi")])
def test_a_border_scheme_is_reported_with_the_order_at_which_it_fails(name, inverse):
    text = border(name, inverse) if name != "2*x" else border()
    report = report_of(text, W_STATE)
    assert (report.ok, report.order) == (False, 1)
    assert report.headline().startswith(f"FAIL {W_STATE} rank 2: a border scheme, A B + O(e), first wrong at order 1: ")
    assert report.to_json()["approximate"] == "border"


def test_powers_that_do_not_cancel_fail_below_order_1():
    report = report_of(border(sign="+"), W_STATE)
    assert report.order == -1
    assert "powers of e, first wrong at order -1: coefficient of A[1,1] B[1,1] in C[1,1] is 2, wanted 0" in (
        report.headline()
    )
    assert report_of(border(name="0"), W_STATE).order == 0


def test_powers_that_all_cancel_leave_an_exact_scheme(strassen):
    words = [
        [[{1: one, -1: f"-{one}", 0: "0"}[x] for x in row] for row in factor.dense.reshape(7, 4).tolist()]
        for factor, one in zip(strassen.factors, ("x", "1", "xi"), strict=True)
    ]
    report = report_of(blocks(*words))
    assert (report.ok, report.order, report.rounded) == (False, None, strassen)
    assert "with e = 1 it is exact" in report.headline()


def test_files_are_verified_loaded_rounded_and_refused(strassen, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(blocks(*(factor.tolist() for factor in noisy(strassen, 1e-6))))
    (report,) = verify_file(path)
    data = json.loads(json.dumps(report.to_json()))
    assert (data["ok"], data["rounded_digest"], data["file"]) == (False, strassen.digest, str(path))
    with pytest.raises(VerificationError, match="coefficients are rounded"):
        load(path)
    scheme, certificate = load(path, rounded=True)
    assert (scheme, certificate.digest) == (strassen, strassen.digest)


@pytest.mark.parametrize(("text", "message"), [
    (border(name="x^99^9"), "at most 100"),
    ("m1 = (" + "eps*" * 101 + "a11)(b11)\nc11 = m1", "power beyond 100"),
])  # fmt: skip
def test_what_can_not_be_read_is_refused_in_one_line(text, message):
    refuses_with(SchemeFormatError, message, report_of, text)


def test_products_beyond_double_precision_are_refused_in_one_line():
    huge = ((0, Inexact.of(Fraction(10**120), 1)),)
    approximation = Approximation(Target.general(1, 1, 1), ((huge,), (huge,), (huge,)))
    with pytest.raises(SchemeFormatError, match="double precision"):
        judge_approximations((("C", approximation),), "huge.txt", "bini")


def test_a_border_scheme_by_running_index_has_the_border_verdict(strassen):
    text = re.sub(r"(?m)^#.*|(?<=[abc])1(?=[12])", "", written.equations(strassen))
    text = re.sub(r"\b([abc])2([12])\b", lambda name: f"{name[1]}{int(name[2]) + 2}", text)
    headline = judge(parse_text(text.replace("c1 = m1", "c1 = (1+eps)*m1"))[0], "file").headline()
    assert headline.startswith("FAIL 2x2x2 rank 7: a border scheme, A B + O(e)")


def test_a_power_of_the_infinitesimal_times_0_is_0(strassen):
    rows = [factor.dense.reshape(7, 4).tolist() for factor in strassen.factors]
    assert judge(parse_text("U = {}\nV = {}\nW = {}".format(*rows).replace(" 0,", " 0*eps,", 1))[0], "file").ok
