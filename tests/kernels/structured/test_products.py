"""Products by Kronecker-sparse matrices on a processor: every strategy against the definition, plans, bad input."""

import itertools

import numpy as np
import pytest

from lcma import kronecker
from lcma.errors import PlanError
from lcma.kernels import decision_for, machine_for, strategies, tune
from lcma.kernels.factored import factored_request
from lcma.kernels.planning.explain import explanation
from lcma.kernels.request import Layout
from lcma.kernels.structured.matrix import FactoredMatrix
from lcma.kernels.structured.naive import dense_product
from lcma.kernels.structured.pattern import Pattern
from lcma.kernels.structured.rewrites import REWRITES, rewritten, rewritten_chain
from lcma.kernels.structured.slabs import ViewProduct

LISTS = {
    "one factor": (Pattern(2, 3, 4, 5),),
    "d of 1": (Pattern(3, 5, 2, 1),),
    "monarch": kronecker.monarch(24, 36, 3),
    "butterfly": kronecker.square_dyadic(32),
    "not chainable": (Pattern(1, 8, 8, 3), Pattern(6, 4, 16, 1)),
}
LIMITS = {"float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
STRATEGIES = ("strided", "slabs", "widened", "dense")
RNG = np.random.default_rng(0)


def drawn(shape, dtype):
    values = RNG.standard_normal(shape)
    return (values + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_the_product_by_definition(name, strategy):
    patterns = LISTS[name]
    for dtype, layout, batch in itertools.product(LIMITS, ("bsf", "bsl"), (1, 7, 300)):
        matrix = FactoredMatrix.random(patterns, dtype=dtype)
        x = drawn((batch, matrix.shape[1]) if layout == "bsf" else (matrix.shape[1], batch), dtype)
        canvas = np.full((x.shape[0] + 2, matrix.shape[0]) if layout == "bsf" else (matrix.shape[0] + 2, batch), np.nan)
        canvas = canvas.astype(dtype)
        out = canvas[1:-1]
        full = matrix.dense().astype("complex128" if dtype.startswith("complex") else "float64")
        truth = x @ full.T if layout == "bsf" else full @ x
        if strategy == "widened" and all(pattern.d == 1 for pattern in patterns):
            with pytest.raises(PlanError, match="nothing is to be widened"):
                kronecker.matmul(matrix, x, layout, strategy=strategy)
            continue
        assert kronecker.matmul(matrix, x, layout, out=out, strategy=strategy, max_extra_bytes=1 << 20) is out
        assert np.linalg.norm(out - truth) <= LIMITS[dtype] * np.linalg.norm(truth)
        assert np.isnan(canvas[[0, -1]]).all()


def test_the_planner_chooses_whatever_the_layout_and_explains_it():
    matrix = FactoredMatrix.random(kronecker.monarch(64, 64, 8), dtype="float64")
    x = drawn((3, 50, 64), "float64")
    truth = x @ matrix.dense().T
    np.testing.assert_allclose(kronecker.matmul(matrix, x), truth)
    np.testing.assert_allclose(kronecker.matmul(matrix, x[:, ::2, :]), truth[:, ::2])
    scattered = np.asfortranarray(x[0])[:, ::-1][:, ::-1]
    np.testing.assert_allclose(kronecker.matmul(matrix, scattered), truth[0])
    np.testing.assert_allclose(kronecker.matmul(matrix, x[0, 0]), truth[0, 0])
    np.testing.assert_allclose(kronecker.matmul(matrix, np.ascontiguousarray(x[0].T), "bsl"), truth[0].T)
    decision = decision_for(factored_request(matrix.structure, 4096, "float32"))
    assert decision.plan.candidate.family == "structured"
    assert decision.baseline.candidate.strategy == "strided"
    found = explanation(decision, strategies("cpu"))
    assert found.ratio is None or found.ratio > 0
    assert all(one.candidate.family == "structured" for one in found.considered)
    refused = {one.candidate.strategy: one.refused for one in found.considered}
    assert "allow it with max_extra_bytes" in refused["dense"]
    assert refused["slabs"] is None


def test_mixed_layouts_and_prepared_factors_run():
    structure = kronecker.KroneckerSparse.of(Pattern(2, 3, 4, 5))
    matrix = FactoredMatrix.random(structure.patterns, dtype="float64")
    x = drawn((40, 64), "float64")
    layouts = (Layout.ROWS, Layout.COLUMNS)
    for first, last in itertools.product(layouts, layouts):
        request = factored_request(structure, 64, "float64", layouts=(first, last), max_extra_bytes=1 << 20)
        given = x if first is Layout.ROWS else np.asfortranarray(x)
        for strategy in STRATEGIES:
            executor = decision_for(request, strategy=strategy).plan.build()
            prepared = executor.prepare(matrix.factors)
            assert (prepared.nbytes > 0) == (strategy in REWRITES)
            for factors in (matrix.factors, prepared):
                result = executor.run(factors, given)
                np.testing.assert_allclose(result, matrix.dense() @ x)
                assert result.flags.f_contiguous == (last is Layout.COLUMNS)


def test_an_aliased_result_is_written_last():
    matrix = FactoredMatrix.random(Pattern(2, 4, 4, 5), dtype="float64")
    x = drawn((40, 33), "float64")
    truth = matrix.dense() @ x
    request = factored_request(matrix.structure, 33, "float64", "bsl")
    decision_for(request, strategy="slabs").plan.build().run(matrix.factors, x, x)
    np.testing.assert_allclose(x, truth)


def test_an_empty_batch_is_an_empty_result():
    matrix = FactoredMatrix.random(Pattern(2, 4, 3, 5))
    assert kronecker.matmul(matrix, np.zeros((0, 30), np.float32)).shape == (0, 40)
    assert kronecker.matmul(matrix, np.zeros((30, 0), np.float32), "bsl").shape == (40, 0)


@pytest.mark.parametrize("rewrite", ["widened", "dense"])
@pytest.mark.parametrize("name", LISTS)
def test_rewritten_factors_are_the_same_matrix(name, rewrite):
    patterns = LISTS[name]
    matrix = FactoredMatrix.random(patterns, dtype="float64")
    found = rewritten(matrix.factors, matrix.structure, rewrite)
    np.testing.assert_allclose(
        dense_product(found, rewritten_chain(matrix.structure, rewrite).patterns), matrix.dense()
    )


def test_a_plan_does_not_depend_on_the_threads():
    patterns, x = kronecker.monarch(24, 36, 3), drawn((36, 1000), "float32")
    matrix = FactoredMatrix.random(patterns)
    core = ViewProduct(matrix.structure, 1000, "float32", False, True, 128)
    results = []
    from lcma.kernels.cpu.workspace import Pool

    for threads in (1, 3):
        pool = Pool(poison=True)
        out = np.full((1000, 24), np.nan, np.float32).T
        with pool.take(core.workspace(threads)) as arena:
            core.run(matrix.factors, x, out, arena, threads)
        results.append(out)
    np.testing.assert_array_equal(*results)


def test_dense_needs_the_callers_leave():
    structure = kronecker.KroneckerSparse.of(Pattern(1, 16, 16, 4))
    request = factored_request(structure, 64)
    with pytest.raises(PlanError, match="takes 12288 bytes more than the factors; allow it with max_extra_bytes"):
        decision_for(request, strategy="dense")
    allowed = factored_request(structure, 64, max_extra_bytes=12288)
    assert decision_for(allowed, strategy="dense").plan.candidate.strategy == "dense"
    with pytest.raises(PlanError, match="at least 0"):
        factored_request(structure, 64, max_extra_bytes=-1)


def test_wisdom_outranks_predictions(home):
    request = factored_request(kronecker.KroneckerSparse.of(Pattern(2, 8, 8, 4)), 200)
    found = tune(request, rounds=2, top=3)
    assert {one.plan.candidate.family for one in found} == {"structured"}
    assert all(one.error < 1e-6 for one in found)
    decision = decision_for(request)
    assert decision.measured
    fastest = min(found, key=lambda one: one.seconds).plan.candidate
    assert decision.plan.candidate == fastest or decision.is_baseline
    other = factored_request(kronecker.KroneckerSparse.of(Pattern(2, 8, 8, 5)), 200)
    assert machine_for(other).wisdom.near(other) is None


@pytest.mark.parametrize(
    ("x", "layout", "message"),
    [
        (np.zeros((5, 29), np.float32), "bsf", r"must have shape \(..., 30\)"),
        (np.zeros((30, 5), np.float32), "bsf", 'pass layout="bsl"'),
        (np.zeros((5, 30), np.float32), "bsl", 'pass layout="bsf"'),
        (np.zeros((30, 5), np.float64), "bsl", "x is float64 and the matrix float32"),
        (np.zeros((30, 5), np.float32), "nchw", "layout must be"),
    ],
)
def test_operands_that_do_not_fit_are_refused(x, layout, message):
    with pytest.raises(PlanError, match=message):
        kronecker.matmul(FactoredMatrix.random(Pattern(2, 4, 3, 5)), x, layout)


def test_an_executor_refuses_what_it_was_not_planned_for():
    matrix = FactoredMatrix.random(Pattern(2, 4, 3, 5))
    executor = decision_for(factored_request(matrix.structure, 8, order="bsl"), strategy="slabs").plan.build()
    x = np.zeros((30, 8), np.float32)
    with pytest.raises(PlanError, match="needs a list of 1 factors"):
        executor.run(matrix.factors[0], x)
    with pytest.raises(PlanError, match="factor 1 is float64"):
        executor.run([matrix.factors[0].astype(float)], x)
    with pytest.raises(PlanError, match="stored by columns; the plan is for rows"):
        executor.run(matrix.factors, np.asfortranarray(x))
    with pytest.raises(PlanError, match="the plan is for float32 of shape"):
        executor.run(matrix.factors, x[:, :5])
    frozen = np.zeros((40, 8), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(PlanError, match="read-only"):
        executor.run(matrix.factors, x, frozen)
    with pytest.raises(PlanError, match="out must be"):
        kronecker.matmul(matrix, x, "bsl", out=np.zeros((8, 40), np.float32).T)
