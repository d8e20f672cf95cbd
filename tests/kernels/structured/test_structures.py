"""Structures, factors, layouts, files and products of block low-rank matrices on a processor."""

from dataclasses import replace

import numpy as np
import pytest

from lcma import block_low_rank, kronecker
from lcma.errors import PlanError, SchemeFormatError
from lcma.kernels import decision_for
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.factored import factored_request
from lcma.kernels.request import Layout
from lcma.kernels.structured.published_layouts import SCALES

STRUCTURES = [
    Monarch(24, 36, 3, 4, 5),
    Monarch(24, 36, 3, 4, 5, interleaved=True),
    Monarch(35, 33, 1, 7, 3),
    Blast(24, 36, 3, 4, 7),
    Blast(10, 9, 1, 1, 9),
    LowRank(24, 36, 5),
    LowRank(1, 1, 1),
]
ids = pytest.mark.parametrize(
    "structure", STRUCTURES, ids=lambda one: f"{one.kind}-{'-'.join(map(str, one.sizes[:6]))}"
)


@ids
def test_parameters_and_operations_are_those_of_the_papers(structure):
    (o, i), r = (structure.rows, structure.cols), structure.rank
    if isinstance(structure, LowRank):
        wanted = r * (i + o)
    elif isinstance(structure, Monarch):
        wanted = structure.b1 * structure.b2 * r * (structure.p + structure.q)
    else:
        wanted = r * (i + o + structure.b1 * structure.b2)
    matrix = FactoredMatrix.random(structure)
    assert structure.parameters == wanted == sum(weights.size for weights in matrix.factors)
    assert structure.flops(7) == 14 * wanted


@ids
def test_the_dense_matrix_is_that_of_the_definition(structure):
    """Low-rank: U V; blocks k, l of Monarch: U[k, :, l] V[l, :, k], of BLAST: U[k] diag(S[:, k, l]) V[l]."""
    factors = structure.draw(np.random.default_rng(0), "float64")
    full = np.array(FactoredMatrix.of(structure, factors).dense())
    if isinstance(structure, LowRank):
        np.testing.assert_allclose(full, factors[0] @ factors[1], atol=1e-12)
        return
    order = structure.block_order if getattr(structure, "interleaved", False) else np.arange(structure.rows)
    blocks = full[order].reshape(structure.b2, structure.q, structure.b1, structure.p)
    for k in range(structure.b2):
        for row in range(structure.b1):
            if isinstance(structure, Monarch):
                wanted = factors[0][k, :, row] @ factors[1][row, :, k]
            else:
                wanted = (factors[0][k] * factors[1][:, k, row]) @ factors[2][row]
            np.testing.assert_allclose(blocks[k, :, row], wanted, atol=1e-12)


@ids
def test_blocks_have_the_rank_of_the_structure(structure):
    full = FactoredMatrix.random(structure, dtype="float64").dense()
    assert full.shape == (structure.rows, structure.cols)
    if isinstance(structure, LowRank):
        assert np.linalg.matrix_rank(full) == structure.rank
        return
    b1, b2, p, q = structure.b1, structure.b2, structure.p, structure.q
    blocks = full.reshape(b2, q, b1, p)
    if getattr(structure, "interleaved", False):
        blocks = full.reshape(q, b2, b1, p).swapaxes(0, 1)
    ranks = {int(np.linalg.matrix_rank(blocks[k, :, row])) for k in range(b2) for row in range(b1)}
    assert ranks == {min(structure.rank, p, q)}


@ids
@pytest.mark.parametrize("strategy", [None, "strided", "slabs", "dense"])
def test_every_strategy_is_the_product_by_definition(structure, strategy):
    matrix = FactoredMatrix.random(structure, dtype="float64")
    rng = np.random.default_rng(1)
    for shape in ((7,), (1,), (0,), (2, 3), ()):
        x = rng.standard_normal((*shape, structure.cols))
        found = block_low_rank.matmul(matrix, x, strategy=strategy, max_extra_bytes=1 << 20)
        np.testing.assert_allclose(found, x @ matrix.dense().T, atol=1e-12)
    scattered = rng.standard_normal((6, 2 * structure.cols))[:, ::2]
    np.testing.assert_allclose(block_low_rank.matmul(matrix, scattered), scattered @ matrix.dense().T, atol=1e-12)


@ids
def test_any_layout_of_x_and_of_the_result_is_written_in_place(structure):
    matrix = FactoredMatrix.random(structure, dtype="float64")
    x = np.random.default_rng(2).standard_normal((structure.cols, 6))
    np.testing.assert_allclose(structure.multiply_wide(matrix.factors, x), matrix.dense() @ x, atol=1e-12)
    for first in (Layout.ROWS, Layout.COLUMNS):
        for last in (Layout.ROWS, Layout.COLUMNS):
            request = factored_request(structure, 6, "float64", layouts=(first, last), max_extra_bytes=1 << 20)
            for strategy in ("strided", "slabs", "dense"):
                plan = decision_for(request, strategy=strategy).plan
                executor = plan.build()
                given = np.asfortranarray(x) if first is Layout.COLUMNS else x
                out = np.full((structure.rows, 6), np.nan, order="F" if last is Layout.COLUMNS else "C")
                for operand in (matrix.factors, executor.prepare(matrix.factors)):
                    assert executor.run(operand, given, out) is out
                    np.testing.assert_allclose(out, matrix.dense() @ x, atol=1e-12)
                assert executor.workspace == plan.workspace


@ids
def test_the_bench_draws_operands_and_measures_the_error(structure):
    request = factored_request(structure, 5)
    bench = CpuBench()
    factors, x, out = bench.operands(request, 0)
    decision_for(request, strategy="strided").plan.build().run(factors, x, out)
    assert bench.errors(request, factors, x)(out) < 1e-5
    out += 1
    assert bench.errors(request, factors, x)(out) > 0.01


@ids
def test_layouts_of_the_papers_are_read_and_written(structure):
    matrix = FactoredMatrix.random(structure, dtype="float64")
    for scales in SCALES if isinstance(structure, Blast) else SCALES[:1]:
        given = block_low_rank.to_layout(matrix, scales)
        found = block_low_rank.from_layout(structure, given["V"], given["U"], given.get("S"), scales)
        for mine, other in zip(matrix.factors, found.factors, strict=True):
            np.testing.assert_array_equal(mine, other)
    if isinstance(structure, Blast) and structure.rank not in (structure.p, structure.q):
        published = block_low_rank.from_layout(
            structure, matrix.factors[2], matrix.factors[0], matrix.factors[1].transpose(1, 2, 0), "b2,b1,r"
        )
        np.testing.assert_array_equal(published.dense(), matrix.dense())


def test_the_papers_formula_of_a_blast_matrix():
    structure = Blast(8, 6, 3, 2, 3)
    matrix = FactoredMatrix.random(structure, dtype="float64")
    given = block_low_rank.to_layout(matrix)
    x = np.random.default_rng(3).standard_normal((5, 6))
    y = np.empty((5, 8))
    for k in range(2):
        parts = [(x[:, 2 * i : 2 * i + 2] @ given["V"][i]) * given["S"][i, k] for i in range(3)]
        y[:, 4 * k : 4 * k + 4] = sum(parts) @ given["U"][k]
    np.testing.assert_allclose(block_low_rank.matmul(matrix, x), y)


def test_the_papers_formula_of_a_monarch_matrix_with_its_permutations():
    structure = Monarch(8, 6, 3, 2, 2, interleaved=True)
    matrix = FactoredMatrix.random(structure, dtype="float64")
    given = block_low_rank.to_layout(matrix)
    x = np.random.default_rng(3).standard_normal((5, 6))
    inner = x.reshape(5, 3, 2).swapaxes(0, 1) @ given["V"].swapaxes(1, 2)  # (b1, n, r b2), b2 innermost
    inner = inner.reshape(3, 5, 2, 2).transpose(3, 1, 0, 2).reshape(2, 5, 6)  # (b2, n, b1 r), r innermost
    blocks = inner @ given["U"].swapaxes(1, 2)  # (b2, n, q)
    np.testing.assert_allclose(block_low_rank.matmul(matrix, x), blocks.transpose(1, 2, 0).reshape(5, 8))


def test_every_structure_is_a_kronecker_sparse_chain():
    for structure in (
        Monarch(24, 36, 3, 4, 5, interleaved=True),
        Monarch(6, 6, 6, 1, 1, interleaved=True),
        Blast(24, 36, 3, 4, 7),
        Blast(10, 9, 1, 1, 9),
        LowRank(9, 7, 4),
    ):
        matrix = FactoredMatrix.random(structure, dtype="float64")
        chain = block_low_rank.to_kronecker(matrix)
        np.testing.assert_allclose(chain.dense(), matrix.dense(), atol=1e-12)
        back = block_low_rank.from_kronecker(chain)
        np.testing.assert_array_equal(back.dense(), matrix.dense())
        assert back.structure.sizes[:2] == structure.sizes[:2]
    assert block_low_rank.from_kronecker(chain).structure == structure
    patterns = [kronecker.Pattern(1, 6, 15, 4), kronecker.Pattern(3, 20, 12, 1)]
    chain = kronecker.FactoredMatrix.random(patterns)
    assert block_low_rank.from_kronecker(chain).structure == Monarch(24, 36, 3, 4, 5, interleaved=True)


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda: block_low_rank.to_kronecker(FactoredMatrix.random(Monarch(8, 8, 2, 2, 2))), "interleaved"),
        (
            lambda: block_low_rank.from_kronecker(kronecker.FactoredMatrix.random(kronecker.square_dyadic(8))),
            "no low-rank, Monarch or BLAST matrix",
        ),
        (
            lambda: block_low_rank.from_kronecker(kronecker.FactoredMatrix.random(kronecker.square_dyadic(4)[::-1])),
            "no low-rank, Monarch or BLAST matrix",
        ),
    ],
)
def test_what_is_no_chain_is_refused(convert, message):
    with pytest.raises(PlanError, match=message):
        convert()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LowRank(4, 6, 5), "rank 5 exceeds the shorter side of 4 x 6"),
        (lambda: Monarch(8, 6, 4, 2, 1), "b1 = 4 must divide the 6 inputs"),
        (lambda: Monarch(9, 6, 3, 2, 1), "b2 = 2 the 9 outputs"),
        (lambda: Monarch(8, 6, 3, 2, 3), "rank 3 of a block exceeds the shorter side of 4 x 2"),
        (lambda: Blast(8, 6, 3, 2, 7), "rank 7 exceeds the shorter side"),
        (lambda: Blast(8, 6, 3, 0, 2), "b2 of a blast matrix must be a positive integer, not 0"),
        (lambda: LowRank(4, 6, 2.0), "rank of a low-rank matrix must be a positive integer, not 2.0"),
        (lambda: LowRank(1 << 32, 6, 2), "sides above"),
        (lambda: Monarch(8, 6, 3, 2, 1, interleaved=3), "interleaved must be True or False"),
    ],
)
def test_impossible_structures_are_refused(make, message):
    with pytest.raises(PlanError, match=message):
        make()


def test_operands_of_another_request_are_refused():
    structure = LowRank(4, 6, 2)
    matrix = FactoredMatrix.random(structure)
    x = np.ones((3, 6), np.float32)
    for wrong, message in (
        (x[:, :5], r"must have shape \(..., 6\)"),
        (x.astype(np.float64), "x is float64 and the matrix float32"),
    ):
        with pytest.raises(PlanError, match=message):
            block_low_rank.matmul(matrix, wrong)
    with pytest.raises(PlanError, match="dense matrix takes 16 bytes more"):
        block_low_rank.matmul(matrix, x, strategy="dense")
    executor = decision_for(factored_request(structure, 3), strategy="strided").plan.build()
    with pytest.raises(PlanError, match="a list of 2 factors"):
        executor.run(matrix.factors[:1], x.T)
    with pytest.raises(PlanError, match=r"factor 2 has shape \[6, 2\]"):
        executor.run([matrix.factors[0], matrix.factors[1].T], x.T)
    with pytest.raises(PlanError, match="x is stored by"):
        executor.run(matrix.factors, np.ascontiguousarray(x.T))
    with pytest.raises(PlanError, match="one matrix X"):
        decision_for(replace(factored_request(structure, 3), batch_b=(2,)))
    with pytest.raises(PlanError, match="dtype int8 is not supported"):
        decision_for(factored_request(structure, 3, "int8"), strategy="strided")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@ids
def test_what_is_saved_is_loaded(structure, suffix, tmp_path):
    matrix = FactoredMatrix.random(structure, dtype="float16")
    block_low_rank.save(tmp_path / f"w{suffix}", matrix)
    found = block_low_rank.load(tmp_path / f"w{suffix}")
    assert (found.structure, found.dtype) == (structure, "float16")
    for mine, other in zip(matrix.factors, found.factors, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "has no array 'patterns' or 'block_low_rank'"),
        ({"block_low_rank": np.zeros(6, np.int64)}, r"shape \(6,\)"),
        ({"block_low_rank": np.zeros(7)}, "whole numbers are needed"),
        ({"block_low_rank": np.array([3, 4, 4, 1, 1, 1, 0])}, "names no structure"),
        ({"block_low_rank": np.array([0, 4, 4, 1, 1, 5, 0])}, "exceeds the shorter side"),
        ({"block_low_rank": np.array([0, 4, 4, 1, 1, 2, 0])}, r"factor1 must hold a factor \(4, 2\)"),
        ({"block_low_rank": np.zeros(100_000, np.int64)}, "more than 56 bytes of block_low_rank"),
    ],
)
def test_files_that_hold_none_name_what_is_wrong(arrays, message, tmp_path):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(SchemeFormatError, match=message):
        block_low_rank.load(tmp_path / "bad.npz")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    block_low_rank.save(path, FactoredMatrix.random(LowRank(8, 8, 2)))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(SchemeFormatError, match="does not hold them"):
        block_low_rank.load(path)


@ids
def test_half_precision_is_computed_in_float32_and_rounded_once(structure):
    matrix = FactoredMatrix.random(structure, dtype="float16")
    x = np.random.default_rng(1).standard_normal((5, structure.cols)).astype(np.float16)
    found = block_low_rank.matmul(matrix, x)
    wide = block_low_rank.matmul(matrix.astype("float32"), x.astype(np.float32))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wide.astype(np.float16))


@ids
def test_bfloat16_is_converted_without_torch(structure):
    matrix = FactoredMatrix.random(structure)
    bits = matrix.astype("bfloat16")
    assert {one.dtype for one in bits.factors} == {np.dtype(np.uint16)}
    for mine, other in zip(bits.astype("float64").factors, matrix.factors, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2**-8)
    assert FactoredMatrix.of(structure, bits.factors).dtype == "bfloat16"
    np.testing.assert_array_equal(bits.dense(), bits.astype("float32").dense())
    with pytest.raises(PlanError, match="can't become int32; choose one of float16"):
        matrix.astype("int32")
