"""Hensel lifting: what lifts, what does not, and what is kept."""

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.schemes_db import Z2, Q, Scheme, Z, parse_target
from lcma.schemes_db.costs import full_and_half
from lcma.search import PackedTerms, find, lift, sparsified
from lcma.search.arena import best_terms, make_arena
from lcma.search.brent2 import holds
from lcma.search.lifting import _rational
from lcma.search.policy import Policy
from lcma.search.sparsify import symmetries
from lcma.search.walk import advance
from lcma.verify import certify


def found(name, rank, seed):
    start = PackedTerms.naive(parse_target(name))
    arena = make_arena(start, seed)
    advance(arena, Policy(), rank, 5_000_000)
    return best_terms(arena, start)


@pytest.fixture(scope="module")
def laderman():
    return [found("3x3x3", 23, seed) for seed in range(1, 41)]


def test_strassen_lifts_to_ternary():
    origin = found("2x2x2", 7, 1).to_scheme()
    lifted = lift(origin)
    assert lifted.scheme is not None
    assert lifted.scheme.ternary
    assert lifted.scheme.ring is Z
    assert lifted.scheme.over_z2() == origin
    assert certify(lifted.scheme) == lifted.certificate
    assert lifted.scheme.provenance.parents == (origin.digest,)


def test_dense_finds_lift_to_integers(laderman):
    lifts = [lift(terms.to_scheme()) for terms in laderman]
    done = [one.scheme for one in lifts if one.scheme is not None]
    assert len(done) >= 32
    for terms, one in zip(laderman, lifts, strict=True):
        if one.scheme is None:
            assert "step" in one.reason
        else:
            assert one.scheme.over_z2() == terms.to_scheme()
            assert one.certificate is not None
            assert one.certificate.digest == one.scheme.digest


def test_most_sparse_finds_lift_to_ternary(laderman):
    sparse = [sparsified(terms) for terms in laderman]
    assert all(holds(terms) for terms in sparse)
    lifts = [lift(terms.to_scheme()).scheme for terms in sparse]
    assert sum(scheme is not None and scheme.ternary for scheme in lifts) >= 28


def test_halves_stay_halves():
    for seed in range(1, 9):
        terms = found("3x3x3:tri-left", 17, seed)
        origin = terms.to_scheme()
        lifted = lift(origin).scheme
        assert lifted is not None
        assert full_and_half(lifted) == full_and_half(origin)
        sparse = sparsified(terms)
        assert holds(sparse)
        assert full_and_half(sparse.to_scheme())[0] <= full_and_half(origin)[0]


def test_a_scheme_without_a_lift_is_reported():
    result = find("3x3x3", rank=23, seed=3, count=20)
    assert result.unlifted
    for failure in result.unlifted:
        certify(failure.origin)
        assert "step 1" in failure.reason
        assert lift(failure.origin, ring=Q, seed=9).scheme is None


def test_only_z2_lifts_and_only_to_z_or_q():
    origin = found("2x2x2", 7, 1).to_scheme()
    lifted = lift(origin).scheme
    with pytest.raises(PlanError, match="only a scheme over Z2"):
        lift(lifted)
    with pytest.raises(PlanError, match="choose Z or Q"):
        lift(origin, ring=Z2)


def test_fractions_are_rebuilt_from_their_residues():
    modulus = 1 << 24
    values = [(1, 3), (-2, 1), (5, 7), (0, 1), (-64, 63), (1, 1)]
    x = np.array([[p * pow(q, -1, modulus) % modulus for p, q in values]])
    numerators, denominators = _rational(x, np.array([2, 2, 2]))
    got = [n / denominators[i // 2] for i, n in enumerate(numerators[0].tolist())]
    assert got == [p / q for p, q in values]
    assert denominators.tolist() == [3, 7, 63]


def test_a_lift_to_q_takes_fractions_where_integers_are_not_found():
    """1/3 and 3 are odd: a scheme with them reduces modulo 2 to one that has an integer lift too."""
    target = parse_target("1x1x1")
    one = np.ones((1, 1, 1), dtype=np.int64)
    third = Scheme.from_arrays(target, one, 3 * one, one, Q, denominators=(3, 1, 1))
    certify(third)
    lifted = lift(third.over_z2(), ring=Q).scheme
    assert lifted is not None
    assert lifted.ring is Z


def test_symmetries_of_targets():
    assert len(symmetries(PackedTerms.naive(parse_target("3x3x3")))) == 18
    triangular = symmetries(PackedTerms.naive(parse_target("3x3x3:tri-left")))
    assert 0 < len(triangular) < 18
    assert {change.index for change in triangular} >= {"n"}
