"""Patterns, chains, low-rank, Monarch and BLAST structures: figures, definitions, layouts of the literature, files."""

from dataclasses import replace

import numpy as np
import pytest

from lcma import block_low_rank, kronecker
from lcma.errors import PlanError, SchemeFormatError
from lcma.kernels import Structure
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern
from lcma.kernels.structured.block_low_rank import parse_structure
from lcma.kernels.structured.layouts import LAYOUTS
from lcma.kernels.structured.matrix import is_operand_file
from lcma.kernels.structured.naive import dense_factor, factor_parameters, multiply, support
from lcma.kernels.structured.pattern import (
    chain_pattern,
    chain_rank,
    chain_reason,
    parse_patterns,
    product_pattern,
)
from lcma.kernels.structured.published_layouts import SCALES

from ...refusal import refuses, refuses_with
from ..cases import PATTERNS, array, call, each
from .products import defined

SOME = [Pattern(1, 3, 2, 4), Pattern(2, 2, 5, 1), Pattern(3, 1, 2, 2), Pattern(2, 4, 3, 3), Pattern(5, 1, 1, 2)]


@pytest.mark.parametrize("pattern", SOME, ids=str)
def test_figures_of_a_pattern_are_those_of_its_support(pattern):
    a, b, c, d = pattern.sizes
    kept = support(pattern)
    np.testing.assert_array_equal(kept, np.kron(np.kron(np.eye(a), np.ones((b, c))), np.eye(d)) > 0)
    assert kept.shape == (pattern.rows, pattern.cols) == (a * b * d, a * c * d)
    assert kept.sum() == pattern.nonzeros
    assert kept.mean() == pytest.approx(pattern.density)
    assert pattern.h == pytest.approx((b + c) / (b * c))
    assert (support(pattern.transposed) == kept.T).all()
    assert Pattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize("pattern", SOME, ids=str)
def test_parameters_fill_the_support_and_come_back_from_every_layout(pattern):
    weights = np.arange(1.0, pattern.nonzeros + 1).reshape(pattern.parameter_shape)
    full = dense_factor(weights, pattern)
    assert ((full != 0) == support(pattern)).all()
    np.testing.assert_array_equal(factor_parameters(full, pattern), weights)
    a, b, c, d = pattern.sizes
    for layout in LAYOUTS:
        other = kronecker.to_layout(weights, pattern, layout)
        np.testing.assert_array_equal(kronecker.from_layout(other, pattern, layout), weights)
    i, j, p, q = a - 1, d - 1, b - 1, c - 1
    entry = weights[i, j, p, q]
    assert full[i * b * d + p * d + j, i * c * d + q * d + j] == entry
    assert kronecker.to_layout(weights, pattern, "bmm")[i * d + j, p, q] == entry
    assert kronecker.to_layout(weights, pattern, "kernel")[(i * d + j) * c + q, p] == entry
    assert kronecker.to_layout(weights, pattern, "abcd")[i, p, q, j] == entry


@pytest.mark.parametrize("scale", [1.0, 1e200])
def test_a_dense_matrix_with_entries_outside_the_support_is_refused(scale):
    pattern = Pattern(2, 2, 5, 1)
    full = dense_factor(np.full(pattern.parameter_shape, scale), pattern)
    full[0, 5] = -0.0
    assert (kronecker.from_layout(full, pattern, "dense") == scale).all()
    full[0, 5] = 2 * scale
    share = f"{2 / np.sqrt(pattern.nonzeros + 4):.2g} of its Frobenius norm"
    for matrix in (full, np.asfortranarray(full), 1j * full):
        with pytest.raises(PlanError, match=share) as refusal:
            kronecker.from_layout(matrix, pattern, "dense")
    assert "from_dense" in str(refusal.value)
    full[0, 5] = np.nan
    refuses("nan of its", kronecker.from_layout, full, pattern, "dense")


def test_texts_of_patterns():
    assert parse_patterns("(1,2,3,4) (2, 3,1,2)") == (Pattern(1, 2, 3, 4), Pattern(2, 3, 1, 2))
    assert parse_patterns("1,2,3,4") == (Pattern(1, 2, 3, 4),)
    refuses("do not compose", kronecker.deformable_butterfly, [Pattern(1, 2, 3, 1), Pattern(1, 4, 2, 1)])


@each("made, patterns", __file__, "lists", made=call, **PATTERNS)
def test_lists_of_patterns_compose(made, patterns):
    assert made() == patterns
    structure = KroneckerSparse(patterns)
    assert (support(patterns[0]).shape[0], support(patterns[-1]).shape[1]) == (structure.rows, structure.cols)


def test_the_structure_is_one_of_requests_and_a_matrix_is_its_factors():
    single = KroneckerSparse.of(Pattern(2, 3, 4, 5))
    assert isinstance(single, Structure)
    assert single.reason(30, 40) is None
    assert "30 x 40, but it is 40 x 30" in str(single.reason(40, 30))
    np.testing.assert_array_equal(single.naive(np.ones((30, 40))), support(Pattern(2, 3, 4, 5)))
    pair = KroneckerSparse.of(kronecker.monarch(12, 24, 3))
    assert (pair.rows, pair.cols) == (12, 24)
    assert pair.transposed.patterns == tuple(p.transposed for p in reversed(pair.patterns))
    assert pair.density == pair.parameters / (12 * 24)
    patterns = kronecker.monarch(12, 24, 3)
    matrix = FactoredMatrix.random(patterns, seed=3, dtype="float64")
    x = np.random.default_rng(0).standard_normal((24, 5))
    np.testing.assert_allclose(multiply(matrix.factors, patterns, x), matrix.dense() @ x)
    for weights, pattern in zip(matrix.factors, patterns, strict=True):
        assert abs(weights).max() <= pattern.c**-0.5
    assert matrix.astype("float32").dtype == "float32"
    assert FactoredMatrix.random(patterns, dtype="complex64").dense().dtype == np.complex64


def test_chainable_lists_have_the_support_of_one_pattern_and_others_compose():
    for patterns in (kronecker.square_dyadic(16), kronecker.monarch(8, 16, 2), kronecker.low_rank(6, 8, 2)):
        assert chain_reason(patterns) is None
        whole = chain_pattern(patterns)
        ones = [np.ones(pattern.parameter_shape) for pattern in patterns]
        np.testing.assert_array_equal(multiply(ones, patterns, np.eye(patterns[-1].cols)) > 0, support(whole))
    left, right = Pattern(1, 4, 4, 4), Pattern(2, 4, 3, 2)
    rank = chain_rank(left, right)
    assert rank == 2
    product = dense_factor(np.ones(left.parameter_shape), left) @ dense_factor(np.ones(right.parameter_shape), right)
    assert set(np.unique(product)) == {0.0, float(rank)}
    np.testing.assert_array_equal(product > 0, support(product_pattern(left, right)))
    down = (Pattern(1, 128, 128, 3), Pattern(6, 64, 256, 1))
    assert KroneckerSparse(down).rows == 384
    assert "(1,128,128,3)(6,64,256,1) is not chainable" in str(chain_reason(down))
    up = (Pattern(1, 768, 192, 2), Pattern(6, 64, 64, 1))
    assert chain_rank(*up) == 32


def test_parameters_and_operations_are_those_of_the_papers(block_structure):
    structure = block_structure
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


def test_the_dense_matrix_is_that_of_the_definition(structure):
    torch = pytest.importorskip("torch")
    factors = structure.draw(np.random.default_rng(0), "float64")
    full, tensors = FactoredMatrix.of(structure, factors).dense(), [torch.from_numpy(weights) for weights in factors]
    np.testing.assert_allclose(full, defined(structure, tensors), atol=1e-12)
    if getattr(structure, "interleaved", False):
        in_blocks = defined(replace(structure, interleaved=False), tensors)
        np.testing.assert_allclose(full[structure.block_order], in_blocks, atol=1e-12)


def test_layouts_of_the_papers_are_read_and_written(block_structure):
    structure = block_structure
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


def test_the_papers_formulas_of_blast_and_monarch_matrices():
    x = np.random.default_rng(3).standard_normal((5, 6))
    matrix = FactoredMatrix.random(Blast(8, 6, 3, 2, 3), dtype="float64")
    given = block_low_rank.to_layout(matrix)
    parts = [x[:, 2 * i : 2 * i + 2] @ given["V"][i] for i in range(3)]
    y = [sum(parts[i] * given["S"][i, k] for i in range(3)) @ given["U"][k] for k in range(2)]
    np.testing.assert_allclose(block_low_rank.matmul(matrix, x), np.hstack(y))
    matrix = FactoredMatrix.random(Monarch(8, 6, 3, 2, 2, interleaved=True), dtype="float64")
    given = block_low_rank.to_layout(matrix)
    inner = x.reshape(5, 3, 2).swapaxes(0, 1) @ given["V"].swapaxes(1, 2)  # (b1, n, r b2), b2 innermost
    inner = inner.reshape(3, 5, 2, 2).transpose(3, 1, 0, 2).reshape(2, 5, 6)  # (b2, n, b1 r), r innermost
    blocks = inner @ given["U"].swapaxes(1, 2)  # (b2, n, q)
    np.testing.assert_allclose(block_low_rank.matmul(matrix, x), blocks.transpose(1, 2, 0).reshape(5, 8))


def test_every_structure_is_a_kronecker_sparse_chain():
    texts = "monarch 24 36 3 4 5 1", "monarch 6 6 6 1 1 1", "blast 24 36 3 4 7", "blast 10 9 1 1 9", "low-rank 9 7 4"
    for structure in map(parse_structure, texts):
        matrix = FactoredMatrix.random(structure, dtype="float64")
        chain = block_low_rank.to_kronecker(matrix)
        np.testing.assert_allclose(chain.dense(), matrix.dense(), atol=1e-12)
        back = block_low_rank.from_kronecker(chain)
        np.testing.assert_array_equal(back.dense(), matrix.dense())
        assert back.structure.sizes[:2] == structure.sizes[:2]
    assert back.structure == structure
    chain = FactoredMatrix.random(parse_patterns("(1,6,15,4)(3,20,12,1)"))
    assert block_low_rank.from_kronecker(chain).structure == Monarch(24, 36, 3, 4, 5, interleaved=True)


def test_bfloat16_is_converted_without_torch(structure):
    matrix = FactoredMatrix.random(structure)
    bits = matrix.astype("bfloat16")
    assert {one.dtype for one in bits.factors} == {np.dtype(np.uint16)}
    drawn, wide = FactoredMatrix.random(structure, dtype="bfloat16"), bits.astype("float64")
    for mine, same, rounded, other in zip(bits.factors, drawn.factors, wide.factors, matrix.factors, strict=True):
        np.testing.assert_array_equal(mine, same)
        np.testing.assert_allclose(rounded, other, rtol=2**-8)
    assert FactoredMatrix.of(structure, bits.factors).dtype == "bfloat16"
    np.testing.assert_array_equal(bits.dense(), bits.astype("float32").dense())
    refuses("can't become int32; choose one of float16", matrix.astype, "int32")


@pytest.mark.parametrize(("suffix", "other"), [(".npz", "complex128"), (".safetensors", "bfloat16")])
def test_what_is_saved_is_loaded(tmp_path, suffix, other, structure):
    path = tmp_path / f"k{suffix}"
    for dtype in ("float16", "float32", "float64", "complex64", other):
        matrix = FactoredMatrix.random(structure, dtype=dtype)
        kronecker.save(path, matrix)
        found = kronecker.load(path)
        assert (found.structure, found.dtype) == (structure, dtype)
        for mine, theirs in zip(matrix.factors, found.factors, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert is_operand_file(path)
    assert not is_operand_file(tmp_path / "none.npz")


@pytest.mark.parametrize(("name", "dtype", "message"), [
    ("k.npz", "bfloat16", "holds no bfloat16"), ("k.safetensors", "complex128", "holds no complex128"),
    ("k.bin", "float32", "must end in"),
])  # fmt: skip
def test_what_a_file_does_not_hold_is_refused(tmp_path, name, dtype, message):
    refuses(message, kronecker.save, tmp_path / name, FactoredMatrix.random(Pattern(1, 2, 2, 2), dtype=dtype))


@each("arrays, message", __file__, "files")
def test_files_that_hold_none_name_what_is_wrong(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **{name: array(one) if isinstance(one, str) else np.array(one) for name, one in arrays.items()})
    with pytest.raises(SchemeFormatError, match=message) as caught:
        kronecker.load(path)
    assert str(path) in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "k.npz"
    kronecker.save(path, FactoredMatrix.random(kronecker.dense(8, 8)))
    content = path.read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 4):
        path.write_bytes(content[:cut])
        refuses_with(SchemeFormatError, ".", kronecker.load, path)
    other = tmp_path / "k.safetensors"
    for structure in (kronecker.dense(8, 8), LowRank(8, 8, 2)):
        kronecker.save(other, FactoredMatrix.random(structure))
        other.write_bytes(other.read_bytes()[:-8])
        refuses_with(SchemeFormatError, "file does not hold them", kronecker.load, other)
    refuses_with(SchemeFormatError, "can't be read", kronecker.load, tmp_path / "missing.npz")
    refuses_with(SchemeFormatError, "can't be read", kronecker.load, tmp_path / "missing")


@pytest.mark.parametrize("compressed", [False, True])
def test_changed_bytes_never_raise_anything_else(tmp_path, compressed):
    """Flipped bytes, and the flag of encryption: the matrix is read, or one line says why not."""
    matrix = FactoredMatrix.random(kronecker.monarch(16, 16, 4))
    path, rng = tmp_path / "k.npz", np.random.default_rng(0)
    write = np.savez_compressed if compressed else np.savez
    patterns = np.array([one.sizes for one in matrix.patterns])
    write(path, patterns=patterns, **{f"factor{i}": weights for i, weights in enumerate(matrix.factors, 1)})
    content = path.read_bytes()
    seen = set()
    for _ in range(300):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            is_operand_file(path)
            kronecker.load(path)
        except SchemeFormatError as error:
            seen.add(str(error))
    assert len(seen) > 5
    locked = bytearray(content)
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = locked.find(start)
        while place >= 0:
            locked[place + flags] |= 1
            place = locked.find(start, place + 1)
    path.write_bytes(locked)
    refuses_with(SchemeFormatError, "encrypted", kronecker.load, path)
