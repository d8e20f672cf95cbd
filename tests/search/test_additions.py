"""Fewer additions: the lines compute the matrix, the transpose is right, the programs are the schemes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import lcma
from lcma.errors import PlanError
from lcma.schemes_db import Q, Scheme
from lcma.schemes_db.costs import additions as plain_additions
from lcma.schemes_db.straightline import program_of
from lcma.search import fewer_additions, fewest_additions, find, polished
from lcma.search.additions import LinearMap, _transposed
from lcma.search.polish import _flip
from lcma.verify import certify, check_program
from lcma.verify.program import scheme_of

matrices = st.tuples(st.integers(1, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-3, 3))
)


def matrix_of(lines):
    """The matrix that lines compute, by multiplying out."""
    values = list(np.eye(lines.inputs, dtype=np.int64))
    for line in lines.lines:
        values.append(sum(coefficient * values[source] for coefficient, source in line))
    zero = np.zeros(lines.inputs, dtype=np.int64)
    return np.array([coefficient * values[v] if v >= 0 else zero for coefficient, v in lines.outputs])


@given(matrices, st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_lines_compute_the_matrix_and_their_transpose_the_transposed_one(matrix, seed):
    one = LinearMap(matrix, seed, 0)
    one.improve(5)
    lines = one.lines()
    assert np.array_equal(matrix_of(lines), matrix)
    assert lines.additions == one.additions <= (np.maximum((matrix != 0).sum(axis=1) - 1, 0)).sum()
    assert np.array_equal(matrix_of(_transposed(lines)), matrix.T)


def test_tellegens_count():
    matrix = lcma.resolve("laderman")[0].u.dense.reshape(23, -1)
    one = LinearMap(matrix, 1, 0)
    one.improve(20)
    assert _transposed(one.lines()).additions == one.additions + 23 - 9


@pytest.mark.parametrize(("name", "most"), [("winograd", 15), ("strassen", 18), ("laderman", 62), ("eca-stage1", 200)])
def test_programs_are_the_schemes(name, most):
    scheme = lcma.resolve(name)[0]
    result = fewer_additions(scheme, runs=100)
    assert result.count <= min(most, program_of(scheme).additions)
    assert result.before == plain_additions(scheme)
    assert scheme_of(result.program) == scheme
    assert check_program(result.program).ok
    assert result.program == fewer_additions(scheme, runs=100).program


def test_two_levels_of_winograd_take_less_than_twice_the_sharing():
    assert fewer_additions(lcma.resolve("winograd*winograd")[0], runs=60).count <= 165


def test_denominators_move_to_the_stores(strassen):
    doubled = [factor.dense.astype(np.int64) for factor in strassen.factors]
    scheme = Scheme.from_arrays(strassen.target, 2 * doubled[0], doubled[1], doubled[2], Q, denominators=(2, 1, 1))
    certify(scheme)
    result = fewer_additions(scheme, runs=20)
    assert scheme_of(result.program) == scheme


def test_what_can_not_be_shared_is_refused(strassen):
    arrays_of = [factor.dense.astype(np.int64) for factor in strassen.factors]
    large = Scheme.from_arrays(strassen.target, 9 * arrays_of[0], *arrays_of[1:], Q, denominators=(9, 1, 1))
    with pytest.raises(PlanError, match="above 8"):
        fewer_additions(large)
    with pytest.raises(PlanError, match="no schemes"):
        fewest_additions([])


def test_the_best_of_a_pool():
    pool = [lcma.resolve(name)[0] for name in ("strassen", "winograd", "naive:2x2x2")]
    assert fewest_additions(pool, seconds=0.2).count == 4
    assert fewest_additions(pool[:2], seconds=0.2).scheme == pool[1]


def test_flips_keep_the_scheme_and_lower_the_additions():
    dense = max((one for one in find("3x3x3", rank=23, seed=2, count=8).schemes if one.ternary), key=plain_additions)
    before = fewer_additions(dense, runs=100)
    after = polished(dense, steps=1500, seed=3)
    assert after.rank == 23
    assert after.provenance.parents == (dense.digest,)
    certify(after)
    assert fewer_additions(after, runs=100).count < before.count
    with pytest.raises(PlanError, match="not ternary"):
        polished(dense.over_z2(), steps=1)


def test_flips_of_ternary_terms_keep_the_tensor():
    rng = np.random.default_rng(0)
    scheme = lcma.resolve("naive:3x3x3")[0]
    factors = [factor.dense.reshape(scheme.rank, -1).copy() for factor in scheme.factors]
    tensor = np.einsum("ra,rb,rc->abc", *factors)
    done = 0
    for _ in range(200):
        move = _flip(factors, rng)
        if move is None:
            continue
        for f, rows in move.items():
            factors[f] = rows
        assert np.array_equal(np.einsum("ra,rb,rc->abc", *factors), tensor)
        done += 1
    assert done > 50
