"""Products by schemes and einsum of any size, dtype, layout and batch, into `out`, and with prepared operands.

int8 products state the range of their entries, as wider integers may.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lcma
from lcma.errors import LcmaError
from lcma.kernels import Pool, Prepared, Request, matmul, plan_for
from lcma.kernels.codegen.programs import program_for
from lcma.kernels.cpu.leaf import DEPTH, Leaf
from lcma.kernels.cpu.stores import Slabs
from lcma.kernels.overflow import largest_allowed, reach
from lcma.kernels.plans import families
from lcma.schemes_db import Z2, Scheme, Target

from ..refusal import read_beside, refuses, refuses_with
from .cases import array, each

GENERAL = Target.general(2, 2, 2)


DTYPES = ["float32", "float64", "complex64", "complex128", "int32", "int64"]
SIDES = st.one_of(st.integers(0, 40), st.sampled_from([64, 65, 129, 200]))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(SIDES, SIDES, SIDES), st.sampled_from(DTYPES), st.integers(1, 2), st.data())
def test_products_of_any_size_and_strides_write_their_result_alone(strassen, draw, holds, sizes, dtype, levels, data):
    m, k, n = sizes
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))

    def stored(rows, cols):
        """A matrix in one of several layouts, and the memory that it is part of."""
        whole = draw((2 * rows + 2, 3 * cols + 3), dtype, rng)
        whole = np.asfortranarray(whole) if data.draw(st.booleans()) else whole
        layout = data.draw(st.sampled_from(["whole", "part", "steps", "reversed"]))
        inner = whole[1 : 1 + rows, 2 : 2 + cols]
        if layout in ("whole", "reversed"):
            inner = whole = inner.copy(order="K")
        return {"steps": whole[: 2 * rows : 2, : 3 * cols : 3], "reversed": inner[::-1]}.get(layout, inner), whole

    (a, _), (b, _), (out, memory) = stored(m, k), stored(k, n), stored(m, n)
    held, before = out.copy(), memory.copy()
    assert matmul(a, b, strassen, levels, out=out) is out
    holds(out, GENERAL, a, b)
    out[...] = held
    np.testing.assert_array_equal(memory, before)


@pytest.mark.parametrize(
    "leading", [((0,), ()), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((2, 3), (2, 3)), ((1,), (1,))]
)
def test_leading_sizes_broadcast(strassen, draw, leading):
    a, b = draw((*leading[0], 9, 10), "int64"), draw((*leading[1], 10, 8), "int64")
    expected = a @ b
    np.testing.assert_array_equal(matmul(a, b, strassen), expected)
    out = np.empty(expected.shape, np.int64)
    np.testing.assert_array_equal(matmul(a, b, strassen, out=out), expected)


@pytest.mark.parametrize("layout", ["part", "transposed", "batch"])
def test_out_may_overlap_an_operand(strassen, draw, layout):
    """Out that is an operand as it stands: test_out.py."""
    a, b = draw((3, 40, 40) if layout == "batch" else (40, 40), "int64"), draw((40, 40), "int64")
    whole = np.zeros((41, 40), np.int64)
    if layout == "part":
        whole[:40] = a
        a = whole[:40]
    a, out = {"part": (a, whole[1:]), "transposed": (a, a.T), "batch": (a[::-1], a)}[layout]
    expected = a @ b
    matmul(a, b, strassen, out=out)
    np.testing.assert_array_equal(out, expected)


def test_infinities_stay_and_integers_wrap_as_numpys(strassen):
    a, b = np.ones((4, 4)), np.ones((4, 4))
    a[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(matmul(a, b, strassen)[0]).any()
    rng = np.random.default_rng(9)
    a, b = rng.integers(-(2**63), 2**63 - 1, (2, 17, 17))
    for levels in (0, 2):
        np.testing.assert_array_equal(matmul(a, b, strassen, levels), a @ b)


def test_fractions_and_a_scheme_for_every_level(classical, draw, holds, strassen):
    scheme = classical("2x1x2", scale=3)
    a, b = draw((9, 9), "float64"), draw((9, 9), "float64")
    holds(matmul(a, b, scheme), GENERAL, a, b)
    refuses("int64 product needs a scheme over Z", matmul, a.astype(np.int64), b.astype(np.int64), scheme)
    a, b = draw((50, 47), "float64"), draw((47, 53), "float64")
    holds(matmul(a, b, [classical("1x2x3"), strassen, (classical("3x1x1"),)]), GENERAL, a, b)


def test_the_same_bits_in_every_run_and_thread(strassen, draw):
    a, b = draw((300, 200), "float32"), draw((200, 700), "float32")
    expected = matmul(a, b, strassen, 2)
    with ThreadPoolExecutor(4) as threads:
        for result in threads.map(lambda _: matmul(a, b, strassen, 2), range(12)):
            np.testing.assert_array_equal(result, expected)


@each("a, b", __file__, "numpys", a=array, b=array)
def test_what_has_no_plans_is_numpys_product(a, b):
    wanted = np.matmul(a, b)
    result = matmul(a, b)
    assert np.asarray(result).dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(matmul(a.tolist(), b.tolist()), np.matmul(a.tolist(), b.tolist()))
    if wanted.ndim:
        out = np.empty_like(wanted)
        assert matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, wanted)


def test_a_wrong_environment_or_scheme_is_refused(strassen, monkeypatch):
    a = np.ones((3, 3))
    factors = [factor.dense.copy() for factor in strassen.factors]
    monkeypatch.setenv("LCMA_NUM_THREADS", "many")
    refuses("LCMA_NUM_THREADS", matmul, a, a, strassen)
    monkeypatch.undo()
    refuses("a must be an array of numbers, not ndarray of shape", matmul, np.array(["x"]), np.array(["y"]))
    refuses("lift it to Z first", matmul, a, a, Scheme.from_arrays(GENERAL, *factors, Z2))
    factors[2][0, 0, 0] = 2
    refuses_with(lcma.VerificationError, "equations fail", matmul, a, a, Scheme.from_arrays(GENERAL, *factors))


def test_levels_without_a_scheme_are_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(families, "machine_for", lambda *_, **__: pytest.fail("measured"))
    refuses("levels is for a scheme that is named; name one", lcma.matmul, np.ones((8, 8)), np.ones((8, 8)), levels=2)


@pytest.mark.parametrize("scheme", ["auto", "strassen"])
def test_operands_of_another_byte_order_are_converted(scheme):
    a, b = (np.arange(16.0 * i).reshape(-1, 4).astype(np.float32) for i in (2, 1))
    for left, right in ((a.astype(">f4"), b), (a, b.astype(">f4")), (a.astype(">f4"), b.astype(">f4"))):
        found = lcma.matmul(left, right, scheme)
        assert found.dtype == np.float32
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, a @ b)
    np.testing.assert_array_equal(lcma.causal_qk(b.astype(">f4"), b), np.tril(b @ b.T))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("levels", [1, 2])
def test_many_products_with_one_operand(strassen, draw, order, levels):
    b = np.asarray(draw((37, 53), "float64"), order=order)
    expected = b.copy()
    prepared = Prepared(b, 40, strassen, levels)
    b[...] = np.nan  # it was copied
    assert prepared.nbytes > 0
    for rows in (40, 41, 100, 3):
        a = draw((rows, 37), "float64")
        np.testing.assert_allclose(a @ prepared, a @ expected, atol=1e-12)
        np.testing.assert_allclose(np.asfortranarray(a) @ prepared, a @ expected, atol=1e-12)
    out = np.empty((100, 53))
    assert matmul(np.ones((100, 37)), prepared, out=out) is out
    np.testing.assert_allclose(out, np.ones((100, 37)) @ expected, atol=1e-12)
    batch = draw((2, 30, 37), "float64")
    np.testing.assert_allclose(batch @ prepared, batch @ expected, atol=1e-12)


def test_the_sums_are_made_once(strassen, draw, no_rates, monkeypatch):
    prepared = Prepared(draw((30, 30), "float32"), 30, strassen)
    sides = []
    original = Slabs._sums
    monkeypatch.setattr(Slabs, "_sums", lambda self, side, *rest: sides.append(side) or original(self, side, *rest))
    draw((30, 30), "float32") @ prepared
    assert sides == [0]


def test_what_cannot_be_prepared_or_does_not_fit_is_refused(strassen):
    prepared = Prepared(np.ones((4, 4)), 4, strassen)
    refuses("inner sizes differ", lambda: np.ones((4, 5)) @ prepared)
    b = np.ones((8, 8))
    looped = plan_for(Request(8, 8, 8, "float64"), strassen, strategy="scheme:loop").build()
    refuses(r"use batch(ed)? or tasks", looped.prepare, b)
    vendor = plan_for(Request(8, 8, 8, "int8", max_abs=1), strategy="vendor").build()
    refuses("keeps no sums of B", vendor.prepare, b)
    executor = plan_for(Request(8, 8, 8, "float64"), strassen, strategy="scheme:batched").build()
    refuses("one contiguous matrix", executor.prepare, np.ones((2, 8, 8)))
    refuses("plan again", executor.run, np.ones((9, 8)), executor.prepare(b))


def test_an_executor_takes_its_prepared_operand_in_place_of_b(strassen, draw):
    a, b = draw((3, 30, 37), "float64"), draw((37, 53), "float64")
    executor = plan_for(Request.of(a, b), strassen, 2, strategy="scheme:batched").build()
    expected, prepared = executor.run(a, b), executor.prepare(b)
    assert prepared.nbytes > b.nbytes
    np.testing.assert_array_equal(executor.run(a, prepared), expected)
    # B itself is not read any more: its blocks overhang the grid, so that every sum is memory of its own.
    np.testing.assert_array_equal(executor.run(a, replace(prepared, b=np.full_like(b, np.nan))), expected)


LETTERS = "abcdefg"
EXAMPLES = read_beside(__file__, "einsum.json")


def operands(equation, seed=0, dots=(2, 3)):
    rng = np.random.default_rng(seed)
    sizes = {letter: int(size) for letter, size in zip("abcdefghijklmnopq", rng.integers(1, 5, 17), strict=True)}
    inputs = equation.partition("->")[0].replace("...", ".").split(",")
    shapes = [[size for c in one for size in (dots if c == "." else (sizes[c],))] for one in inputs]
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("equation", EXAMPLES)
@pytest.mark.parametrize("scheme", ["auto", "strassen"])
def test_the_result_is_numpys(equation, scheme):
    arrays = operands(equation)
    wanted = np.einsum(equation, *arrays)
    np.testing.assert_allclose(lcma.einsum(equation, *arrays, scheme=scheme), wanted, atol=1e-12)


@st.composite
def equations(draw):
    """Two or three operands of up to four labels each, and an output of some of them in any order."""
    inputs = draw(st.lists(st.lists(st.sampled_from(LETTERS), max_size=4), min_size=2, max_size=3))
    known = sorted({letter for labels in inputs for letter in labels})
    output = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
    sizes = {letter: draw(st.integers(0, 4)) for letter in known}
    ones = draw(st.sets(st.integers(0, 30), max_size=2))  # places that are of size 1, and repeated
    place = itertools.count()
    shapes = [
        [1 if next(place) in ones and labels.count(letter) == 1 else sizes[letter] for letter in labels]
        for labels in inputs
    ]
    return ",".join("".join(labels) for labels in inputs) + "->" + "".join(output), shapes


@settings(max_examples=150, deadline=None)
@given(equations(), st.sampled_from([np.int64, np.float32, np.complex128]))
def test_any_equation_gives_numpys_result(found, dtype):
    equation, shapes = found
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]  # exact in every dtype
    wanted = np.einsum(equation, *arrays)
    result = lcma.einsum(equation, *arrays)
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(result, wanted)


def test_tensors_have_torchs_results_and_gradients():
    torch = pytest.importorskip("torch")
    from .gradients import same_gradients

    for equation in EXAMPLES[:2] + EXAMPLES[3:6] + EXAMPLES[11:14] + EXAMPLES[16:17]:
        given = [torch.tensor(array, requires_grad=True) for array in operands(equation)]
        same_gradients(partial(lcma.einsum, equation, scheme="strassen"), partial(torch.einsum, equation), given)


def exactly(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) @ b.astype(np.int64)


def narrow(rng: np.random.Generator, shape: tuple[int, ...], largest: int) -> np.ndarray:
    """Entries at the ends of the range for the most part: there overflows show."""
    values = rng.integers(-largest, largest + 1, shape)
    return np.where(rng.random(shape) < 0.7, np.sign(values) * largest, values).astype(np.int8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(*[st.integers(0, 23)] * 3), st.sampled_from([(1, 63), (2, 31), (3, 15)]), st.data())
def test_products_at_the_end_of_the_range_are_exact(strassen, sizes, level_and_largest, data):
    (m, k, n), (levels, largest) = sizes, level_and_largest
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = narrow(rng, (m, k), largest), narrow(rng, (k, n), largest)
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
    a, b = narrow(rng, (3, 4, 2 * DEPTH + 5), 63), narrow(rng, (2 * DEPTH + 5, 6), 63)
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


def test_the_rule_is_that_of_the_coefficients(strassen):
    # a b = 3 (a b) - 2 (a b), the sums of B made of 2 b.
    factors = [[[1]], [[1]]], [[[1]], [[2]]], [[[3]], [[-1]]]
    program, scaled = program_for(strassen), Scheme.from_arrays(Target.general(1, 1, 1), *factors)
    assert [side.factor for side in reach(program)] == [2, 2]
    assert [side.factor for side in reach(program.nested({op.kind: program for op in program.products}))] == [4, 4]
    assert [(side.factor, side.summed) for side in reach(program_for(scaled))] == [(1, False), (2, True)]
    assert largest_allowed(program, Request(8, 8, 8, "int8", max_abs=1)) == 63
    # k L^2 of an element of C: 2^20 times 45^2 is less than 2^31, 2^20 times 46^2 is more.
    assert largest_allowed(program, Request(8, 1 << 20, 8, "int8", max_abs=1)) == 45
    assert largest_allowed(program, Request(8, 1 << 20, 8, "int32", max_abs=1)) == 45
    rng = np.random.default_rng(3)
    a, b = narrow(rng, (5, 7), 63), narrow(rng, (7, 4), 63)
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
    a, b = narrow(rng, (37, 29), 31), narrow(rng, (29, 41), 31)
    found = plan_for(Request.of(a, b, max_abs=31), strassen, 2)
    pool = Pool(poison=True)
    np.testing.assert_array_equal(build_with(found, pool).run(a, b), exactly(a, b))
    assert pool.high_water == found.workspace
