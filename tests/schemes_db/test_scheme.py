import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Q
from lcma.schemes_db.factor import Factor
from lcma.schemes_db.scheme import Scheme


def dense(scheme):
    return [factor.dense for factor in scheme.factors]


def test_a_factor_is_sparse_and_dense_alike():
    rng = np.random.default_rng(1)
    array = rng.integers(-1, 2, (5, 2, 3))
    factor = Factor.from_dense(array)
    assert (factor.dense == array).all()
    assert factor.nnz == np.count_nonzero(array)
    assert (factor.transposed().dense == array.transpose(0, 2, 1)).all()
    assert (factor.reversed().dense == array[:, ::-1, ::-1]).all()
    assert factor.transposed().transposed() == factor
    assert factor != 3
    with pytest.raises(ValueError, match="read-only"):
        factor.dense[0, 0, 0] = 7
    with pytest.raises(ValueError, match="read-only"):
        factor.values[0] = 7


def test_the_tensor_product_of_factors_is_the_kronecker_product():
    rng = np.random.default_rng(2)
    x, y = rng.integers(-2, 3, (3, 2, 3)), rng.integers(-2, 3, (2, 3, 1))
    product = Factor.from_dense(x).tensor(Factor.from_dense(y)).dense
    for r in range(3):
        for s in range(2):
            assert (product[r * 2 + s] == np.kron(x[r], y[s])).all()


def test_scheme_is_frozen_and_prints_itself(strassen):
    assert repr(strassen) == "<2x2x2:7 over Z>"
    assert strassen.rank == 7
    assert strassen.ternary
    with pytest.raises(AttributeError):
        strassen.name = "other"


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(7)), st.lists(st.sampled_from([-1, 1]), min_size=14, max_size=14))
def test_the_digest_forgets_order_and_signs(order, signs):
    scheme = lcma.resolve("strassen")[0]
    u, v, w = (array.copy() for array in dense(scheme))
    su, sv = np.array(signs[:7])[:, None, None], np.array(signs[7:])[:, None, None]
    moved = Scheme.from_arrays(scheme.target, (u * su)[order], (v * sv)[order], (w * su * sv)[order])
    assert moved.digest == scheme.digest
    assert moved == scheme
    assert hash(moved) == hash(scheme)


def test_the_digest_forgets_scale_and_ring_z_or_q(strassen):
    u, v, w = dense(strassen)
    scaled = Scheme.from_arrays(strassen.target, 2 * u, 3 * v, w, Q, denominators=(1, 1, 6))
    assert scaled.digest == strassen.digest
    halves = Scheme.from_arrays(strassen.target, 2 * u, v, w, Q, denominators=(2, 1, 1))
    assert halves.digest == strassen.digest


def test_the_digest_knows_everything_else(strassen):
    seen = {strassen.digest, strassen.over_z2().digest, lcma.resolve("winograd")[0].digest}
    u, v, w = dense(strassen)
    for factor in range(3):
        changed = [u.copy(), v.copy(), w.copy()]
        changed[factor][3, 1, 1] += 1
        seen.add(Scheme.from_arrays(strassen.target, *changed).digest)
    assert len(seen) == 6


def test_the_digest_is_pinned():
    # A change of the canonical form would orphan every certificate: it must be on purpose.
    one = Scheme.from_arrays(lcma.parse_target("1x1x1"), [[[-2]]], [[[3]]], [[[1]]])
    text = b"lcma-1 1x1x1 characteristic 0 rank 1 over 1\n1 1 0 1 0 1 0 -6"
    assert one.digest == hashlib.sha256(text).hexdigest()
