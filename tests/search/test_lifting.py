"""Hensel lifting: what lifts, what does not, and what is kept."""

from collections import Counter

import numpy as np
import pytest

import lcma
from lcma.schemes_db import Q, Scheme, Z, parse_target
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.ring import Z3
from lcma.search import PackedTerms, find, lift, lift_pool, sparsified
from lcma.search.basis.shears import half_masks, symmetries
from lcma.search.cpsat.signs import signed_scheme, ternary_signs
from lcma.search.flipgraph.arena import make_arena, terms_in
from lcma.search.flipgraph.policy import Policy
from lcma.search.flipgraph.walk import advance
from lcma.search.lifting import lift as lifts
from lcma.search.lifting.lift import _rational
from lcma.search.terms import linear
from lcma.search.terms.rings import GF2
from lcma.verify import certify

from ..refusal import refuses
from .plain_terms import full_and_nonzeros, holds, sparsified_naive


def found(name, rank, seed):
    start = PackedTerms.naive(parse_target(name))
    arena = make_arena(start, seed)
    advance(arena, Policy().numbers, rank, 5_000_000)
    return terms_in(arena.best, arena, start)


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


@pytest.mark.parametrize("sums", [True, False])
def test_lifts_by_parts_of_the_equations_are_those_by_all(laderman, monkeypatch, sums):
    """Nonzero entries first, and random sums of equations: so few that they are wrong, then as many as unknowns."""
    wanted = [lift(terms.to_scheme()) for terms in laderman[:8]]
    monkeypatch.setattr(lifts, "FEW", 0)
    if sums:
        monkeypatch.setattr(lifts, "MANY", 0.0)
    for spare in (-200, 128):
        monkeypatch.setattr(lifts, "SPARE", spare)
        for terms, one in zip(laderman, wanted, strict=False):
            assert lift(terms.to_scheme()) == one


def test_equations_that_do_not_fit_are_not_decomposed(laderman, monkeypatch):
    monkeypatch.setattr(lifts, "FEW", 0)
    schemes = [terms.to_scheme() for terms in laderman[:12]]
    odd = max(sum(len(factor.indices) for factor in scheme.factors) for scheme in schemes)
    monkeypatch.setattr(lifts, "MEMORY", 729 * odd // 8 + 8)
    outcomes = Counter(lift(scheme).reason for scheme in schemes)
    assert 0 < outcomes[""] < len(schemes)
    assert set(outcomes) == {"", "the nonzero entries have no lift, and all entries need more than 0 GB"}
    monkeypatch.setattr(lifts, "MEMORY", 1 << 10)
    refuses("equations of .* do not fit", lift, schemes[0])


@pytest.mark.parametrize(("equations", "unknowns"), [(300, 200), (200, 300), (700, 129), (64, 64)])
@pytest.mark.parametrize("density", [0.03, 0.5])
def test_the_elimination_by_words_is_that_by_columns(equations, unknowns, density):
    rng = np.random.default_rng(equations)
    bits = (rng.random((equations, -(-unknowns // 64) * 64)) < density).astype(np.uint8)
    bits[:, unknowns:] = 0
    bits[:, 5], bits[3] = 0, bits[4]  # no pivot in a column, a dependent row
    rows = np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(equations, 1, -1)
    results = []
    for eliminate in (linear.decompose, linear.decompose_by_columns):
        done, order, pivots = rows.copy(), np.arange(equations), np.zeros(unknowns, dtype=np.int64)
        rank = eliminate((0,) * GF2, done, unknowns, order, pivots)
        results.append([done.tolist(), order.tolist(), pivots[:rank].tolist()])
    assert results[0] == results[1]


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
    result = find("3x3x3", rank=23, seed=3, count=40, policy=Policy())
    assert result.unlifted
    for failure in result.unlifted:
        certify(failure.origin)
        assert "step 1" in failure.reason
        assert lift(failure.origin, ring=Q, seed=9).scheme is None


@pytest.mark.parametrize(("prime", "depth"), [(2, 24), (3, 15)])
def test_fractions_are_rebuilt_from_their_residues(prime, depth):
    modulus = prime**depth
    values = {
        2: [(1, 3), (-2, 1), (5, 7), (0, 1), (-64, 63), (1, 1)],
        3: [(1, 2), (-2, 1), (5, 7), (0, 1), (-64, 61), (1, 1)],
    }
    x = np.array([[p * pow(q, -1, modulus) % modulus for p, q in values[prime]]])
    numerators, denominators = _rational(x, np.array([2, 2, 2]), prime)
    got = [n / denominators[i // 2] for i, n in enumerate(numerators[0].tolist())]
    assert got == [p / q for p, q in values[prime]]


def modulo_3(scheme):
    return Scheme(scheme.target, *scheme.reduced_mod(3), Z3)


@pytest.mark.parametrize("name", ["strassen", "laderman", "3x3x4", "eca-stage1"])
def test_residues_modulo_3_of_a_ternary_scheme_lift_to_it(name):
    scheme = lcma.resolve(name)[0]
    assert lift(modulo_3(scheme)).scheme == scheme


def test_other_bases_modulo_3_lift_to_fractions():
    shear = np.array([[1, 1, 0], [0, 1, 0], [0, -1, 1]])
    moved = change_of_basis(lcma.resolve("laderman")[0], shear, shear.T @ shear, shear)
    origin = modulo_3(moved)
    certify(origin)
    lifted = lift(origin, ring=Q)
    assert lifted.scheme is not None
    assert modulo_3(lifted.scheme) == origin
    assert lifted.certificate == certify(lifted.scheme)


def test_walking_on_brings_schemes_to_ternary(laderman):
    origins = [terms.to_scheme() for terms in laderman[:12]]
    plain = lift_pool(origins)
    walked = lift_pool(origins, walks=24, signs=0.5, jobs=2)
    assert walked.shares["ternary"] > plain.shares["ternary"]
    assert walked.shares["ternary"] >= 11
    for one in walked.lifts:
        if one.scheme is not None:
            assert one.certificate == certify(one.scheme)
            assert one.scheme.rank == 23
    assert [one.scheme for one in walked.lifts] == [one.scheme for one in lift_pool(origins, walks=24, signs=0.5).lifts]


def test_signs_are_found_or_proven_impossible():
    origin = lcma.resolve("laderman")[0].over_z2()
    factors, word = ternary_signs(origin)
    assert word == "found"
    certify(signed_scheme(origin, factors))
    # 2x2x2 by Strassen in a basis whose only lift has a 2: no signs will do.
    shears = [np.array([[1, 1], [0, 1]]), np.array([[1, 0], [1, 1]])]
    words = {
        ternary_signs(change_of_basis(lcma.resolve("strassen")[0], p, q, r).over_z2())[1]
        for p in shears
        for q in shears
        for r in shears
    }
    assert words <= {"found", "infeasible"}


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
    assert len(symmetries(parse_target("3x3x3"))) == 18
    for name in ("3x3x3:tri-left", "3x3x3:tri-out"):
        triangular = symmetries(parse_target(name))
        # One index is free; the other two keep their order, which is half of the shears each.
        assert sorted(Counter(shear.index for shear in triangular).values()) == [3, 3, 6]
    # A banded target has none that mixes rows with different columns.
    assert len(symmetries(parse_target("4x4x4:band(1)"))) < 24


@pytest.mark.parametrize(
    ("name", "rank"), [("3x3x3", 23), ("2x3x4", 21), ("3x3x3:tri-left", 17), ("3x3x3:tri-out", 17)]
)
def test_the_compiled_descent_is_the_naive_one(name, rank):
    for seed in range(1, 6):
        terms = found(name, rank, seed)
        fast, slow = sparsified(terms), sparsified_naive(terms)
        assert np.array_equal(fast.words, slow.words)
        assert holds(fast)
        masks = half_masks(terms.target)
        assert full_and_nonzeros(fast.words, masks) <= full_and_nonzeros(terms.words, masks)
        assert full_and_nonzeros(fast.words, masks)[0] == full_and_half(fast.to_scheme())[0]
