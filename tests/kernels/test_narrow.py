"""int8 products where the range of the entries is stated; and the same statement for wider integers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcma.errors import LcmaError
from lcma.kernels import Pool, Request, matmul, plan_for
from lcma.kernels.codegen.programs import program_for
from lcma.kernels.cpu.leaf import DEPTH, Leaf
from lcma.kernels.overflow import largest_allowed, reach
from lcma.schemes_db import Scheme, Target

from ..refusal import refuses


def exactly(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) @ b.astype(np.int64)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], largest: int) -> np.ndarray:
    """Entries at the ends of the range for the most part: there overflows show."""
    values = rng.integers(-largest, largest + 1, shape)
    return np.where(rng.random(shape) < 0.7, np.sign(values) * largest, values).astype(np.int8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(*[st.integers(0, 23)] * 3), st.sampled_from([(1, 63), (2, 31), (3, 15)]), st.data())
def test_products_at_the_end_of_the_range_are_exact(strassen, sizes, level_and_largest, data):
    (m, k, n), (levels, largest) = sizes, level_and_largest
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = drawn(rng, (m, k), largest), drawn(rng, (k, n), largest)
    if data.draw(st.booleans()):
        a = np.asfortranarray(a)
    if data.draw(st.booleans()):
        b = b[::-1, ::-1]
    out = np.empty((n, m), np.int32).T if data.draw(st.booleans()) else None
    c = matmul(a, b, strassen, levels, out, max_abs=largest)
    assert c.dtype == np.int32
    assert out is None or c is out
    np.testing.assert_array_equal(c, exactly(a, b))


@pytest.mark.parametrize("levels", [0, None, 1])
def test_a_long_inner_size_and_a_batch(strassen, levels):
    rng = np.random.default_rng(levels)
    a, b = drawn(rng, (3, 4, 2 * DEPTH + 5), 63), drawn(rng, (2 * DEPTH + 5, 6), 63)
    scheme = "auto" if levels is None else strassen
    np.testing.assert_array_equal(matmul(a, b, scheme, levels, max_abs=63), exactly(a, b))


def test_int8_is_used_whole_and_blocks_that_leave_int32_come_back():
    a = np.full((3, DEPTH + 1), -128, np.int8)
    np.testing.assert_array_equal(matmul(a, a.T, max_abs=128), exactly(a, a.T))
    # An element of H may be larger than any of C: it overflows, and so does what takes it away again.
    leaf, pool = Leaf((1, 1 << 18, 1), "int8"), Pool()
    a = np.full((1, 1 << 18), 127, np.int8)
    out = np.zeros((1, 1), np.int32)
    with pool.take(leaf.workspace(1)) as arena:
        leaf.run(a, a.T, out, arena)
    assert int(out[0, 0]) == (127 * 127 * (1 << 18) + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.fixture
def scaled() -> Scheme:
    """<1,1,1;2> with coefficients 3 and 1: a b = 3 (a b) - 2 (a b), the sums of B made of 2 b."""
    one = [[[1]], [[1]]]
    return Scheme.from_arrays(Target.general(1, 1, 1), one, [[[1]], [[2]]], [[[3]], [[-1]]], name="scaled")


def test_the_rule_is_that_of_the_coefficients(strassen, scaled):
    program = program_for(strassen)
    assert [side.factor for side in reach(program)] == [2, 2]
    assert [side.factor for side in reach(program.nested({op.kind: program for op in program.products}))] == [4, 4]
    assert [(side.factor, side.summed) for side in reach(program_for(scaled))] == [(1, False), (2, True)]
    assert largest_allowed(program, Request(8, 8, 8, "int8", max_abs=1)) == 63
    # k L^2 of an element of C: 2^20 times 45^2 is less than 2^31, 2^20 times 46^2 is more.
    assert largest_allowed(program, Request(8, 1 << 20, 8, "int8", max_abs=1)) == 45
    assert largest_allowed(program, Request(8, 1 << 20, 8, "int32", max_abs=1)) == 45
    rng = np.random.default_rng(3)
    a, b = drawn(rng, (5, 7), 63), drawn(rng, (7, 4), 63)
    np.testing.assert_array_equal(matmul(a, b, scaled, max_abs=63), exactly(a, b))
    refuses(": 63 is the largest", matmul, a, b, scaled, max_abs=64)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_wider_integers_are_bounded_by_c_alone(strassen, dtype):
    most = {"int32": 2**15, "int64": 2**31}[dtype] - 1  # k = 2
    a = np.full((2, 2), most, dtype)
    executor = plan_for(Request.of(a, -a, max_abs=most), strassen, strategy="scheme:batched").build()
    np.testing.assert_array_equal(executor.run(a, -a), a @ -a)
    refuses(f"{most} is the largest", matmul, a, a, strassen, max_abs=most + 1)


def test_a_refusal_is_of_every_strategys_reasons_the_one_that_matters(strassen):
    a = np.full((4, 4), -30, np.int8)
    for limits in ({}, {"max_abs": 64}, {"max_abs": 29}):
        with pytest.raises(LcmaError, match=r"magnitude|entries up to") as caught:
            matmul(a, a, strassen, 1, **limits)
        assert "mask" not in str(caught.value)


def test_workspace_is_exact(strassen, build_with):
    rng = np.random.default_rng(2)
    a, b = drawn(rng, (37, 29), 31), drawn(rng, (29, 41), 31)
    found = plan_for(Request.of(a, b, max_abs=31), strassen, 2)
    pool = Pool(poison=True)
    np.testing.assert_array_equal(build_with(found, pool).run(a, b), exactly(a, b))
    assert pool.high_water == found.workspace
