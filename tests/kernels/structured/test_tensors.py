"""The products of a GPU on tensors of a processor: views, rewritten factors, gradients; beyond 2^31 on one."""

import pytest
import torch

from lcma.kernels import decision_for
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.cuda.bench import CudaBench
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern, monarch, square_dyadic
from lcma.kernels.structured import outer
from lcma.kernels.structured.blocks import apply_transposed, is_batch_first
from lcma.kernels.structured.outer import batch_parts, is_gathered, outer_blocks, outer_tensors
from lcma.kernels.structured.tiles import is_readable
from lcma.kernels.structured.views import BlockRows, by_blocks, ends_of, natural, steps_of, view_chain
from lcma.kernels.torch.structured_products import _Repeat

from ..cases import STRUCTURE, each


def multiply_strided(structure, factors, x, out):
    """out (rows, n) = W x by the strided product, each batch-first or batch-last."""
    view_chain(structure, *ends_of(structure, x.shape[1], is_batch_first(x), is_batch_first(out))).run(factors, x, out)


def test_batch_first_products_on_views_are_gemms_and_nothing_else(block_structure, recorder):
    """Interleaved outputs lie d apart in a batch-first result, and are permuted within its columns by one copy."""
    structure = block_structure
    factors = [torch.from_numpy(weights) for weights in FactoredMatrix.random(structure).factors]
    x, out = torch.randn(16, structure.cols).T, torch.empty(16, structure.rows).T
    with recorder() as seen:
        multiply_strided(structure, factors, x, out)
    assert len([name for name in seen.seen if name.split(".")[1] in ("mm", "bmm")]) == len(structure.factor_shapes)
    assert len(seen.copies) == (not structure.is_blocked and structure.patterns[0].d > 1)


def test_views_are_written_in_place_and_nothing_is_copied(recorder):
    pattern = Pattern(2, 8, 4, 3)
    weights = torch.randn(pattern.parameter_shape)
    canvas = torch.full((pattern.rows, 60), torch.nan)
    x = torch.randn(pattern.cols, 80)[:, 10:60]
    out = canvas[:, 5:55]
    assert is_readable(x, pattern.d)
    assert is_readable(out, pattern.d)
    with recorder() as seen:
        multiply_strided(KroneckerSparse.of(pattern), [weights], x, out)
    assert seen.seen.count("aten.bmm.out") == 2
    assert not seen.copies
    matrix = FactoredMatrix.of(pattern, weights.numpy())
    torch.testing.assert_close(out, torch.from_numpy(matrix.dense()) @ x, rtol=1e-4, atol=1e-5)
    assert torch.isnan(canvas[:, :5]).all()
    assert torch.isnan(canvas[:, 55:]).all()


@pytest.mark.parametrize(("pattern", "copies"), [((3, 8, 4, 5), 2), ((1, 8, 4, 5), 0), ((5, 8, 4, 1), 0)])
def test_one_column_is_one_batch_that_the_vendor_reads_and_writes_in_place(pattern, copies, recorder):
    """Its columns have a stride of 1, or torch would copy it; blocks that no view has are gathered and scattered."""
    matrix = FactoredMatrix.random(KroneckerSparse.of(Pattern(*pattern)))
    x, out = torch.randn(1, matrix.structure.cols).T, torch.empty(matrix.structure.rows, 1)
    with recorder() as seen:
        multiply_strided(matrix.structure, [torch.from_numpy(one) for one in matrix.factors], x, out)
    assert (seen.seen.count("aten.bmm.out"), len(seen.copies)) == (1, copies)
    assert steps_of(matrix.structure)[0].source.view(x).stride(-1) == 1
    torch.testing.assert_close(out, torch.from_numpy(matrix.dense()) @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_single_block_is_one_product_on_views(dtype, recorder):
    """Batch-last, an H200 took 0.95 of the permuted GEMM's time or less: its views cost more."""
    request = factored_request(KroneckerSparse.of(Pattern(1, 384, 384, 1)), 25088, dtype, "bsl", device="cuda")
    assert decision_for(request).plan.candidate.strategy in ("strided", "tiled")
    with recorder() as seen:
        single = KroneckerSparse.of(Pattern(1, 8, 4, 1))
        multiply_strided(single, [torch.randn(1, 1, 8, 4)], torch.randn(4, 9), torch.empty(8, 9))
    assert [name for name in seen.seen if "mm" in name] == ["aten.mm.out"]


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
    bench = CudaBench()
    a, b, c = bench.operands(factored_request(structure, 9, dtype, device="cuda"), 0, blank=True)
    assert {x.dtype for x in (*a, b, c)} == {getattr(torch, dtype)}


def test_the_bench_draws_operands_of_the_request_and_counts_errors_of_both_parts():
    structure = KroneckerSparse.of(Pattern(2, 3, 4, 2))
    matrix = FactoredMatrix.random(structure.patterns, dtype="complex128")
    request = factored_request(structure, 5, "complex128", device="cuda")
    factors, x = [torch.from_numpy(matrix.factors[0])], torch.randn(16, 5, dtype=torch.complex128)
    product = torch.from_numpy(matrix.dense()) @ x
    assert CudaBench().errors(request, factors, x)(product) < 1e-14
    assert CudaBench().errors(request, factors, x)(product.conj()) > 0.1
    structure = KroneckerSparse.of(monarch(24, 36, 3))
    a, b, c = CudaBench().operands(factored_request(structure, 9, "bfloat16", device="cuda"), 0, blank=True)
    assert [tuple(weights.shape) for weights in a] == [one.parameter_shape for one in structure.patterns]
    assert (b.shape, b.stride(), c.shape, c.stride()) == ((36, 9), (1, 36), (24, 9), (1, 24))
    assert {x.dtype for x in (*a, b, c)} == {torch.bfloat16}


def test_gradients_copy_nothing_batch_last_and_blocks_are_gathered_where_they_fill_a_gpu(recorder):
    with recorder() as seen:
        outer_tensors(torch.randn(12, 50), torch.randn(24, 50), 1, 6)
    assert seen.seen.count("aten.bmm.out") == 1
    assert not seen.copies
    for sizes, gathered in (((64, 96, 96, 4), 1), ((2, 384, 384, 16), 1), ((1, 48, 48, 4), 0), ((64, 96, 96, 1), 0)):
        assert is_gathered(Pattern(*sizes), 25088, 4) == gathered


@pytest.mark.parametrize(("a", "d"), [(2, 3), (3, 2), (1, 6), (6, 1), (1, 1)])
def test_sums_over_the_batch_are_those_of_arrays_and_long_batches_are_divided_without_a_copy(a, d, recorder):
    """Where few blocks would leave a GPU idle, batch-last or with d = 1: parts of equal length, on views."""
    for n in (500, 4096):
        operands = [torch.randn(rows, n, dtype=torch.float64) for rows in (12, 24)]
        truth = torch.from_numpy(outer_blocks(*(one.numpy() for one in operands), a, d))
        first = [one.T.contiguous().T for one in operands]
        scattered = [torch.stack([one, one], 2)[..., 0] for one in operands]
        for given in (operands, first, (first[0], operands[1]), scattered):
            torch.testing.assert_close(outer_tensors(*given, a, d), truth)
    parts = batch_parts(Pattern(a, 12 // (a * d), 24 // (a * d), d), 4096, 8)
    assert (parts > 1) == (a < 3)
    for given, calls in ((operands, d), (first, 1))[: 2 if d == 1 else 1]:
        with recorder() as seen:
            outer_tensors(*given, a, d)
        assert seen.seen.count("aten.bmm.out") == (a if parts > 1 else calls)
        assert not seen.copies
    halved = outer_tensors(*(one.bfloat16() for one in operands), a, d)  # sums are held in float32
    assert halved.dtype == torch.bfloat16
    assert (halved.double() - truth).norm() < 2e-2 * truth.norm()


def test_parts_of_a_batch_are_equal_and_long():
    for sizes, parts in (((4, 128, 128, 16), 28), ((64, 64, 64, 1), 1)):
        assert (batch_parts(Pattern(*sizes), 25088), batch_parts(Pattern(*sizes), 1021)) == (parts, 1)


@pytest.mark.parametrize("gathered", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("pattern", [Pattern(2, 5, 4, 3), Pattern(1, 3, 2, 6), Pattern(4, 1, 7, 2)], ids=str)
def test_both_gradients_share_transposed_operands(pattern, dtype, gathered, monkeypatch):
    monkeypatch.setattr(outer, "is_gathered", lambda *_: gathered)
    weights = torch.randn(pattern.parameter_shape, dtype=dtype)
    grad, x = (torch.randn(9, size, dtype=dtype).T for size in (pattern.rows, pattern.cols))
    found = outer.transposed_gradients(grad, x, weights)
    dy, given = grad.numpy(), x.numpy()
    of_weights = outer_blocks(dy, given.conj(), pattern.a, pattern.d)
    truth = apply_transposed([weights.numpy()], [pattern], dy), of_weights
    for mine, theirs in zip(found, truth, strict=True):
        torch.testing.assert_close(mine, torch.from_numpy(theirs))
    assert is_batch_first(found[0])


def test_rows_lie_in_block_order_where_one_view_writes_and_reads_them():
    """Monarch's first rows are [l, s, k], BLAST's [r, l] and [r, k], low-rank ones have one order."""
    first, second = steps_of(Monarch(24, 36, 3, 4, 5))
    assert (first.target, second.source) == (natural(3, 20, 1), natural(1, 15, 4))
    assert second.target == by_blocks(1, 6, 4)
    assert steps_of(Monarch(24, 36, 3, 4, 5, interleaved=True))[1].target == natural(1, 6, 4)
    first, middle, last = steps_of(Blast(24, 36, 3, 4, 7))
    assert (first.target, middle.source) == (BlockRows(3, 1, 7, (1, 1, 3)), by_blocks(1, 3, 7))
    assert (middle.target, last.source) == (by_blocks(1, 4, 7), BlockRows(4, 1, 7, (1, 1, 4)))
    first, second = steps_of(LowRank(24, 36, 5))
    assert (first.target, second.source) == (natural(1, 5, 1), natural(1, 5, 1))
    for structure in (Monarch(24, 36, 3, 4, 5), Blast(24, 36, 3, 4, 7), LowRank(24, 36, 5)):
        assert {step.calls for step in steps_of(structure)} == {1}
    (step,) = steps_of(KroneckerSparse.of(Pattern(5, 3, 4, 2)))
    (copied,) = steps_of(KroneckerSparse.of(Pattern(5, 3, 4, 2)), True, True)
    assert (step.calls, copied.calls) == (2, 1)
    assert copied.source == by_blocks(5, 4, 2)
    assert not KroneckerSparse.of(Pattern(5, 3, 4, 2)).is_blocked
    assert max(step.calls for step in steps_of(KroneckerSparse.of(square_dyadic(16)))) <= 2


def test_a_repeated_product_has_the_bits_of_a_run(structure):
    request = factored_request(structure, 5, "float32", device="cuda")
    executor = decision_for(request, strategy="strided").plan.build()
    factors, x = [torch.randn(shape) for shape in structure.factor_shapes], torch.randn(5, structure.cols)
    assert torch.equal(executor.again(factors, x.T), executor.run(factors, x.T))


SHAPES = (48, 8), (8, 32)


def factors_of(*shapes, dtype=torch.float32):
    return [torch.zeros(shape, dtype=dtype) for shape in shapes]


def test_only_factors_that_pass_the_checks_are_multiplied_without_them():
    repeat, right = _Repeat(None, SHAPES, "float32"), factors_of(*SHAPES)
    assert repeat.fits(right, torch.float32, -1)  # on no GPU
    assert not repeat.fits(right, torch.float32, 0)
    others = [(*SHAPES, (1, 1)), SHAPES[:1], (SHAPES[0], (8, 31))]
    wrong = [*(factors_of(*shapes) for shapes in others), factors_of(*SHAPES, dtype=torch.float64)]
    wrong.append([torch.zeros(8, 48).T, right[1]])
    assert not any(repeat.fits(factors, torch.float32, -1) for factors in wrong)


BATCH = 25_088

FAR = {"float16": 5e-3, "float32": 1e-5, "fp32-accurate": 1e-5}


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="operands of 13 GB need a GPU")
@each("strategy, dtype, layout, structure", __file__, "long", **STRUCTURE)
def test_the_product_is_right_beyond_two_billion_elements(strategy, dtype, layout, structure):
    request = factored_request(structure, BATCH, dtype, layout, device="cuda")
    bench = CudaBench()
    a, b, out = bench.operands(request, 0)
    out.fill_(torch.nan)
    assert max(b.numel(), out.numel()) > 2**31
    found = decision_for(request, strategy=strategy).plan.build().run(a, b, out)
    assert bench.errors(request, a, b)(found) <= FAR[dtype]
