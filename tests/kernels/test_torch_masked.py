"""Masked products of tensors: values, and derivatives of every mode."""

from functools import partial

import numpy as np
import pytest
import torch

import lcma
from lcma.kernels.causal.block_masks import kinds_of
from lcma.kernels.torch import masked
from lcma.kernels.triangular import masked_matmul
from lcma.schemes_db.symmetry import Triangle, derive

from ..refusal import refuses
from .gradients import drawn, every_derivative, same_gradients

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD


TRIANGLE = ["L000", "FL00", "FFL0", "FFFL"]


def masks(rows, cols):
    """Masks of a matrix: blocks, half blocks, elements."""
    rng = np.random.default_rng(0)
    blocks = rng.random((3, 2)) < 0.5
    blocks[1] = False  # rows without anything wanted
    yield blocks, np.kron(blocks, np.ones((-(-rows // 3), -(-cols // 2))))[:rows, :cols] > 0
    elements = rng.random((rows, cols)) < 0.3
    yield elements, elements
    if rows == cols and rows % 4 == 0:
        yield TRIANGLE, np.tri(rows) > 0
        yield (
            ["FU", "0U"],
            np.kron([[1, 1], [0, 1]], np.ones((rows // 2,) * 2))
            * np.hstack([np.ones((rows, rows // 2)), np.vstack([np.triu(np.ones((rows // 2,) * 2))] * 2)])
            > 0,
        )


@pytest.mark.parametrize(
    ("tile", "shape"), [(4, (16, 5, 16)), (4, (11, 4, 7)), (256, (16, 5, 16)), (256, (520, 3, 300))]
)
def test_runs_by_torch_are_the_masked_products(monkeypatch, tile, shape):
    monkeypatch.setattr(masked, "TILE", tile)
    m, k, n = shape
    a, b, g = drawn(2, m, k, grad=False), drawn(k, n, grad=False), drawn(2, m, n, grad=False)
    for mask, inside in masks(m, n):
        inside = torch.from_numpy(inside)
        kinds = kinds_of(mask)
        wanted = (a @ b) * inside
        torch.testing.assert_close(masked.by_runs(a, b, kinds, "out"), wanted)
        torch.testing.assert_close(masked_matmul(a, b, mask), wanted)
        spoiled = g.masked_fill(~inside, torch.nan)
        torch.testing.assert_close(masked.by_runs(spoiled, b.mT, kinds, "left"), (g * inside) @ b.mT)


def small_scheme():
    """Six products for the lower triangle of a product on a grid of two."""
    return derive(lcma.resolve("2x2x2-tri-left-r6")[0], Triangle("out").target(2, 2, 2))


@pytest.mark.parametrize("mask", [["L0", "FL"], ["FU", "0L"], np.tri(8, k=-1, dtype=bool)], ids=["L", "FU", "elements"])
def test_every_derivative_of_a_masked_product(mask):
    operands, product = (drawn(2, 8, 3), drawn(3, 8)), partial(masked_matmul, mask=mask)
    every_derivative(product, operands)


def test_masks_by_a_scheme_and_of_other_squares():
    operands = drawn(2, 8, 3), drawn(3, 8)
    product = partial(masked_matmul, mask=["L0", "FL"], scheme=small_scheme())
    assert torch.autograd.gradcheck(product, operands, fast_mode=True)
    a, b, scheme = drawn(8, 3, grad=False), drawn(3, 8, grad=False), small_scheme()
    for given in (scheme, (scheme, lcma.certify(scheme))):
        torch.testing.assert_close(masked_matmul(a, b, ["L0", "FL"], scheme=given), (a @ b).tril())
    a, b = drawn(6, 3, grad=False), drawn(3, 4, grad=False)
    assert not masked.by_runs(a, b, kinds_of(["00L", "000", "000"]), "out").any()
    a, b = torch.ones(8, 3), torch.ones(3, 8)
    refuses("must be square", masked.by_runs, a, b, kinds_of(["LF"]), "out")
    refuses("vmap", torch.vmap(masked_matmul, (None, None, 0)), a, b, torch.ones(5, 2, 2, dtype=torch.bool))


def test_complex_gradients_and_a_mask_that_is_a_tensor():
    a, b = drawn(8, 3, dtype=torch.complex128), drawn(3, 8, dtype=torch.complex128)
    mask = torch.ones(4, 4, dtype=torch.bool).triu()
    wide = mask.repeat_interleave(2, 0).repeat_interleave(2, 1)
    for product in (masked_matmul, lambda x, y, m: torch.vmap(masked_matmul, (0, None, None))(x[None], y, m)[0]):
        same_gradients(lambda x, y, product=product: product(x, y, mask), lambda x, y: (x @ y) * wide, (a, b))
