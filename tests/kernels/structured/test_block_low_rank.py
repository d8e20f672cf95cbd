"""Low-rank, Monarch and BLAST structures: figures, definition, layouts of the papers, conversion to patterns."""

import numpy as np

from lcma import block_low_rank, kronecker
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.structured.published_layouts import SCALES

from ...refusal import refuses


def blocks_of(structure, full):
    """W as blocks [k, row in the block, l, column in the block]."""
    interleaved = getattr(structure, "interleaved", False)
    shape = (structure.b1, structure.p)
    if interleaved:
        return full.reshape(structure.q, structure.b2, *shape).swapaxes(0, 1)
    return full.reshape(structure.b2, structure.q, *shape)


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


def test_the_dense_matrix_is_that_of_the_definition(block_structure):
    """Low-rank: U V; blocks k, l of Monarch: U[k, :, l] V[l, :, k], of BLAST: U[k] diag(S[:, k, l]) V[l]."""
    structure = block_structure
    factors = structure.draw(np.random.default_rng(0), "float64")
    full = np.array(FactoredMatrix.of(structure, factors).dense())
    if isinstance(structure, LowRank):
        np.testing.assert_allclose(full, factors[0] @ factors[1], atol=1e-12)
        assert np.linalg.matrix_rank(full) == structure.rank
        return
    blocks = blocks_of(structure, full)
    for k, row in np.ndindex(structure.b2, structure.b1):
        if isinstance(structure, Monarch):
            wanted = factors[0][k, :, row] @ factors[1][row, :, k]
        else:
            wanted = (factors[0][k] * factors[1][:, k, row]) @ factors[2][row]
        np.testing.assert_allclose(blocks[k, :, row], wanted, atol=1e-12)
        assert np.linalg.matrix_rank(blocks[k, :, row]) == min(structure.rank, structure.p, structure.q)
    if getattr(structure, "interleaved", False):
        np.testing.assert_array_equal(full[structure.block_order].reshape(blocks.shape), blocks)


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


def test_bfloat16_is_converted_without_torch(structure):
    matrix = FactoredMatrix.random(structure)
    bits = matrix.astype("bfloat16")
    assert {one.dtype for one in bits.factors} == {np.dtype(np.uint16)}
    for mine, other in zip(bits.astype("float64").factors, matrix.factors, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2**-8)
    assert FactoredMatrix.of(structure, bits.factors).dtype == "bfloat16"
    np.testing.assert_array_equal(bits.dense(), bits.astype("float32").dense())
    refuses("can't become int32; choose one of float16", matrix.astype, "int32")
