"""Coefficients beyond int64: read by every text format, verified modulo primes, neither kept nor run."""

import json
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import lcma
from lcma.errors import LcmaError, SchemeFormatError, VerifyOnlyError
from lcma.schemes_db import Z2, Q, Scheme, Z, formats
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.formats.reading import Entries, factor_of
from lcma.verify import certify, check
from lcma.verify.randomized import refuted

from ..refusal import refuses_with
from ..reports import proven, report_of
from ..schemes_db.archives import archive
from .faults_of_schemes import numerators, wrong_equations

SHEAR = 3 * 10**24 + 7


def scheme_of(arrays, target, ring):
    """The scheme of arrays (R, rows, columns) of integers and fractions of any size."""
    factors = []
    for array, label in zip(arrays, "UVW", strict=True):
        terms = [[(*place, value) for place, value in np.ndenumerate(grid) if value] for grid in array]
        factors.append(factor_of(Entries.of(terms), *array.shape[1:], label))
    return Scheme(target, *factors, ring)


def sheared(size=SHEAR, ring=Z):
    """Strassen's scheme of P A: row 1 of A and of C becomes row 1 plus `size` times row 2, over `ring`."""
    strassen = lcma.resolve("strassen")[0]
    u, v, w = (factor.dense.astype(object) + Fraction(0) for factor in strassen.factors)
    u[:, 1] += size * u[:, 0]  # of A' = P A: the coefficient of A[2] gains that of A[1]
    w[:, 0] -= size * w[:, 1]  # C = P^-1 C'
    return scheme_of((u, v, w), strassen.target, ring)


FRACTION = Fraction(10**30, 3**50)
TEXTS = ("lcma-json", "equations", "exp", "maple")


@pytest.mark.parametrize(
    ("format", "scheme"),
    [
        *((format, sheared()) for format in (*TEXTS, "fmm-json")),
        ("sms", sheared(int("1" * 61))),  # long entries are not cut
        *((format, sheared(FRACTION, Q)) for format in (*TEXTS, "sms")),  # fmm-json holds integers only
    ],
    ids=str,
)
def test_what_every_text_format_holds_is_verified(format, scheme):
    assert scheme.large
    report = proven(formats.render(scheme, format))
    assert report.scheme.large
    assert report.certificate is None
    assert "neither kept nor run" in " ".join(report.notes)
    assert report.scheme.digest == scheme.digest


def arrays_of(scheme):
    return dict(zip("uvw", map(numerators, scheme.factors), strict=True))


def slp(u, v, w):
    """The three programs of factors."""
    texts = []
    for rows in (u, v, w.T):
        sums = ("".join(f"{x:+d}*i{i}" for i, x in enumerate(row) if x).removeprefix("+") for row in rows)
        texts.append(" ".join(f"o{r}:={text};" for r, text in enumerate(sums)))
    return "\n#\n".join(texts)


def test_arrays_slp_and_pickles_hold_them_too():
    arrays = arrays_of(sheared())
    lists = {name: rows.tolist() for name, rows in arrays.items()}
    python = "\n".join(f"{name.upper()} = {rows}" for name, rows in lists.items())
    small = {name: rows.astype(np.int64) for name, rows in arrays_of(sheared(1 << 62)).items()}
    texts = json.dumps(lists), python, slp(**arrays)
    for content in (*texts, archive(**arrays), archive(**small)):
        assert proven(content, allow_pickle=True).scheme.large


@pytest.mark.parametrize(("format", "over"), [("lcma-json", Z), ("equations", Z), ("maple", Z2)], ids=str)
def test_one_wrong_digit_is_refuted_or_modulo_2_where_no_ring_is_said(format, over):
    wrong = formats.render(sheared(), format).decode().replace(str(SHEAR), str(SHEAR + 2), 1 if over is Z else -1)
    report = report_of(wrong)
    assert report.ok == report.warned == (over is Z2)
    if over is Z2:
        assert not report.scheme.large
    else:
        assert "equations fail" in report.headline()
        assert report.outcomes[0].first is not None
        assert report.outcomes[0].holds_mod_2


def test_gaussian_coefficients_are_multiplied_out():
    """a11 b11 of two products: (s i a11)(b11) and (a11)(b11), with s i + (1 - s i) = 1."""
    text = f"m1 = ({10**20}*i*a11)(b11)\nm2 = (a11)(b11)\nc11 = (m1) + (1-{10**20}*i)*m2\n"
    scheme = proven(text).scheme
    assert (scheme.large, scheme.ring.name) == (True, "Q(i)")
    with pytest.raises(SchemeFormatError, match="may be no scheme"):  # two products of 1x1x1 of which nothing holds
        report_of(text.replace("c11 = (", "c11 = 2*("))


def test_a_declared_field_reduces_them():
    report = proven(formats.render(sheared(), "maple"), ring=lcma.parse_ring("Z3"))
    assert not report.scheme.large
    assert report.certificate is not None


def test_they_are_neither_certified_nor_kept_nor_run(home):
    scheme = sheared()
    refuses_with(VerifyOnlyError, "neither kept nor run", certify, scheme)
    refuses_with(LcmaError, "by exact, not by randomized", check, scheme, "randomized")
    other = certify(lcma.resolve("strassen")[0])
    forged = type(other)(other.target, other.ring, other.rank, scheme.digest, other.proofs, other.version)
    with Catalog.open() as catalog, pytest.raises(VerifyOnlyError, match="not kept"):
        catalog.add(scheme, forged)
    refuses_with(VerifyOnlyError, "neither kept nor run", lcma.matmul, np.ones((4, 4)), np.ones((4, 4)), scheme=scheme)


def test_memory_is_that_of_groups_of_blocks(monkeypatch):
    monkeypatch.setattr("lcma.verify.exact.GROUP_ENTRIES", 1 << 16)
    size = 16
    dense = [[(i, j, 1) for i in range(size) for j in range(size)]]
    factors = [
        factor_of(Entries.of(terms), size, size, label)
        for terms, label in (([[(0, 0, SHEAR)]], "U"), (dense, "V"), (dense, "W"))
    ]
    scheme = Scheme(lcma.parse_target(f"{size}x{size}x{size}"), *factors)
    tracemalloc.start()
    try:
        outcome = check(scheme)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Every term of the one product is wrong, and every wanted one but those with A[1,1] is missing.
    assert outcome.wrong == size**4 + size**3 - size
    assert outcome.first.got == SHEAR
    assert peak < 16 << 20  # a sum of each equation takes 128 MiB


@pytest.mark.parametrize("ring", [Z, Q], ids=str)
def test_the_count_of_wrong_equations_is_that_of_dense_arrays(ring):
    rng = np.random.default_rng(3)
    target = lcma.parse_target("2x1x2")
    arrays = [rng.integers(-1, 2, (3, *kinds.shape)).astype(object) for kinds in target.kind_arrays]
    arrays[0][0, 0, 0] = SHEAR
    scheme = scheme_of(arrays, target, ring)
    outcome, wrong = check(scheme), wrong_equations(scheme)
    assert outcome.wrong == np.count_nonzero(wrong)
    p, q, s = next(zip(*np.nonzero(wrong), strict=True))
    assert (outcome.first.a, outcome.first.b, outcome.first.c) == (divmod(p, 1), divmod(q, 2), divmod(s, 2))


@pytest.mark.parametrize(("size", "ring"), [(SHEAR, Z), (FRACTION, Q)], ids=["Z", "Q"])
def test_wrong_readings_are_refuted_before_they_are_expanded(size, ring):
    right = sheared(size, ring)
    assert right.large
    assert not refuted(right)
    wrong = right.replace(w=right.w.transposed())
    assert refuted(wrong)
    assert not check(wrong).ok
