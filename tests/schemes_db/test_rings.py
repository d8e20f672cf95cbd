from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Q, Z
from lcma.schemes_db.formats import lcma_json
from lcma.schemes_db.gaussian import Gaussian, gaussian, parse_number, simplest
from lcma.schemes_db.ring import QI, parse_ring
from lcma.schemes_db.scheme import Scheme
from lcma.verify.exact import check_exact
from lcma.verify.randomized import check_randomized

from ..refusal import refuses
from ..reports import reading_of

fractions = st.fractions(min_value=-9, max_value=9, max_denominator=7)


@given(fractions, fractions)
def test_gaussian_numbers_read_back_from_their_text(real, imag):
    number = simplest(Gaussian(real, imag))
    assert parse_number(str(number)) == number


@given(fractions, fractions, fractions, fractions)
def test_gaussian_arithmetic_is_that_of_complex_numbers(a, b, c, d):
    x, y = Gaussian(a, b), Gaussian(c, d)
    assert complex(*(float(part) for part in ((x * y).real, (x * y).imag))) == pytest.approx(
        complex(a, b) * complex(c, d)
    )
    if y:
        assert y * y.inverse() == gaussian(1)
    assert (x + y).imag == b + d


@pytest.mark.parametrize("text", ["", "i1", "1/", "2+", "1.5", "1e3", "2+3", "i+1", "--i"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match=r"not a number|Invalid"):
        parse_number(text)


def times(array, number):
    """Integer matrices (R, m, n) times Gaussian integers of the products: pairs (R, m, n, 2)."""
    number = np.asarray(number)[:, None, None]
    return np.stack([array * number.real, array * number.imag], axis=3).astype(np.int64)


def twisted(scheme):
    """A scheme over Q(i) that computes the same: products scaled by i, -i and (1+i), (1-i)/2, which multiply to 1."""
    odd = np.arange(scheme.rank) % 2 == 1
    u, v, w = (factor.dense for factor in scheme.factors)
    scaled = times(u, np.where(odd, 1j, 1 + 1j)), times(v, np.where(odd, -1j, 1)), times(w, np.where(odd, 2, 1 - 1j))
    return Scheme.from_arrays(scheme.target, *scaled, QI, denominators=(1, 1, 2), name="twisted")


def sandwiched(scheme):
    """A scheme over Q(i) that no scale makes real: C = P^-1 ((P A) B) with P = [[1, i], [0, 1]]."""
    u, v, w = (factor.dense for factor in scheme.factors)
    p = np.array([[1, 1j], [0, 1]])
    products = np.einsum("ba,rbc->rac", p, u), v.astype(complex), np.einsum("ab,rbc->rac", p.conj(), w)
    pairs = (np.stack([x.real, x.imag], axis=3).astype(np.int64) for x in products)
    return Scheme.from_arrays(scheme.target, *pairs, QI, name="sandwiched")


def test_a_scheme_that_is_real_but_for_scale_has_the_real_ones_digest(strassen):
    assert twisted(strassen).digest == strassen.digest
    assert sandwiched(strassen).digest != strassen.digest
    real = Scheme.from_arrays(strassen.target, *(times(factor.dense, [1] * 7) for factor in strassen.factors), QI)
    assert not real.gaussian
    assert real.digest == strassen.digest


def test_schemes_over_q_i_are_proven_and_kept(tmp_path, strassen):
    scheme = sandwiched(strassen)
    assert scheme.gaussian
    assert not scheme.ternary
    assert scheme.over_z2() is None
    assert check_exact(scheme).ok
    assert check_randomized(scheme).ok
    assert Gaussian(Fraction(0), Fraction(1)) in scheme.coefficients
    reading = reading_of(lcma_json.render(scheme))
    assert reading.scheme.digest == scheme.digest
    assert reading.scheme.ring is QI
    with lcma.Catalog.open(tmp_path / "c.db") as catalog:
        assert catalog.add(scheme, lcma.certify(scheme))
        assert catalog.find("sandwiched")[0] == scheme
    for use in (lcma.program_of, lambda one: lcma.matmul(np.ones((2, 2)), np.ones((2, 2)), one)):
        refuses("not real", use, scheme)


def test_the_digest_over_q_i_forgets_units(strassen):
    scheme = sandwiched(strassen)
    turned = [factor.dense.copy() for factor in scheme.factors]
    turned[0] = np.stack([-turned[0][..., 1], turned[0][..., 0]], axis=3)  # all of U times i
    turned[2] = np.stack([turned[2][..., 1], -turned[2][..., 0]], axis=3)  # all of W times -i
    again = Scheme.from_arrays(scheme.target, *turned, QI)
    assert again.digest == scheme.digest
    assert check_exact(again).ok


def test_compositions_over_q_and_q_i(strassen):
    assert lcma.tensor(strassen, strassen.replace(ring=Q)).ring is Q
    assert lcma.tensor(strassen, strassen).ring is Z
    product = lcma.tensor(twisted(strassen), strassen)
    assert product.ring is QI
    assert check_exact(product).ok
    assert check_exact(lcma.tensor(twisted(strassen), twisted(strassen))).ok
    for change in (lcma.rotate, lcma.transpose, lcma.reverse):
        assert check_exact(change(twisted(strassen))).ok


@pytest.mark.parametrize("ring", ["Z3", "Z7", "Z1048573"])
def test_schemes_over_prime_fields(ring, strassen):
    ring = parse_ring(ring)
    p = ring.characteristic
    u, v, w = (factor.dense for factor in strassen.factors)
    half = pow(2, -1, p)
    scheme = Scheme.from_arrays(strassen.target, u * 2, v, w * half, ring)
    assert check_exact(scheme).ok
    assert check_randomized(scheme).ok
    assert scheme.digest == Scheme.from_arrays(strassen.target, u, v * (p - 1), w * (p - 1), ring).digest
    assert scheme.digest != strassen.digest
    wrong = w.copy()
    wrong[2, 0, 1] += 1
    assert not check_exact(Scheme.from_arrays(strassen.target, u, v, wrong, ring)).ok
    assert reading_of(lcma_json.render(scheme)).scheme.digest == scheme.digest
    refuses("only", lcma.matmul, np.ones((2, 2)), np.ones((2, 2)), scheme)
