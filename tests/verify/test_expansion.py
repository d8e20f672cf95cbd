import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Q, Z
from lcma.schemes_db.factor import Factor
from lcma.schemes_db.ring import parse_ring
from lcma.schemes_db.scheme import Scheme
from lcma.verify import expansion
from lcma.verify.exact import check_exact
from lcma.verify.randomized import check_randomized

from .faults_of_schemes import changed, wrong_equations

RINGS = ["Z", "Q", "Z2", "Z3", "Z1048573", "Q(i)"]
TARGETS = ["1x1x1", "2x2x2", "1x3x2", "2x1x2", "3x3x2:tri-left", "2x2x2:tri-out"]


def outcome_of(scheme):
    """What the dense and the sparse way both say of a scheme."""
    outcomes = []
    for sparse in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(expansion, "is_sparse", lambda _, sparse=sparse: sparse)
            one = check_exact(scheme)
        outcomes.append((one.ok, one.wrong, one.first, one.holds_mod_2, one.equations))
    dense, sparse = outcomes
    assert dense == sparse
    return dense


@settings(max_examples=130, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(TARGETS), st.sampled_from(RINGS))
def test_both_methods_count_the_wrong_equations_and_a_random_proof_agrees(seed, name, ring):
    rng = np.random.default_rng(seed)
    target, ring = lcma.parse_target(name), parse_ring(ring)
    kinds = [grid[..., None] if ring.gaussian else grid for grid in target.kind_arrays]
    parts = (2,) if ring.gaussian else ()
    size = int(rng.choice([1, 3, 1 << 25]))
    arrays = [
        np.where(grid == 0, 0, rng.integers(-size, size + 1, (5, *grid.shape[:2], *parts)))
        * (rng.random((5, 1, 1, *(1 for _ in parts))) < 0.7)
        for grid in kinds
    ]
    denominators = (2, 1, 3) if ring.fractions else (1, 1, 1)
    scheme = Scheme.from_arrays(target, *arrays, ring, denominators=denominators)
    ok, count, first, *_ = outcome_of(scheme)
    wrong = wrong_equations(scheme)
    assert (count or 0) == np.count_nonzero(wrong)
    assert ok == (not wrong.any()) == check_randomized(scheme, seed=seed).ok
    if not ok:
        places = zip((first.a, first.b, first.c), (factor.cols for factor in scheme.factors), strict=True)
        assert wrong[tuple(row * cols + col for (row, col), cols in places)]


@pytest.mark.parametrize("name", ["strassen*laderman", "eca-stage1", "naive:3x4x5", "naive:4x4x4:tri-right"])
@pytest.mark.parametrize("ring", ["Z", "Z2", "Z7"])
def test_valid_schemes_hold_both_ways(name, ring):
    assert outcome_of(lcma.resolve(name)[0].replace(ring=parse_ring(ring)))[0]


@pytest.mark.parametrize("ring", ["Z", "Z101"])
def test_batches_do_not_change_the_verdict(monkeypatch, ring):
    monkeypatch.setattr(expansion, "_BATCH_TERMS", 3)
    monkeypatch.setattr(expansion, "MODULAR_ROWS", 2)
    assert outcome_of(lcma.resolve("strassen*strassen")[0].replace(ring=parse_ring(ring)))[0]


def test_a_block_that_no_product_uses_is_missed_by_neither(strassen):
    arrays = [factor.dense.copy() for factor in strassen.factors]
    for array in arrays:
        array[:, 0, 0] = 0
    assert not outcome_of(Scheme.from_arrays(strassen.target, *arrays))[0]


def test_the_fourth_tensor_power_is_worked_sparsely_and_one_change_is_found():
    scheme = lcma.resolve("strassen*strassen*strassen*strassen")[0]
    assert expansion.is_sparse(scheme)
    assert not expansion.is_sparse(lcma.resolve("laderman")[0])
    assert check_exact(scheme).ok
    product, index = int(scheme.w.product[12345]), int(scheme.w.indices[12345])
    outcome = check_exact(changed(scheme, 2, product, index, 1))
    support = [int(np.diff(factor.indptr)[product]) for factor in (scheme.u, scheme.v)]
    assert outcome.wrong == support[0] * support[1]
    assert divmod(index, 16) == outcome.first.c


@pytest.mark.slow
def test_the_fifth_tensor_power_is_proven_in_one_process():
    import resource

    scheme = lcma.resolve("*".join(["strassen"] * 5))[0]
    assert (scheme.target.name, scheme.rank, scheme.ring) == ("32x32x32", 16807, Z)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = check_exact(scheme)
    assert outcome.ok
    assert outcome.equations == 1 << 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB: a dense check needs more


TWOS, THREES = 20, 13
DENOMINATOR = 2**TWOS * 3**THREES


def exponents(rng, rank, total, largest):
    """Three exponents a product, from 0 to `largest`, with this sum."""
    first = rng.integers(max(0, total - 2 * largest), largest + 1, rank)
    low, high = np.maximum(0, total - first - largest), np.minimum(largest, total - first)
    second = low + (rng.random(rank) * (high - low + 1)).astype(np.int64)
    return [first, second, total - first - second]


def with_scaled_products(scheme):
    """Scale the factors of every product by 2^i 3^j at random, in all by 1: numerators to 2^60, one denominator."""
    rng = np.random.default_rng(1)
    factors = []
    powers = (exponents(rng, scheme.rank, 3 * TWOS, 27), exponents(rng, scheme.rank, 3 * THREES, 16))
    for factor, twos, threes in zip(scheme.factors, *powers, strict=True):
        values = factor.values * (2**twos * 3**threes)[factor.product]
        factors.append(Factor(factor.rows, factor.cols, factor.indptr, factor.indices, values, DENOMINATOR))
    return Scheme(scheme.target, *factors, Q)


def test_scales_that_cancel_within_products_need_no_primes():
    scheme = with_scaled_products(lcma.resolve("strassen*strassen")[0])
    assert DENOMINATOR > 1 << 40
    assert max(int(np.abs(factor.values).max()) for factor in scheme.factors) > 1 << 50
    outcome = check_exact(scheme)
    assert outcome.ok
    assert outcome.proof.primes == ()
    r, index = int(scheme.w.product[5]), int(scheme.w.indices[5])
    failed = check_exact(changed(scheme, 2, r, index, 1))
    assert not failed.ok
    u, v = (
        dict(factor.coefficients(r))[row * factor.cols + col]
        for factor, (row, col) in zip((scheme.u, scheme.v), (failed.first.a, failed.first.b), strict=True)
    )
    assert failed.first.got - failed.first.wanted == u * v / DENOMINATOR


def test_fractions_that_do_not_cancel_are_proven_modulo_primes(strassen):
    scales = np.array([10**12 + 39, 11])  # of the rows of A, and so of C
    common, (u, v, w) = int(scales.prod()), strassen.factors
    first = Factor(2, 2, u.indptr, u.indices, u.values * scales[u.indices // 2])
    third = Factor(2, 2, w.indptr, w.indices, w.values * (common // scales[w.indices // 2]), common)
    scheme = Scheme(strassen.target, first, v, third, Q)
    outcome = check_exact(scheme)
    assert outcome.ok
    assert len(outcome.proof.primes) > 3
    assert not check_exact(changed(scheme, 2, 0, int(w.indices[0]), 1)).ok
