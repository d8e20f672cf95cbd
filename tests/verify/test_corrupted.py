"""Every shipped scheme with single faults: rejected by all methods alike."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import lcma
from lcma.schemes_db.factor import Factor
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.verify import METHODS, check

SLOTS = ("u", "v", "w")


def with_factor(scheme, slot, dense):
    factor = scheme.factors[slot]
    return scheme.replace(**{SLOTS[slot]: Factor.from_dense(dense, factor.denominator)})


def single_changes(scheme):
    """The scheme with one coefficient up or down by a unit, at every place that its target has."""
    for slot, kinds in enumerate(scheme.target.kind_arrays):
        factor = scheme.factors[slot]
        for r in range(scheme.rank):
            for index in np.flatnonzero(kinds):
                for unit in (-1, 1):
                    dense = factor.dense.copy()
                    place = dense.reshape(scheme.rank, factor.blocks, -1)[r, index]
                    place[0] += unit
                    yield with_factor(scheme, slot, dense)


def swapped_rows(scheme):
    """The scheme with two neighbouring, different rows of one factor in each other's place."""
    for slot, factor in enumerate(scheme.factors):
        for r in range(scheme.rank - 1):
            dense = factor.dense.copy()
            if (dense[r] != dense[r + 1]).any():
                dense[[r, r + 1]] = dense[[r + 1, r]]
                yield with_factor(scheme, slot, dense)


def transposed_factors(scheme):
    """The scheme with one factor indexed the other way, where the target has the same blocks that way."""
    for slot, (factor, kinds) in enumerate(zip(scheme.factors, scheme.target.kind_arrays, strict=True)):
        if kinds.shape[0] == kinds.shape[1] and ((kinds == 0) == (kinds == 0).T).all():
            yield with_factor(scheme, slot, np.swapaxes(factor.dense, 1, 2))


@pytest.fixture(autouse=True)
def one_thread():
    """Of BLAS: its threads, in several processes of tests at once, wait longer for each other than they work."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", shipped_names())
def test_swapped_rows_and_transposed_factors_are_rejected(name):
    scheme = shipped(name).scheme
    swapped, transposed = list(swapped_rows(scheme)), list(transposed_factors(scheme))
    assert len(swapped) + len(transposed) >= scheme.rank
    for bad in (*swapped[:: 1 + scheme.rank // 8], *transposed):  # all of them: the slow tests below
        assert not check(bad, "exact").ok


MOST_FAULTS = 4000
"""Faults of a scheme that are tried: all of up to some 50 products; 20,000 of a scheme of 105 take two minutes."""

PAPERS = ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"]


def faults(name):
    scheme = shipped(name).scheme
    return [*single_changes(scheme), *swapped_rows(scheme), *transposed_factors(scheme)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_fault_is_rejected_by_every_method(name):
    for bad in faults(name):
        for method in METHODS:
            assert not check(bad, method).ok, (method, bad.digest)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_names() if name not in PAPERS])
def test_faults_are_rejected_and_some_by_every_method(name):
    every, rng = faults(name), np.random.default_rng(5)
    for i in rng.permutation(len(every))[:MOST_FAULTS]:
        assert not check(every[i], "exact").ok, every[i].digest
    for i in rng.choice(len(every), 40, replace=False):
        for method in METHODS:
            assert not check(every[i], method).ok, (method, every[i].digest)


def test_the_faults_are_counted(strassen):
    assert len(list(single_changes(strassen))) == 2 * 7 * 12
    assert len(list(transposed_factors(strassen))) == 3
    assert len(list(transposed_factors(lcma.resolve("eca-stage1")[0]))) == 2
