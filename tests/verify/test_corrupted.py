"""Every shipped scheme with single faults: rejected by all methods alike."""

from functools import partial
from itertools import product

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


def changed(scheme, slot, r, index, unit):
    """The scheme with the coefficient of a product at a place of the target changed by a unit."""
    factor = scheme.factors[slot]
    dense = factor.dense.copy()
    dense.reshape(scheme.rank, factor.blocks, -1)[r, index, 0] += unit
    return with_factor(scheme, slot, dense)


def swapped(scheme, slot, r):
    """The scheme with row r of a factor and the next one in each other's place."""
    dense = scheme.factors[slot].dense.copy()
    dense[[r, r + 1]] = dense[[r + 1, r]]
    return with_factor(scheme, slot, dense)


def transposed(scheme, slot):
    """The scheme with one factor indexed the other way."""
    return with_factor(scheme, slot, np.swapaxes(scheme.factors[slot].dense, 1, 2))


def single_changes(scheme):
    """One coefficient up or down by a unit, at every place that the target has; each made when it is called."""
    for slot, kinds in enumerate(scheme.target.kind_arrays):
        for r, index, unit in product(range(scheme.rank), np.flatnonzero(kinds), (-1, 1)):
            yield partial(changed, scheme, slot, r, index, unit)


def swapped_rows(scheme):
    """Two neighbouring, different rows of one factor in each other's place."""
    for slot, factor in enumerate(scheme.factors):
        dense = factor.dense
        for r in range(scheme.rank - 1):
            if (dense[r] != dense[r + 1]).any():
                yield partial(swapped, scheme, slot, r)


def transposed_factors(scheme):
    """One factor indexed the other way, where the target has the same blocks that way."""
    for slot, kinds in enumerate(scheme.target.kind_arrays):
        if kinds.shape[0] == kinds.shape[1] and ((kinds == 0) == (kinds == 0).T).all():
            yield partial(transposed, scheme, slot)


@pytest.fixture(autouse=True)
def one_thread():
    """Limit BLAS to one thread: in several processes of tests its threads wait longer for each other than they work."""
    with threadpool_limits(1):
        yield


def test_swapped_rows_and_transposed_factors_are_rejected(representative):
    scheme = shipped(representative).scheme
    rows, whole = list(swapped_rows(scheme)), list(transposed_factors(scheme))
    assert len(rows) + len(whole) >= scheme.rank
    for bad in (*rows[:: 1 + scheme.rank // 8], *whole):  # all of them: the slow tests below
        assert not check(bad(), "exact").ok


MOST_FAULTS = 300
"""Faults of a scheme that are tried: all of up to some nine products, 40,000 of all schemes together."""

BY_EVERY_METHOD = 3
"""Of them by every method: the symbolic proof of a scheme of 137 products takes 0.7 s."""

PAPERS = ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"]


def faults(name):
    scheme = shipped(name).scheme
    return [*single_changes(scheme), *swapped_rows(scheme), *transposed_factors(scheme)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_fault_is_rejected(name):
    """By the exact proof every fault, by the other methods every fifth."""
    for place, fault in enumerate(faults(name)):
        bad = fault()
        for method in METHODS if place % 5 == 0 else ("exact",):
            assert not check(bad, method).ok, (method, bad.digest)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_names() if name not in PAPERS])
def test_faults_are_rejected_and_some_by_every_method(name):
    every, rng = faults(name), np.random.default_rng(5)
    for i in rng.permutation(len(every))[:MOST_FAULTS]:
        bad = every[i]()
        assert not check(bad, "exact").ok, bad.digest
    for i in rng.choice(len(every), BY_EVERY_METHOD, replace=False):
        bad = every[i]()
        for method in METHODS:
            assert not check(bad, method).ok, (method, bad.digest)


def test_the_faults_are_counted(strassen):
    assert len(list(single_changes(strassen))) == 2 * 7 * 12
    assert len(list(transposed_factors(strassen))) == 3
    assert len(list(transposed_factors(lcma.resolve("eca-stage1")[0]))) == 2
