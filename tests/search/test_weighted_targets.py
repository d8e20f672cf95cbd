"""Targets whose terms have other coefficients than 1: pairs of symmetric and skew matrices, and lists of terms."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import parse_target
from lcma.schemes_db.ring import Z3
from lcma.search import PackedTerms, TermsModulo3, TernaryTerms
from lcma.search.basis.sparsify import sparsified
from lcma.search.cpsat.brent import solve
from lcma.search.format_moves.corners import bordered, cut

from .plain_terms import holds, sparsified_naive

PAIRS = ("2x2x2:sk", "3x3x3:ks", "3x3x2:kg", "3x3x3:kk", "3x3x3:wt", "3x3x3:uw")


@pytest.mark.parametrize("name", PAIRS)
def test_naive_terms_are_the_target_over_every_ring(name):
    target = parse_target(name)
    assert (target.term_values < 0).any()
    for kind in (PackedTerms, TernaryTerms, TermsModulo3):
        assert holds(kind.naive(target))
        certify(kind.naive(target).to_scheme())


def test_terms_that_vanish_in_the_ring_are_left_out():
    target = parse_target("1x2x1:terms(1.1.1*2,2.2.1*-3)")
    assert [kind.naive(target).rank for kind in (PackedTerms, TermsModulo3)] == [1, 1]
    assert TermsModulo3.naive(target).to_scheme().ring is Z3
    certify(TermsModulo3.naive(target).to_scheme())


@pytest.mark.parametrize("name", ["2x2x2:sk", "3x3x3:wg"])
def test_sparse_bases_keep_the_target(name):
    terms = PackedTerms.naive(parse_target(name))
    sparse = sparsified(terms)
    assert holds(sparse)
    assert np.array_equal(sparse.words, sparsified_naive(terms).words)


def test_the_equations_have_the_coefficients():
    target = parse_target("2x2x2:sk")
    assert certify(solve(target, 3).scheme).target == "2x2x2:sk"
    assert solve(target, 2, ring="Z2", ordered=True).scheme is None


@pytest.mark.parametrize("pair", ["kg", "ss", "uw"])
def test_a_border_has_them_too(pair):
    small, large = (parse_target(f"{n}x{n}x{n}:{pair}") for n in (2, 3))
    grown = bordered(TernaryTerms.naive(small).to_scheme(), large)
    certify(grown)
    certify(cut(grown, small))
