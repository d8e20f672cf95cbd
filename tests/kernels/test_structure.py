"""Structures of operands: what they keep of a matrix, how much of it there is, and what sizes they refuse."""

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.kernels import BlockMask, Dense, Request, Structure, Triangular
from lcma.kernels.causal.block_masks import kinds_of
from lcma.kernels.request import structures_of
from lcma.kernels.structure import DENSE
from lcma.schemes_db.symmetry import SIDES, Triangle


def mask(*rows: str) -> BlockMask:
    return BlockMask.of(kinds_of(rows))


STRUCTURES = [Dense(), Triangular(), Triangular(True), mask("L..", "FL.", "FFL"), mask("U.F", ".F.", "F.U")]


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: one.name)
def test_naive_keeps_ones_alone_and_keeps_them_again(structure):
    assert isinstance(structure, Structure)
    ones = np.ones((600, 600))
    kept = structure.naive(ones)
    assert set(np.unique(kept)) <= {0.0, 1.0}
    np.testing.assert_array_equal(structure.naive(kept), kept)
    assert structure.reason(600, 600) is None


def test_naive_keeps_the_triangle_with_its_diagonal_whatever_stands_outside():
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((2, 5, 5))
    spoiled = np.where(np.tri(5) > 0, matrices, np.nan)
    np.testing.assert_array_equal(Triangular().naive(spoiled), np.tril(matrices))
    np.testing.assert_array_equal(Triangular(True).naive(spoiled.swapaxes(1, 2)), np.triu(matrices.swapaxes(1, 2)))


def test_blocks_of_a_mask_are_equal_but_for_the_last():
    ones = np.ones((7, 5), np.int64)
    kept = mask("F.", ".F").naive(ones)
    expected = np.zeros((7, 5), np.int64)
    expected[:4, :3] = expected[4:, 3:] = 1
    np.testing.assert_array_equal(kept, expected)
    assert kept.dtype == np.int64


@pytest.mark.parametrize(("structure", "sizes", "message"), [
    (Triangular(), (4, 5), "is triangular and must be square, but it is 4 x 5"),
    (mask("FFF"), (4, 2), "a mask of 1 x 3 blocks, which does not fit 4 x 2"),
    (mask("L.", "FL"), (4, 6), "a triangular block in its mask, which must be square, but it is 2 x 3"),
    (mask("L.", "FL"), (7, 8), "which must be square, but it is 3 x 4"),
])  # fmt: skip
def test_sizes_that_do_not_fit_are_refused_with_the_matrix_that_is_meant(structure, sizes, message):
    assert message in structure.reason(*sizes)
    with pytest.raises(PlanError, match=f"^the product .*{message}"):
        Request(sizes[0], 3, sizes[1], structures=(DENSE, DENSE, structure))


def test_names_tell_masks_apart():
    assert mask("FL").name != mask("LF").name
    assert mask("FL") == mask("FL")
    assert mask("F", "L").name != mask("FL").name


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_the_triangle_of_a_request(side, upper, shared):
    if shared and side != "out":
        pytest.skip("only a result is that of a matrix with its own transpose")
    triangle = Triangle(side, upper, shared)
    request = Request(8, 8, 8, structures=structures_of(triangle))
    assert request.shared == shared
    assert request.triangle == triangle
    assert not request.is_dense
    assert request.mask is None
    assert str(triangle) in str(request)


def test_a_dense_request_has_no_triangle_and_no_mask():
    request = Request(8, 8, 8)
    assert request.is_dense
    assert request.triangle is request.mask is None
    only = mask("F.", ".F")
    assert Request(8, 8, 8, structures=(DENSE, DENSE, only)).mask == only
    assert Request(8, 8, 8, structures=(only, DENSE, DENSE)).mask is None
