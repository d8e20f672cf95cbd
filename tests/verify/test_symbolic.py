import numpy as np
import pytest

import lcma
from lcma.schemes_db import Q
from lcma.schemes_db.algebra import naive, tensor
from lcma.schemes_db.ring import parse_ring
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shipped import shipped
from lcma.verify import METHODS, check
from lcma.verify.exact import check_exact
from lcma.verify.symbolic import check_symbolic

from .faults_of_schemes import changed

SMALL = ["1x1x1", "1x2x3", "2x2x2", "2x1x3", "2x2x2:tri-out", "2x2x3:tri-left", "2x2x2:tri-right:upper"]


def valid_scheme(rng):
    """A random scheme that holds: small parts composed, then scaled, permuted, and split in two products."""
    target = lcma.parse_target(str(rng.choice(SMALL)))
    general = target.is_general
    if general and target.shape == (2, 2, 2) and rng.integers(2):
        scheme = lcma.resolve(str(rng.choice(["strassen", "winograd"])))[0]
    else:
        scheme = naive(target)
    if general and scheme.rank < 7 and rng.integers(2):
        scheme = tensor(scheme, naive(lcma.parse_target("1x2x1")))
    for _ in range(int(rng.integers(3))):
        scheme = lcma.rotate(scheme) if rng.integers(2) else lcma.transpose(scheme)
    u, v, w = (factor.dense.copy() for factor in scheme.factors)
    order = rng.permutation(scheme.rank)
    signs = rng.choice([-1, 1], (2, scheme.rank, 1, 1))
    u, v, w = (u * signs[0])[order], (v * signs[1])[order], (w * signs[0] * signs[1])[order]
    # One product in two: u = x + (u - x) for an x of the same support.
    r = int(rng.integers(scheme.rank))
    part = np.where(u[r] != 0, rng.integers(-2, 3, u[r].shape), 0)
    u, v, w = np.concatenate([u, part[None]]), np.concatenate([v, v[r : r + 1]]), np.concatenate([w, w[r : r + 1]])
    u[r] -= part
    kind = int(rng.integers(4))
    if kind == 1:
        scale = int(rng.integers(2, 6))
        return Scheme.from_arrays(scheme.target, u * scale, v, w, Q, denominators=(scale, 1, 1))
    ring = (lcma.schemes_db.Z, None, parse_ring("Z2"), parse_ring("Z7"))[kind]
    return Scheme.from_arrays(scheme.target, u, v, w, ring)


def corrupted(rng, scheme):
    """The scheme with one coefficient of a product that matters changed by a unit."""
    alive = np.flatnonzero(np.all([np.diff(factor.indptr) > 0 for factor in scheme.factors], axis=0))
    slot = int(rng.integers(3))
    places = np.flatnonzero(scheme.target.kind_arrays[slot])
    return changed(scheme, slot, rng.choice(alive), rng.choice(places), int(rng.choice([-1, 1])))


@pytest.mark.parametrize(("seed", "count"), [(1, 25), pytest.param(2, 500, marks=pytest.mark.slow)])
def test_three_proofs_agree_on_valid_and_on_corrupted_schemes(seed, count):
    rng = np.random.default_rng(seed)
    assert set(METHODS) == {"exact", "randomized", "symbolic"}
    for _ in range(count):
        good = valid_scheme(rng)
        assert [check(good, method).ok for method in METHODS] == [True] * 3
        bad = corrupted(rng, good)
        outcomes = {method: check(bad, method) for method in METHODS}
        assert [outcome.ok for outcome in outcomes.values()] == [False] * 3
        exact, symbolic = outcomes["exact"], outcomes["symbolic"]
        assert (exact.wrong, exact.first, exact.holds_mod_2) == (symbolic.wrong, symbolic.first, symbolic.holds_mod_2)


@pytest.mark.parametrize("name", [
    "strassen", "laderman", "eca-stage1", "2x3x4-r20", "4x4x4-r47-mod2", "4x4x4-upper-upper-r19",
    pytest.param("2x7x9-r96", marks=pytest.mark.slow),
])  # fmt: skip
def test_shipped_schemes_are_proven_symbolically(name):
    scheme = shipped(name).scheme
    outcome = check_symbolic(scheme)
    assert outcome.ok
    assert outcome.proof.equations == scheme.target.equations


def test_gaussian_coefficients():
    target, ring = lcma.parse_target("1x1x1"), parse_ring("Q(i)")
    i, minus_i, one = [[[[0, 1]]]], [[[[0, -1]]]], [[[[1, 0]]]]
    assert check_symbolic(Scheme.from_arrays(target, i, minus_i, one, ring)).ok
    bad = Scheme.from_arrays(target, i, one, one, ring)
    outcome = check_symbolic(bad)
    assert (outcome.wrong, outcome.first) == (1, check_exact(bad).first)
    assert str(outcome.first) == "coefficient of A[1,1] B[1,1] in C[1,1] is i, wanted 1"


@pytest.mark.parametrize("by", [0, 1])
def test_sums_with_gaussian_coefficients(strassen, by):
    u, v, w = (np.stack([factor.dense, 0 * factor.dense], axis=-1) for factor in strassen.factors)
    turned = [np.stack([x[..., 0], sign * 2 * x[..., 0]], axis=-1) for x, sign in ((u, 1), (w, -1))]
    turned[1][6, 1, 1, 1] += by
    # (1 + 2i) (1 - 2i) = 5
    scheme = Scheme.from_arrays(strassen.target, turned[0], v, turned[1], parse_ring("Q(i)"), denominators=(5, 1, 1))
    symbolic, exact = check_symbolic(scheme), check_exact(scheme)
    assert symbolic.ok == exact.ok == (not by)
    assert (symbolic.wrong, symbolic.first) == (exact.wrong, exact.first)
