"""The products of a GPU on tensors of a processor: views, rewritten factors, baselines, plans, the Triton kernel."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from lcma import kronecker  # noqa: E402
from lcma.errors import PlanError  # noqa: E402
from lcma.kernels import decision_for, machine_for, strategies  # noqa: E402
from lcma.kernels.cuda.bench import CudaBench  # noqa: E402
from lcma.kernels.factored import factored_request  # noqa: E402
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern  # noqa: E402
from lcma.kernels.precision import fields_of  # noqa: E402
from lcma.kernels.request import Layout, Request  # noqa: E402
from lcma.kernels.structured import backward, cuda_costs  # noqa: E402
from lcma.kernels.structured.blocks import is_batch_first  # noqa: E402
from lcma.kernels.structured.outer import batch_parts, is_gathered, outer_blocks, outer_tensors  # noqa: E402
from lcma.kernels.structured.rewrites import REWRITES  # noqa: E402
from lcma.kernels.structured.tensors import is_readable  # noqa: E402
from lcma.kernels.structured.tiles import TILES, tile_choices, tile_of  # noqa: E402
from lcma.kernels.structured.views import multiply_strided  # noqa: E402

LISTS = {
    "d above a": (Pattern(2, 3, 4, 5),),
    "a above d": (Pattern(5, 3, 4, 2),),
    "d of 1": (Pattern(3, 5, 2, 1),),
    "monarch": kronecker.monarch(24, 36, 3),
    "butterfly": kronecker.square_dyadic(16),
}


def executor_for(request, strategy):
    return decision_for(request, strategy=strategy).plan.build()


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("strategy", ["strided", "widened", "dense"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_strategy_is_the_product_by_definition(name, strategy, dtype):
    structure = KroneckerSparse.of(LISTS[name])
    if strategy == "widened" and all(one.d == 1 for one in structure.patterns):
        with pytest.raises(PlanError, match="nothing is to be widened"):
            decision_for(factored_request(structure, 7, device="cuda"), strategy=strategy)
        return
    matrix, kind = FactoredMatrix.random(structure.patterns, dtype=dtype), getattr(torch, dtype)
    factors = [torch.from_numpy(weights) for weights in matrix.factors]
    full = torch.from_numpy(matrix.dense())
    layouts = (Layout.ROWS, Layout.COLUMNS)
    for first, last, n in itertools.product(layouts, layouts, (1, 6)):
        request = factored_request(structure, n, dtype, device="cuda", layouts=(first, last), max_extra_bytes=1 << 20)
        x = torch.randn(structure.cols, n, dtype=kind)
        given = x if first is Layout.ROWS else x.T.contiguous().T
        executor = executor_for(request, strategy)
        prepared = executor.prepare(factors)
        assert (prepared.nbytes > 0) == (strategy in REWRITES)
        for operand in (factors, prepared):
            found = executor.run(operand, given)
            torch.testing.assert_close(found, full @ x)
            assert n == 1 or found.stride() == ((n, 1) if last is Layout.ROWS else (1, structure.rows))
        out = torch.full((structure.rows, n), torch.nan, dtype=kind)
        out = out if last is Layout.ROWS else out.T.contiguous().T
        assert executor.run(factors, given, out) is out
        torch.testing.assert_close(out, full @ x)


class Recorder(TorchDispatchMode):
    """The operations of torch that run within its context."""

    def __init__(self):
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_views_are_written_in_place_and_nothing_is_copied():
    pattern = Pattern(2, 8, 4, 3)
    weights = torch.randn(pattern.parameter_shape)
    canvas = torch.full((pattern.rows, 60), torch.nan)
    x = torch.randn(pattern.cols, 80)[:, 10:60]
    out = canvas[:, 5:55]
    assert is_readable(x, pattern.d)
    assert is_readable(out, pattern.d)
    with Recorder() as recorder:
        multiply_strided(KroneckerSparse.of(pattern), [weights], x, out)
    assert recorder.seen.count("aten.bmm.out") == 2
    assert not [name for name in recorder.seen if "copy" in name or "clone" in name or "contiguous" in name]
    matrix = FactoredMatrix.of(pattern, weights.numpy())
    torch.testing.assert_close(out, torch.from_numpy(matrix.dense()) @ x, rtol=1e-4, atol=1e-5)
    assert torch.isnan(canvas[:, :5]).all()
    assert torch.isnan(canvas[:, 55:]).all()


def test_the_model_chooses_views_batch_last_and_says_why_not_dense():
    structure = KroneckerSparse.of(Pattern(1, 256, 256, 4))
    for dtype in ("float32", "float16", "bfloat16", "tf32", "float64"):
        decision = decision_for(factored_request(structure, 25088, **fields_of(dtype), order="bsl", device="cuda"))
        assert decision.plan.candidate.strategy == "strided", dtype
        assert decision.is_baseline
    with pytest.raises(PlanError, match="allow it with max_extra_bytes"):
        decision_for(factored_request(structure, 25088, device="cuda"), strategy="dense")


@pytest.mark.parametrize("sizes", [(1, 192, 48, 2), (1, 768, 192, 2), (1, 64, 256, 16), (3, 64, 64, 64)])
def test_predictions_of_an_h200_are_near_what_was_measured(sizes):
    """Strided products batch-last in float32, batch 25088, milliseconds measured on an H200."""
    measured = {(1, 192, 48, 2): 0.043, (1, 768, 192, 2): 0.363, (1, 64, 256, 16): 0.315, (3, 64, 64, 64): 1.207}
    request = factored_request(KroneckerSparse.of(Pattern(*sizes)), 25088, "float32", "bsl", device="cuda")
    plan = decision_for(request, strategy="strided").plan
    assert plan.seconds == pytest.approx(1e-3 * measured[sizes], rel=0.5)


MEASURED = [
    ((3, 64, 64, 64), "float32", {"strided": 3.973, "tiled, tile 1": 6.055, "widened": 47.71}),
    (
        (16, 64, 64, 64),
        "tf32x3",
        {"tiled, tile 0": 18.876, "tiled, tile 1": 22.276, "tiled, tile 2": 15.885},
    ),
    ((6, 64, 64, 1), "tf32x3", {"strided": 0.053, "tiled, tile 0": 0.037}),
    ((3, 64, 64, 64), "float16", {"tiled, tile 0": 1.962, "tiled, tile 2": 2.247, "widened": 2.898}),
    ((1, 256, 256, 4), "float16", {"strided": 0.161, "tiled, tile 0": 0.336, "widened": 0.075}),
    ((1, 64, 256, 1), "float16", {"strided": 0.034, "tiled, tile 1": 0.030}),
]
"""Milliseconds of candidates batch-first, batch 25088, measured on an H200 (torch 2.11, Triton 3.6), rounds in turn."""


@pytest.mark.parametrize(("sizes", "dtype", "milliseconds"), MEASURED)
def test_the_model_ranks_candidates_as_they_were_measured(sizes, dtype, milliseconds):
    request = factored_request(KroneckerSparse.of(Pattern(*sizes)), 25088, **fields_of(dtype), device="cuda")
    machine, predicted = machine_for(request), {}
    for strategy in strategies("cuda").values():
        for candidate in strategy.candidates(request) if strategy.family == "structured" else ():
            if str(candidate) in milliseconds:
                predicted[str(candidate)] = 1e3 * sum(x.seconds for x in strategy.predict(candidate, request, machine))
    assert predicted == pytest.approx(milliseconds, rel=0.3)
    assert milliseconds[min(predicted, key=predicted.get)] <= 1.03 * min(milliseconds.values())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_single_block_is_one_product_on_views(dtype):
    """Batch-last, an H200 took 0.95 of the permuted GEMM's time or less: its views cost more."""
    request = factored_request(KroneckerSparse.of(Pattern(1, 384, 384, 1)), 25088, dtype, "bsl", device="cuda")
    assert decision_for(request).plan.candidate.strategy in ("strided", "tiled")
    with Recorder() as recorder:
        single = KroneckerSparse.of(Pattern(1, 8, 4, 1))
        multiply_strided(single, [torch.randn(1, 1, 8, 4)], torch.randn(4, 9), torch.empty(8, 9))
    assert [name for name in recorder.seen if "mm" in name] == ["aten.mm.out"]


@pytest.mark.parametrize(
    ("sizes", "dtype", "milliseconds"),
    [
        ((3, 64, 64, 64), "bfloat16", {"transposed": 1.046, "widened": 2.894, "strided": 3.083}),
        ((32, 96, 96, 4), "float32", {"transposed": 3.292, "strided": 3.629, "widened": 4.902}),
        ((32, 96, 96, 4), "float16", {"transposed": 1.074, "widened": 0.411, "strided": 1.886}),
    ],
)
def test_transposed_products_are_priced_as_an_h200_ran_them(sizes, dtype, milliseconds):
    request = factored_request(KroneckerSparse.of(Pattern(*sizes)), 25088, **fields_of(dtype), device="cuda")
    predicted = {name: 1e3 * decision_for(request, strategy=name).seconds for name in milliseconds}
    assert predicted == pytest.approx(milliseconds, rel=0.3)
    assert decision_for(request).plan.candidate.strategy == min(milliseconds, key=milliseconds.get)


def test_slabs_between_transpositions_keep_to_a_bound_on_the_workspace(monkeypatch):
    request = factored_request(KroneckerSparse.of(Pattern(3, 64, 64, 64)), 25088, device="cuda", max_workspace=50 << 20)
    strategy, machine = strategies("cuda")["structured", "transposed"], machine_for(request)
    whole, bounded = strategy.candidates(request)
    assert strategy.workspace(bounded, request, machine) <= 50 << 20 < strategy.workspace(whole, request, machine)
    monkeypatch.setattr(cuda_costs, "TRANSPOSITION_SHARES", {})
    assert None in [stage.seconds for stage in strategy.predict(whole, request, machine)]


@pytest.mark.parametrize(
    ("sizes", "layout", "milliseconds"),
    [
        ([(1, 2, 2, 2048)], "bsl", {"gather": 0.236, "strided": 1.330}),
        ([(1, 8, 8, 128)], "bsf", {"gather": 0.104, "strided": 0.309}),
    ],
)
def test_small_blocks_are_gathered_as_an_h200_ran_them(sizes, layout, milliseconds):
    structure = KroneckerSparse.of([Pattern(*one) for one in sizes])
    request = factored_request(structure, 25088, "float32", layout, device="cuda")
    assert decision_for(request).plan.candidate.strategy == "gather"
    predicted = {name: 1e3 * decision_for(request, strategy=name).seconds for name in milliseconds}
    assert predicted["gather"] == pytest.approx(milliseconds["gather"], rel=0.45)
    assert min(predicted, key=predicted.get) == "gather"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_are_planned_and_tiles_refuse_them(dtype):
    """Batch-last by GEMMs on views, priced as real ones with as many multiplications."""
    structure = KroneckerSparse.of(Pattern(1, 64, 64, 16))
    request = factored_request(structure, 25088, dtype, "bsl", device="cuda")
    decision = decision_for(request)
    assert decision.plan.candidate.strategy == "strided"
    component = factored_request(structure, 25088, {"complex64": "float32"}.get(dtype, "float64"), "bsl", device="cuda")
    assert 1.8 * decision_for(component, strategy="strided").seconds < decision.seconds
    assert sum(stage.flops for stage in decision.plan.stages) == 8 * structure.parameters * 25088
    with pytest.raises(PlanError, match="tiles are of real numbers"):
        decision_for(request, strategy="tiled")
    with pytest.raises(PlanError, match="complex64 is not supported"):
        Request(8, 8, 8, "complex64", device="cuda")
    bench = CudaBench()
    a, b, c = bench.operands(factored_request(structure, 9, dtype, device="cuda"), 0, blank=True)
    assert {x.dtype for x in (*a, b, c)} == {getattr(torch, dtype)}


def test_the_error_of_complex_products_counts_both_parts():
    structure = KroneckerSparse.of(Pattern(2, 3, 4, 2))
    matrix = FactoredMatrix.random(structure.patterns, dtype="complex128")
    request = factored_request(structure, 5, "complex128", device="cuda")
    factors, x = [torch.from_numpy(matrix.factors[0])], torch.randn(16, 5, dtype=torch.complex128)
    product = torch.from_numpy(matrix.dense()) @ x
    assert CudaBench().errors(request, factors, x)(product) < 1e-14
    assert CudaBench().errors(request, factors, x)(product.conj()) > 0.1


def test_kernels_on_scalar_units_are_chosen_by_measured_rates_only(monkeypatch):
    """A chain of small blocks is bound by traffic: fused it is priced below the same factors gathered one by one."""
    structure = KroneckerSparse.of(kronecker.square_dyadic(16))
    for shares in (cuda_costs.GATHER_SHARES, cuda_costs.FUSED_SHARES):
        for dtype in tuple(shares):
            monkeypatch.delitem(shares, dtype)
    for dtype in ("float32", "complex64"):
        request = factored_request(structure, 1 << 20, dtype, "bsl", device="cuda")
        machine = machine_for(request)
        known = {name: strategies("cuda")["structured", name] for name in ("gather", "fused")}

        def stages(name, request=request, machine=machine, known=known):
            (candidate,) = known[name].candidates(request)
            return known[name].predict(candidate, request, machine)

        assert [len(stages(name)) for name in known] == [4, 2]
        assert {stage.seconds for name in known for stage in stages(name)} == {None}
        with monkeypatch.context() as patch:
            for shares in (cuda_costs.GATHER_SHARES, cuda_costs.FUSED_SHARES):
                patch.setitem(shares, dtype, (0.7, 0.3))
            seconds = {name: sum(stage.seconds for stage in stages(name)) for name in known}
            assert seconds["fused"] < 0.6 * seconds["gather"]
            assert decision_for(request, machine=machine).plan.candidate.strategy == "fused"
        assert decision_for(request, machine=machine).plan.candidate.strategy not in known


def test_more_columns_than_32_bits_count_are_planned():
    structure = KroneckerSparse.of(Pattern(1, 1024, 1024, 128))
    assert structure.cols * 25088 > 2**31
    assert decision_for(factored_request(structure, 25088, device="cuda")).plan.seconds > 0


def test_float32_may_be_three_products_of_tf32():
    """By our kernel, where it is fast enough; the vendor's products stay strict, and dense operands are refused."""
    structure = KroneckerSparse.of(Pattern(64, 64, 64, 1))
    split = decision_for(factored_request(structure, 25088, precision="fp32-accurate", device="cuda"))
    strict = decision_for(factored_request(structure, 25088, "float32", device="cuda"))
    assert split.plan.candidate.strategy == "tiled"
    assert split.seconds < strict.seconds
    assert split.baseline.seconds == strict.baseline.seconds
    a, b, _ = CudaBench().operands(split.request, 0, blank=True)
    assert {x.dtype for x in (*a, b)} == {torch.float32}
    with pytest.raises(PlanError, match="precision fp32-accurate is of products of floats on a GPU"):
        factored_request(structure, 8, precision="fp32-accurate")
    with pytest.raises(PlanError, match="dtype tf32x3 is not supported; it is the precision fp32-accurate of float32"):
        Request(8, 8, 8, "tf32x3", device="cuda")


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize(
    "sizes", [(1, 2, 2, 2048), (2, 48, 48, 4), (4, 128, 128, 16), (1, 512, 512, 4), (64, 64, 64, 1)]
)
def test_three_products_are_never_predicted_slower_than_strict_ones(sizes, layout):
    """Strict kernels meet the bound on the error of fp32-accurate: they are its candidates, at the same price."""
    structure = KroneckerSparse.of(Pattern(*sizes))
    strict, split = (
        decision_for(factored_request(structure, 25088, order=layout, device="cuda", precision=precision))
        for precision in (None, "fp32-accurate")
    )
    assert split.plan.seconds <= strict.plan.seconds
    if sizes[1] >= 128:
        assert split.plan.candidate.strategy == "split" or layout == "bsl"
    if sizes[1] == 2:
        assert split.plan.candidate.strategy == strict.plan.candidate.strategy == "gather"


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize("dtype", TILES)
def test_tiles_fit_their_patterns_and_have_distinct_names(dtype, layout):
    pattern, last = Pattern(2, 24, 40, 3), layout == "bsl"
    names = set()
    for choice in range(tile_choices(dtype, last)):
        tile = tile_of(dtype, pattern, choice)
        assert tile.p == 32
        assert tile.j == 1 if choice >= len(TILES[dtype][1]) else 1 < tile.j <= 4
        assert tile.padded(pattern) >= pattern.nonzeros
        assert tile.programs(pattern, 1000) == 2 * -(-24 // tile.p) * -(-3 // tile.j) * -(-1000 // tile.n)
        names.add(tile)
    strategy = strategies("cuda")["structured", "tiled"]
    request = factored_request(KroneckerSparse.of(pattern), 1000, order=layout, device="cuda", **fields_of(dtype))
    proposals = strategy.propose(request, machine_for(request))
    assert len({str(one.candidate) for one in proposals}) == len(proposals) == len(names)
    for one in proposals:
        assert strategy.restore("", one.candidate.parameters, request) == one.candidate
    for damaged in ((), (("slab", 1),), (("tile", "x"),), (("tile", -1),)):
        assert strategy.restore("", damaged, request) is None


def test_operands_of_a_bench_fit_the_request():
    structure = KroneckerSparse.of(LISTS["monarch"])
    a, b, c = CudaBench().operands(factored_request(structure, 9, "bfloat16", device="cuda"), 0, blank=True)
    assert [tuple(weights.shape) for weights in a] == [one.parameter_shape for one in structure.patterns]
    assert (b.shape, b.stride(), c.shape, c.stride()) == ((36, 9), (1, 36), (24, 9), (1, 24))
    assert {x.dtype for x in (*a, b, c)} == {torch.bfloat16}


def test_an_executor_refuses_what_it_was_not_planned_for():
    structure = KroneckerSparse.of(LISTS["d above a"])
    executor = executor_for(factored_request(structure, 8, order="bsl", device="cuda"), "strided")
    (weights,) = (torch.randn(one.parameter_shape) for one in structure.patterns)
    x = torch.randn(structure.cols, 8)
    with pytest.raises(PlanError, match="needs a list of 1 factors"):
        executor.run([weights, weights], x)
    with pytest.raises(PlanError, match=r"factor 1 is torch\.float64"):
        executor.run([weights.double()], x)
    with pytest.raises(PlanError, match="not contiguous"):
        executor.run([torch.randn(2, 5, 4, 3).mT], x)
    with pytest.raises(PlanError, match="the plan is for"):
        executor.run([weights], x[:, :5])
    with pytest.raises(PlanError, match="plan again"):
        executor.run([weights], x.T.contiguous().T)
    none = executor_for(factored_request(structure, 0, device="cuda"), "strided").run([weights], x[:, :0])
    assert none.shape == (30, 0)


@pytest.mark.parametrize(("a", "d"), [(2, 3), (3, 2), (6, 1), (1, 6)])
def test_sums_over_the_batch_are_those_of_arrays(a, d):
    grad, x = torch.randn(12, 500, dtype=torch.float64), torch.randn(24, 500, dtype=torch.float64)
    truth = torch.from_numpy(outer_blocks(grad.numpy(), x.numpy(), a, d))
    torch.testing.assert_close(outer_tensors(grad, x, a, d), truth)
    first = grad.T.contiguous().T, x.T.contiguous().T
    torch.testing.assert_close(outer_tensors(*first, a, d), truth)
    torch.testing.assert_close(outer_tensors(first[0], x, a, d), truth)
    scattered = torch.stack([x, x], 2)[..., 0], torch.stack([grad, grad], 2)[..., 0]
    torch.testing.assert_close(outer_tensors(scattered[1], scattered[0], 6, 1), outer_tensors(grad, x, 6, 1))


def test_gradients_of_the_parameters_copy_nothing_batch_last():
    with Recorder() as recorder:
        outer_tensors(torch.randn(12, 50), torch.randn(24, 50), 1, 6)
    assert recorder.seen.count("aten.bmm.out") == 1
    assert not [name for name in recorder.seen if "clone" in name or "contiguous" in name]


@pytest.mark.parametrize(("a", "d"), [(2, 3), (1, 6), (6, 1), (1, 1)])
def test_long_batches_are_divided_without_a_copy(a, d):
    """Where few blocks would leave a GPU idle, batch-last or with d = 1: parts of equal length, on views."""
    grad, x = torch.randn(12, 4096, dtype=torch.float64), torch.randn(24, 4096, dtype=torch.float64)
    parts = batch_parts(Pattern(a, 12 // (a * d), 24 // (a * d), d), 4096, 8)
    assert (parts > 1) == (a < 6)
    with Recorder() as recorder:
        found = outer_tensors(grad, x, a, d)
    assert recorder.seen.count("aten.bmm.out") == (a if parts > 1 else d)
    assert not [name for name in recorder.seen if "clone" in name or "contiguous" in name]
    torch.testing.assert_close(found, torch.from_numpy(outer_blocks(grad.numpy(), x.numpy(), a, d)))
    first = grad.T.contiguous().T, x.T.contiguous().T
    with Recorder() as recorder:
        torch.testing.assert_close(outer_tensors(*first, a, d), found)
    if d == 1:
        assert recorder.seen.count("aten.bmm.out") == (a if parts > 1 else 1)
        assert not [name for name in recorder.seen if "clone" in name or "contiguous" in name]
    halved = outer_tensors(grad.bfloat16(), x.bfloat16(), a, d)
    assert (halved.double() - found).norm() < 2e-2 * found.norm()


@pytest.mark.parametrize(("sizes", "n", "parts"), [((4, 128, 128, 16), 25088, 28), ((64, 64, 64, 1), 25088, 1)])
def test_parts_of_a_batch_are_equal_and_long(sizes, n, parts):
    assert batch_parts(Pattern(*sizes), n) == parts
    assert batch_parts(Pattern(*sizes), 1021) == 1


@pytest.mark.parametrize("gathered", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("pattern", [Pattern(2, 5, 4, 3), Pattern(1, 3, 2, 6), Pattern(4, 1, 7, 2)], ids=str)
def test_both_gradients_share_transposed_operands(pattern, dtype, gathered, monkeypatch):
    monkeypatch.setattr(backward, "is_gathered", lambda *_: gathered)
    weights = torch.randn(pattern.parameter_shape, dtype=dtype)
    grad, x = (torch.randn(9, size, dtype=dtype).T for size in (pattern.rows, pattern.cols))
    found = backward.transposed_gradients(grad, x, weights)
    truth = backward.naive_gradients(grad.numpy(), x.numpy(), weights.numpy())
    for mine, theirs in zip(found, truth, strict=True):
        torch.testing.assert_close(mine, torch.from_numpy(theirs))
    assert is_batch_first(found[0])


def test_blocks_are_gathered_where_they_fill_a_gpu():
    assert is_gathered(Pattern(64, 96, 96, 4), 25088, 4)
    assert is_gathered(Pattern(2, 384, 384, 16), 25088, 4)
    assert not is_gathered(Pattern(1, 48, 48, 4), 25088, 4)
    assert not is_gathered(Pattern(64, 96, 96, 1), 25088, 4)


def test_sums_of_halves_are_held_in_float32():
    grad, x = torch.randn(12, 500, dtype=torch.float64), torch.randn(24, 500, dtype=torch.float64)
    truth = torch.from_numpy(outer_blocks(grad.numpy(), x.numpy(), 2, 3))
    halved = outer_tensors(grad.bfloat16(), x.bfloat16(), 2, 3)
    assert halved.dtype == torch.bfloat16
    assert (halved.double() - truth).norm() < 2e-2 * truth.norm()
