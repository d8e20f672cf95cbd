import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Z2, Q
from lcma.schemes_db.composition import best_composition, build
from lcma.schemes_db.constructions import change_of_basis, direct_sum, extend, project
from lcma.schemes_db.invariants import invariants, relation
from lcma.schemes_db.scheme import Scheme

KEPT = {(2, 2, 2): (7, "strassen"), (3, 3, 3): (23, "laderman")}


def named(name):
    return lcma.resolve(name)[0]


@pytest.mark.parametrize("axis", ["m", "k", "n"])
def test_direct_sums_add_sizes_and_ranks(axis):
    for first, second in (("strassen", "winograd"), ("laderman", "naive:3x3x3"), ("naive:2x3x4", "naive:2x3x4")):
        total = direct_sum(named(first), named(second), axis)
        assert total.rank == named(first).rank + named(second).rank
        position = "mkn".index(axis)
        assert total.target.shape[position] == 2 * named(first).target.shape[position]
        assert lcma.check(total).ok


def test_direct_sums_of_fractions_and_extensions_over_z2(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    thirds = Scheme.from_arrays(strassen.target, u * 3, v, w, Q, denominators=(1, 1, 3))
    for made, ring in ((direct_sum(strassen, thirds, "k"), Q), (extend(strassen.over_z2(), "k"), Z2)):
        assert made.ring is ring
        assert lcma.check(made).ok


@pytest.mark.parametrize("axis", ["m", "k", "n"])
@pytest.mark.parametrize("name", ["strassen", "laderman", "naive:3x2x2"])
def test_what_is_extended_can_be_projected_back(axis, name):
    scheme = named(name)
    longer = extend(scheme, axis, 2)
    assert lcma.check(longer).ok
    size = scheme.target.shape["mkn".index(axis)]
    back = project(project(longer, axis, size), axis, size)
    assert back == scheme
    if size > 1:
        shorter = project(scheme, axis, 0)
        assert lcma.check(shorter).ok
        assert shorter.rank < scheme.rank


def unimodular(rng, size):
    matrix = np.eye(size, dtype=np.int64)
    for _ in range(2 * size):
        i, j = rng.integers(size, size=2)
        if i != j:
            matrix[i] += int(rng.integers(-1, 2)) * matrix[j]
        elif rng.integers(2):
            matrix[i] *= -1
    return matrix


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["strassen", "laderman", "naive:2x3x1"]))
def test_another_basis_keeps_the_tensor_and_the_invariants(seed, name):
    rng = np.random.default_rng(seed)
    scheme = named(name)
    moved = change_of_basis(scheme, *(unimodular(rng, size) for size in scheme.target.shape))
    assert lcma.check(moved).ok
    assert invariants(moved) == invariants(scheme)
    assert invariants(lcma.rotate(moved)) == invariants(lcma.transpose(scheme)) == invariants(scheme)
    assert relation(scheme, moved) in ("identical", "same but for roles", "not told apart")


def test_compositions_of_all_small_sizes_are_valid():
    for m in range(1, 6):
        for k in range(1, 6):
            for n in range(1, 6):
                part = best_composition((m, k, n), KEPT)
                scheme = build(part, (m, k, n), named)
                assert (scheme.target.shape, scheme.rank) == ((m, k, n), part.rank)
                assert lcma.check(scheme).ok
