import importlib.util
from pathlib import Path

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

RINGS = ["Z", "Q", "Z2", "Z3", "Z1048573", "Q(i)"]


def both(monkeypatch, scheme):
    """The outcomes of the dense and of the sparse way."""
    outcomes = []
    for sparse in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(expansion, "is_sparse", lambda _, sparse=sparse: sparse)
            outcomes.append(check_exact(scheme))
    return [(outcome.ok, outcome.wrong, outcome.first, outcome.holds_mod_2, outcome.equations) for outcome in outcomes]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["1x1x1", "2x2x2", "1x3x2", "3x3x2:tri-left"]), st.sampled_from(RINGS)
)
def test_both_methods_agree(seed, name, ring):
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
    with pytest.MonkeyPatch.context() as monkeypatch:
        dense, sparse = both(monkeypatch, scheme)
    assert dense == sparse


@pytest.mark.parametrize("name", ["strassen*laderman", "eca-stage1", "naive:3x4x5", "naive:4x4x4:tri-right"])
@pytest.mark.parametrize("ring", ["Z", "Z2", "Z7"])
def test_valid_schemes_hold_both_ways(monkeypatch, name, ring):
    scheme = lcma.resolve(name)[0].replace(ring=parse_ring(ring))
    dense, sparse = both(monkeypatch, scheme)
    assert dense == sparse
    assert sparse[0]


def test_batches_do_not_change_the_verdict(monkeypatch):
    scheme = lcma.resolve("strassen*strassen")[0]
    scaled = scheme.replace(ring=parse_ring("Z101"))
    monkeypatch.setattr(expansion, "_BATCH_TERMS", 3)
    monkeypatch.setattr(expansion, "MODULAR_ROWS", 2)
    for one in (scheme, scaled):
        dense, sparse = both(monkeypatch, one)
        assert dense == sparse
        assert sparse[0]


def test_a_block_that_no_product_uses_is_missed_by_neither(monkeypatch, strassen):
    u, v, w = (factor.dense.copy() for factor in strassen.factors)
    for array in (u, v, w):
        array[:, 0, 0] = 0
    dense, sparse = both(monkeypatch, Scheme.from_arrays(strassen.target, u, v, w))
    assert dense == sparse
    assert not sparse[0]


def power(scheme, exponent):
    result = scheme
    for _ in range(exponent - 1):
        result = lcma.tensor(result, scheme)
    return result


def test_the_fourth_tensor_power_is_worked_sparsely_and_one_change_is_found(strassen):
    scheme = power(strassen, 4)
    assert expansion.is_sparse(scheme)
    assert not expansion.is_sparse(lcma.resolve("laderman")[0])
    assert check_exact(scheme).ok
    w = scheme.w.values.copy()
    w[12345] += 1
    changed = type(scheme.w)(scheme.w.rows, scheme.w.cols, scheme.w.indptr, scheme.w.indices, w)
    outcome = check_exact(scheme.replace(w=changed))
    product = int(scheme.w.product[12345])
    support = [int(np.diff(factor.indptr)[product]) for factor in (scheme.u, scheme.v)]
    assert outcome.wrong == support[0] * support[1]
    assert divmod(int(scheme.w.indices[12345]), 16) == outcome.first.c


@pytest.mark.slow
def test_the_fifth_tensor_power_is_proven_in_one_process(strassen):
    import resource

    scheme = power(strassen, 5)
    assert (scheme.target.name, scheme.rank, scheme.ring) == ("32x32x32", 16807, Z)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = check_exact(scheme)
    assert outcome.ok
    assert outcome.equations == 1 << 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB: a dense check needs more


def test_scales_that_cancel_within_products_need_no_primes():
    spec = importlib.util.spec_from_file_location("make_rational", Path(__file__).parent / "make_rational.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    scheme = make.make(2)
    assert {factor.denominator for factor in scheme.factors} == {make.DENOMINATOR}
    assert make.DENOMINATOR > 1 << 40
    assert max(int(np.abs(factor.values).max()) for factor in scheme.factors) > 1 << 50
    outcome = check_exact(scheme)
    assert outcome.ok
    assert outcome.proof.primes == ()
    wrong = scheme.w.values.copy()
    wrong[5] += 1
    changed = Factor(4, 4, scheme.w.indptr, scheme.w.indices, wrong, scheme.w.denominator)
    failed = check_exact(scheme.replace(w=changed))
    assert not failed.ok
    assert failed.first.got - failed.first.wanted == _one_numerator(scheme, 5, failed.first)


def _one_numerator(scheme, at, first):
    """Return the change of an equation if the numerator of a nonzero of W grows by one."""
    r = int(scheme.w.product[at])
    u, v = (
        dict(factor.coefficients(r))[row * factor.cols + col]
        for factor, (row, col) in zip((scheme.u, scheme.v), (first.a, first.b), strict=True)
    )
    return u * v / scheme.w.denominator


def test_fractions_that_do_not_cancel_are_proven_modulo_primes():
    scheme = lcma.resolve("strassen")[0]
    scales = np.array([10**12 + 39, 11])  # of the rows of A, and so of C
    u = scheme.u.values * scales[scheme.u.indices // 2]
    common = int(scales.prod())
    w = scheme.w.values * (common // scales[scheme.w.indices // 2])
    first = Factor(2, 2, scheme.u.indptr, scheme.u.indices, u)
    third = Factor(2, 2, scheme.w.indptr, scheme.w.indices, w, common)
    outcome = check_exact(Scheme(scheme.target, first, scheme.v, third, Q))
    assert outcome.ok
    assert len(outcome.proof.primes) > 3
    w = w.copy()
    w[0] += 1
    third = Factor(2, 2, scheme.w.indptr, scheme.w.indices, w, common)
    assert not check_exact(Scheme(scheme.target, first, scheme.v, third, Q)).ok
