"""Every shipped scheme with single faults: rejected by all methods alike; the one wrong coefficient is found."""

from collections import Counter

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import lcma
from lcma.schemes_db import Q
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.verify import METHODS, check
from lcma.verify.expansion import term_count
from lcma.verify.nearest import nearest

from .faults_of_schemes import changed, faults

PAPERS = ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"]

MOST_FAULTS = 100
"""Faults of a scheme that are tried: all of up to some five products, 14,000 of all schemes together."""

BY_EVERY_METHOD = 1
"""Of them by every method: the symbolic proof of a scheme of 137 products takes 0.7 s."""

MOST_EXPANDED = 20_000
"""Terms of a scheme up to which its faults are tried by the symbolic proof, which takes seconds for each of more."""


@pytest.fixture(autouse=True)
def one_thread():
    """Limit BLAS to one thread: in several processes of tests its threads wait longer for each other than they work."""
    with threadpool_limits(1):
        yield


def assert_rejected(made, *methods):
    for fault in made:
        bad = fault()
        for method in methods:
            assert not check(bad, method).ok, (method, bad.digest)


@pytest.mark.parametrize("name", ["strassen", "winograd"])
def test_every_fault_of_a_small_scheme_is_rejected(name):
    assert_rejected(faults(shipped(name).scheme), "exact")


def test_some_faults_of_each_kind_are_rejected(representative):
    scheme = shipped(representative).scheme
    every, rng = list(faults(scheme)), np.random.default_rng(11)
    of_kind = {kind: [fault for fault in every if fault.func.__name__ == kind] for kind in ("changed", "swapped")}
    for some in of_kind.values():
        assert_rejected((some[i] for i in rng.choice(len(some), min(len(some), 8 + 800 // scheme.rank))), "exact")
    assert_rejected((fault for fault in every if fault.func.__name__ == "transposed"), "exact")
    assert_rejected((of_kind["changed"][i] for i in rng.choice(len(of_kind["changed"]), 8)), "randomized")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_fault_is_rejected_and_every_fifth_by_every_method(name):
    every = list(faults(shipped(name).scheme))
    assert_rejected(every, "exact")
    assert_rejected(every[::5], *METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_names() if name not in PAPERS])
def test_faults_are_rejected_and_some_by_every_method(name):
    scheme, rng = shipped(name).scheme, np.random.default_rng(5)
    every = list(faults(scheme))
    assert_rejected((every[i] for i in rng.permutation(len(every))[:MOST_FAULTS]), "exact")
    expanded = term_count(scheme) <= MOST_EXPANDED
    methods = [method for method in METHODS if method != "symbolic" or expanded]
    assert_rejected((every[i] for i in rng.choice(len(every), BY_EVERY_METHOD, replace=False)), *methods)


@pytest.mark.parametrize(("name", "transposed"), [("strassen", 3), ("eca-stage1", 2)])
def test_the_faults_are_counted(name, transposed):
    scheme = shipped(name).scheme
    counts = Counter(fault.func.__name__ for fault in faults(scheme))
    places = sum(np.count_nonzero(kinds) for kinds in scheme.target.kind_arrays)
    assert (counts["changed"], counts["transposed"]) == (2 * scheme.rank * places, transposed)
    assert scheme.rank < counts["swapped"] <= 3 * (scheme.rank - 1)
    assert changed(scheme, 0, 0, 0, 0) == scheme


@pytest.mark.parametrize("seed", range(8))
def test_one_changed_coefficient_is_named(seed):
    rng = np.random.default_rng(seed)
    scheme = lcma.resolve(("strassen", "laderman", "eca-stage2")[seed % 3])[0]
    slot = int(rng.integers(3))
    dense = scheme.factors[slot].dense
    r, i, j = rng.choice(np.argwhere(dense)).tolist()
    found = nearest(changed(scheme, slot, r, i * dense.shape[2] + j, 2))
    block, old = f"{'abc'[slot]}{i + 1}{j + 1}", dense[r, i, j]
    assert found == f"one coefficient from right: product {r + 1}, {block} should be {old}, not {old + 2}"


def test_over_z2_and_q_and_where_two_are_wrong(strassen):
    residues = changed(strassen.over_z2(), 1, 3, 0, 1)
    assert nearest(residues) == "one coefficient from right: product 4, b11 should be 1, not 0"
    halves = Scheme.from_arrays(strassen.target, *(f.dense for f in strassen.factors), Q, denominators=(2, 1, 1))
    assert nearest(halves) == ""
    assert nearest(changed(changed(strassen, 0, 0, 0, 1), 2, 6, 0, 1)) == ""
    assert nearest(strassen) == ""
