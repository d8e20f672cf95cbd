"""Products by factored matrices on a processor: every strategy against the definition, plans, transforms, operators."""

import itertools
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import kronecker
from lcma.kernels import Pool, decision_for, machine_for, strategies, tune
from lcma.kernels.block_low_rank import LowRank
from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern, matmul
from lcma.kernels.structured.cpu import ViewProduct
from lcma.workbench.bench.baselines.kronecker import by_bmm
from lcma.workbench.explanation import explanation

from ...refusal import refuses
from .products import LAYOUTS, LIMITS, check_product, given_to, widening_reason

REWRITTEN = ("strided", "widened", "dense")
STRATEGIES = [("cpu", "slabs"), *itertools.product(("cpu", "cuda"), REWRITTEN)]


@pytest.mark.parametrize(("device", "strategy"), STRATEGIES)
def test_every_strategy_is_the_product_by_definition(structure, device, strategy):
    """Those of a GPU on tensors of a processor; in every dtype and layout, products without columns in one dtype."""
    if strategy == "widened" and (reason := widening_reason(structure)):
        refuses(reason, decision_for, factored_request(structure, 7, device=device), strategy=strategy)
        return
    for dtype, layouts in itertools.product(list(LIMITS)[1:], itertools.product(LAYOUTS, LAYOUTS)):
        for n in (1, 300, 0) if dtype == "float32" else (1, 300):
            check_product(structure, n, strategy, dtype, layouts, device)


def test_x_may_have_any_leading_sizes_and_strides(structure, draw):
    matrix, x = FactoredMatrix.random(structure, dtype="float64"), draw((structure.cols, 6))
    np.testing.assert_allclose(structure.multiply_wide(matrix.factors, x), matrix.dense() @ x, atol=1e-12)
    for shape in ((7,), (0,), (2, 3), ()):
        x = draw((*shape, structure.cols))
        np.testing.assert_allclose(matmul(matrix, x), x @ matrix.dense().T, atol=1e-12)
    x = draw((3, 6, 2 * structure.cols))
    for scattered in (x[0, :, ::2], x[:, ::2, : structure.cols], np.asfortranarray(x[0])[:, ::-2]):
        np.testing.assert_allclose(matmul(matrix, scattered), scattered @ matrix.dense().T, atol=1e-12)
    assert matmul(matrix, draw((structure.cols, 0)), "bsl").shape == (structure.rows, 0)


SIDES = st.integers(1, 4)


@st.composite
def chains(draw):
    """Lists of two or three patterns that compose, chainable or not."""
    patterns = [Pattern(*(draw(SIDES) for _ in range(4)))]
    for _ in range(draw(st.integers(1, 2))):
        rows = patterns[-1].cols
        a = draw(st.sampled_from([one for one in range(1, rows + 1) if rows % one == 0]))
        d = draw(st.sampled_from([one for one in range(1, rows // a + 1) if rows // a % one == 0]))
        patterns.append(Pattern(a, rows // (a * d), draw(SIDES), d))
    return tuple(patterns)


@settings(max_examples=60, deadline=None)
@given(chains(), *map(st.sampled_from, (["strided", "slabs"], [LAYOUTS, LAYOUTS[::-1]], [1, 5])))
def test_any_chain_is_the_product_by_definition(patterns, strategy, layouts, n):
    check_product(KroneckerSparse(patterns), n, strategy, layouts=layouts, limit=1e-12)


def test_half_precision_is_computed_in_float32_and_rounded_once(structure, draw):
    matrix, x = FactoredMatrix.random(structure, dtype="float16"), draw((5, structure.cols), "float16")
    found, wide = matmul(matrix, x), matmul(matrix.astype("float32"), x.astype(np.float32))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wide.astype(np.float16))


def test_plans_are_explained_and_a_dense_matrix_is_within_the_callers_leave():
    request = factored_request(KroneckerSparse.of(kronecker.monarch(64, 64, 8)), 4096, "float32")
    decision = decision_for(request)
    assert decision.plan.candidate.family == "structured"
    assert decision.baseline.candidate.strategy == "strided"
    found = explanation(decision, strategies("cpu"))
    assert found["ratio"] is None or found["ratio"] > 0
    assert all(one.candidate.family == "structured" for one in decision.proposals)
    refused = {one["strategy"]: one["refused"] for one in found["considered"]}
    assert "allow it with max_extra_bytes" in refused["dense"]
    assert refused["slabs"] is None
    allowed = factored_request(KroneckerSparse.of(Pattern(1, 16, 16, 4)), 64, max_extra_bytes=12288)
    assert decision_for(allowed, strategy="dense").plan.candidate.strategy == "dense"


def test_an_aliased_result_is_written_last_whatever_the_threads(draw):
    matrix, x = FactoredMatrix.random(Pattern(2, 4, 4, 5), dtype="float64"), draw((40, 33))
    truth = matrix.dense() @ x
    request = factored_request(matrix.structure, 33, "float64", "bsl")
    decision_for(request, strategy="slabs").plan.build().run(matrix.factors, x, x)
    np.testing.assert_allclose(x, truth)
    matrix, x = FactoredMatrix.random(kronecker.monarch(24, 36, 3)), draw((36, 1000), "float32")
    core = ViewProduct(matrix.structure, 1000, "float32", False, True, 128)
    results = []
    for threads in (1, 3):
        out = np.full((1000, 24), np.nan, np.float32).T
        core.run(Pool(poison=True), threads, matrix.factors, x, out)
        results.append(out)
    np.testing.assert_array_equal(*results)


def test_wisdom_outranks_predictions(home):
    request = factored_request(KroneckerSparse.of(Pattern(2, 8, 8, 4)), 200)
    found = tune(request, rounds=2, top=3)
    assert {one.plan.candidate.family for one in found} == {"structured"}
    assert all(one.error < 1e-6 for one in found)
    decision = decision_for(request)
    assert decision.measured
    fastest = min(found, key=lambda one: one.seconds).plan.candidate
    assert decision.plan.candidate == fastest or decision.is_baseline
    other = factored_request(KroneckerSparse.of(Pattern(2, 8, 8, 5)), 200)
    assert machine_for(other).wisdom.record(other) is None


def test_the_bench_draws_operands_and_measures_the_error(structure):
    request, bench = factored_request(structure, 5), CpuBench()
    factors, x, out = bench.operands(request, 0)
    decision_for(request, strategy="strided").plan.build().run(factors, x, out)
    assert bench.errors(request, factors, x)(out) < 1e-5
    out += 1
    assert bench.errors(request, factors, x)(out) > 0.01


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_executor_refuses_what_it_was_not_planned_for(device):
    given = given_to(device)
    ones, pairs = (FactoredMatrix.random(one) for one in (Pattern(2, 4, 3, 5), LowRank(40, 30, 2)))
    one, pair = (
        decision_for(factored_request(matrix.structure, 8, order="bsl", device=device), strategy="strided").plan.build()
        for matrix in (ones, pairs)
    )
    weights, left, right = (given(weights.copy()) for matrix in (ones, pairs) for weights in matrix.factors)
    x, turned = (given(np.zeros((30, 8), np.float32, order)) for order in "CF")
    wide = given(ones.factors[0].astype(float))
    for executor, factors, operand, message in (
        (one, weights, x, "needs a list of 1 factors"),
        (one, [weights, weights], x, "needs a list of 1 factors"),
        (one, [wide], x, r"factor 1 is (torch\.)?float64"),
        (one, [weights], turned, "stored by columns; the plan is for rows: plan again"),
        (one, [weights], x[:, :5], r"the plan is for (torch\.)?float32 of shape"),
        (pair, [left], x, "a list of 2 factors"),
        (pair, [left, right.T], x, r"factor 2 has shape \(30, 2\)"),
    ):
        refuses(message, executor.run, factors, operand)
    if device == "cuda":
        refuses("not contiguous", one.run, [given(np.zeros((2, 5, 3, 4), np.float32)).mT], x)
        return
    frozen = np.zeros((40, 8), np.float32)
    frozen.flags.writeable = False
    refuses("read-only", one.run, [weights], x, frozen)
    refuses("out must be", matmul, ones, x, "bsl", out=np.zeros((8, 40), np.float32).T)


SMALL = 1 << 18
"""Bytes of Python objects that a call may take."""


def peak_of(call):
    """The most bytes that numpy and Python hold at a time during a call, beyond those before it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize(
    "patterns", [(Pattern(2, 64, 64, 4),), (Pattern(1, 32, 32, 16), Pattern(16, 32, 32, 1))], ids=["one", "two"]
)
def test_a_repeated_call_allocates_nothing_of_the_size_of_its_operands(layout, patterns):
    matrix = FactoredMatrix.random(patterns)
    features, batch = matrix.shape[0], 8192
    x = np.ones((batch, features) if layout == "bsf" else (features, batch), np.float32)
    out = np.empty_like(x)
    most = x.nbytes // 4

    def multiply():
        matmul(matrix, x, layout, out=out, strategy="slabs", max_workspace=most)

    multiply()  # compiles, and leaves buffers of `most` bytes or less with the pool
    assert peak_of(multiply) <= SMALL


def test_copies_would_be_seen():
    pattern = Pattern(2, 64, 64, 4)
    matrix, x = FactoredMatrix.random((pattern,)), np.ones((512, 8192), np.float32)
    assert peak_of(lambda: by_bmm(matrix.factors[0], pattern, x, np.empty_like(x))) > 2 * x.nbytes


ROUNDING = {"complex64": 1e-6, "complex128": 1e-14}


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("size", [2, 16, 24, 60, 256, 4096])
def test_it_is_the_transform(size, dtype):
    rng = np.random.default_rng(size)
    x = (rng.standard_normal((5, size)) + 1j * rng.standard_normal((5, size))).astype(dtype)
    transform = kronecker.dft(size, dtype)
    truth = np.fft.fft(x.astype(np.complex128))
    for found in (transform.apply(x), transform.apply(np.ascontiguousarray(x.T), "bsl").T):
        assert found.dtype == dtype
        assert np.linalg.norm(found - truth) <= ROUNDING[dtype] * np.linalg.norm(truth)


def test_the_factors_of_radix_2_are_the_square_dyadic_ones_and_sizes_fit():
    transform = kronecker.dft(32, radix=2)
    assert transform.matrix.patterns == kronecker.square_dyadic(32)
    assert len(kronecker.dft(4096).matrix.patterns) == 3
    full = kronecker.dft(12, "complex128").matrix.dense()[:, np.argsort(kronecker.dft(12).order)]
    np.testing.assert_allclose(full, np.fft.fft(np.eye(12)), atol=1e-13)
    refuses("of 8 points", kronecker.dft(8).apply, np.zeros((3, 4), np.complex64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_operator_is_the_matrix_and_its_adjoint(dtype):
    pytest.importorskip("scipy")
    matrix = FactoredMatrix.random(kronecker.monarch(24, 36, 3), dtype=dtype)
    operator, full = kronecker.linear_operator(matrix), matrix.dense()
    assert (operator.shape, operator.dtype) == (full.shape, full.dtype)
    rng, rtol = np.random.default_rng(0), 1e-4 if dtype == "float32" else 1e-12
    x, y = rng.standard_normal((36, 5)), rng.standard_normal((24, 5))
    for one in (x, x[:, 0], x[:, :1], x + 1j * x):
        np.testing.assert_allclose(operator @ one, full @ one, rtol, rtol)
    for one in (y, y[:, 0]):
        np.testing.assert_allclose(operator.H @ one, full.conj().T @ one, rtol, rtol)


def test_least_squares_by_scipy_solves():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix = FactoredMatrix.random(kronecker.Pattern(2, 12, 4, 3), dtype="float64")
    x = np.random.default_rng(0).standard_normal(24)
    found = linalg.lsmr(kronecker.linear_operator(matrix), matrix.dense() @ x, atol=1e-14, btol=1e-14, conlim=0)[0]
    np.testing.assert_allclose(found, x, rtol=1e-6, atol=1e-6)


def test_what_cannot_be_viewed_is_refused(monkeypatch):
    matrix = FactoredMatrix.random(kronecker.dense(4, 4), dtype="float16")
    if "scipy" in sys.modules:
        refuses("convert the matrix to float32", kronecker.linear_operator, matrix)
    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    refuses("pip install", kronecker.linear_operator, matrix)
