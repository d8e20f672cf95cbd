import json
import re

import numpy as np
import pytest

import lcma
from lcma.errors import VerificationError
from lcma.schemes_db import Z2, Z
from lcma.schemes_db.formats import lcma_json, written
from lcma.schemes_db.formats.reading import C, Reading
from lcma.schemes_db.scheme import Scheme
from lcma.verify import judge

from ..refusal import refuses_with
from ..reports import report_of


def exp_by_c(scheme):
    """The same .exp lines with the third factor's indices the other way."""
    return re.sub(r"c(\d)(\d)", r"c\2\1", written.exp(scheme))


def fmm_json_by_c(scheme):
    w = scheme.w.dense.reshape(scheme.rank, -1).tolist()
    return json.dumps(json.loads(written.fmm_json(scheme)) | {"w": w})


def verified(path, text, *methods, **options):
    """The report on a file with this text."""
    path.write_text(text)
    (report,) = lcma.verify_file(path, methods or ("exact",), **options)
    return report


# A rectangular scheme shows its convention; that of a square one is found by verification.
@pytest.mark.parametrize("name", ["strassen*naive:1x2x2", "laderman"])
@pytest.mark.parametrize(("render", "convention"), [(written.exp, "C^T"), (exp_by_c, "C"), (fmm_json_by_c, "C")])
def test_the_convention_is_found(tmp_path, name, render, convention):
    scheme, path = lcma.resolve(name)[0], tmp_path / "s"
    report = verified(path, render(scheme))
    assert (report.conventions, report.scheme) == ((convention,), scheme)
    assert convention == "C^T" or "documents C^T" in report.notes[0]
    loaded, certificate = lcma.load(path)
    assert (loaded, certificate.digest) == (scheme, scheme.digest)


def test_a_scheme_that_is_its_own_transpose_says_so(tmp_path):
    report = verified(tmp_path / "one.exp", "a11*b11*c11\n")
    assert report.ok
    assert report.conventions == ("C^T", "C")


def test_valid_mod_2_only(tmp_path, strassen):
    path, text = tmp_path / "z2.exp", written.exp(strassen).replace("(a11+a22)", "(a11-a22)", 1)
    report = verified(path, text)
    assert report.ok
    assert report.over_z2_only
    assert report.headline().startswith("OK 2x2x2 rank 7 over Z2 only (exact, 64 equations, ")
    assert report.certificate.ring == "Z2"
    strict = verified(path, text, ring=Z)
    assert not strict.ok
    assert "holds mod 2" in strict.headline()
    assert verified(path, text, ring=Z2).ok


def test_a_wrong_scheme_is_refused_with_its_first_wrong_equation(tmp_path, strassen):
    report = verified(tmp_path / "bad.exp", written.exp(strassen).replace("a11", "a12", 1))
    assert not report.ok
    assert report.headline().startswith("FAIL 2x2x2 rank 7 over Z: ")
    assert report.to_json()["failure"] in report.headline()
    refuses_with(VerificationError, "equations fail", lcma.load, tmp_path / "bad.exp")


def test_headline_and_json(tmp_path, strassen):
    report = verified(tmp_path / "s.json", lcma_json.render(strassen), "exact", "randomized")
    assert report.headline().startswith(
        "OK 2x2x2 rank 7 over Z (exact, 64 equations, randomized, 4 rounds, error below 2^-102, "
    )
    data = json.loads(json.dumps(report.to_json()))
    assert data["digest"] == strassen.digest
    assert (data["rank"], data["best_known_rank"], data["additions"], data["ternary"]) == (7, 7, 18, True)
    assert data["certificate"]["proofs"][0]["equations"] == 64
    assert data["failure"] is None


def test_zero_unused_and_doubled_products_are_noted(strassen):
    odd = "n1 = (a11 - a11)(b11)\nn2 = (a12)(b11)\nn3 = (-a12)(b11)\nn4 = (a12)(b12)\n"
    text = odd + written.equations(strassen).replace("c11 = ", "c11 = n2 + n3 + ").replace("c12 = ", "c12 = n1 + ")
    assert set(report_of(text).notes) >= {
        "products that are zero: 1",
        "products that are used by no output: 4",
        "products that are the same as one before: 3",
    }


def test_of_two_candidates_with_one_convention_each_has_its_own_verdict(strassen):
    u, v, w = (part.dense.reshape(7, 2, 2) for part in strassen.factors)
    wrong = Scheme.from_arrays(strassen.target, u[::-1], v, w)
    for candidates in (((C, wrong), (C, strassen)), ((C, strassen), (C, wrong))):
        report = judge(Reading("arrays", candidates), "here")
        assert report.ok
        assert (report.scheme, report.conventions) == (strassen, (C,))
    assert not judge(Reading("arrays", ((C, wrong), (C, wrong))), "here").ok


@pytest.mark.parametrize("named", [False, True])
def test_three_coefficients_of_each_factor_may_be_its_three_rows(strassen, named):
    """Zeros are listed too: every factor of every product is three triples, and as a matrix 3 x 3."""
    products = []
    for three in zip(*(part.dense for part in strassen.factors), strict=True):
        listed = [
            sorted(([*at, int(x)] for at, x in np.ndenumerate(part)), key=lambda one: not one[2]) for part in three
        ]
        products.append(dict(zip("uvw", (one[:3] for one in listed), strict=True)))
    assert all(sum(map(bool, part.ravel())) < 4 for whole in strassen.factors for part in whole.dense)
    for wrong in (False, True):
        products[2]["u"][0][2] *= 1 + wrong
        text = json.dumps(products if named else [list(one.values()) for one in products])
        report = report_of(text)
        assert report.ok != wrong
        assert wrong or report.scheme == strassen
