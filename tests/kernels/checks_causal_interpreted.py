"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: the triangular kernel on CPU tensors.

Sizes are no multiples of a tile, what lies outside a triangle is NaN, so is fresh memory, and results
lie in the middle of a canvas whose border must stay as it was.
"""

from dataclasses import replace
from functools import partial

import pytest
import torch

from lcma.kernels.causal.naive import plain, triangular
from lcma.kernels.cuda import requests
from lcma.kernels.cuda.requests import request_of
from lcma.kernels.cuda.tiles import Tile, tile_places
from lcma.kernels.cuda.triangular import multiply
from lcma.kernels.torch import triangular as triangular_ops
from lcma.kernels.triangular import causal_pv, causal_qk, syrk, trmm
from lcma.schemes_db.symmetry import SIDES, Triangle

CANARY = 7.5
TILE = Tile(32, 32, 16, 4, 2)
LIMITS = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 2e-3}


def drawn(shape, dtype, order):
    *batch, rows, cols = shape
    if order == "columns":
        return torch.randn(*batch, cols, rows, dtype=torch.float64).to(dtype).mT
    return torch.randn(*batch, 2 * rows, 3 * cols, dtype=torch.float64).to(dtype)[..., ::2, ::3]


def spoiled(matrix, upper):
    """NaN where nothing of a triangular operand may be read."""
    rows, cols = matrix.shape[-2:]
    there = triangular(torch.ones(rows, cols), upper) > 0
    return matrix.masked_fill(~there, torch.nan)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_triangle_is_all_that_is_read_and_written(side, upper, dtype):
    triangle = Triangle(side, upper)
    size, other, order = 35, 21, "columns" if upper else "scattered"
    shapes = {"out": ((size, other), (other, size)), "left": ((size, size), (size, other))}
    shape_a, shape_b = shapes.get(side, ((other, size), (size, size)))
    a, b = drawn((4, *shape_a), dtype, order), drawn((2, *shape_b), dtype, order)
    clean_a, clean_b = a, b
    if side == "left":
        clean_a, a = triangular(a, upper), spoiled(a, upper)
    if side == "right":
        clean_b, b = triangular(b, upper), spoiled(b, upper)
    truth = plain(clean_a.double(), clean_b.double().repeat_interleave(2, 0), triangle)
    canvas = torch.full((4, truth.shape[1] + 5, truth.shape[2] + 6), CANARY, dtype=dtype)
    out = canvas[:, 2:-3, 3:-3]
    out.fill_(torch.nan)
    multiply(a, b, triangle, out, tile=TILE)
    assert (out.double() - truth).norm() <= LIMITS[dtype] * truth.norm()
    if side == "out":
        assert not (out - triangular(out, upper)).any()
    out.fill_(CANARY)
    assert (canvas == CANARY).all()


def test_whole_tiles_are_computed_without_a_mask():
    a, b = torch.randn(1, 64, 32), torch.randn(1, 32, 64)
    for upper in (False, True):
        got = multiply(a, b, Triangle("out", upper), tile=TILE)
        torch.testing.assert_close(got, triangular(a @ b, upper), rtol=1e-4, atol=1e-5)


def test_tiles_beyond_the_triangle_are_left_out():
    count = {upper: len(tile_places(256, 256, Triangle("out", upper), TILE)) for upper in (False, True)}
    assert count == {False: 36, True: 36}  # of 64
    assert len(tile_places(256, 256, Triangle("left"), TILE)) == 64


def test_gradients_by_the_kernel_are_products_by_the_kernel(monkeypatch):
    monkeypatch.setitem(triangular_ops.PRODUCTS, "cpu", triangular_ops.PRODUCTS["cuda"])
    monkeypatch.setattr(requests, "request_of", lambda *a, **k: replace(request_of(*a, **k), device="cuda"))
    shapes = ((4, 9, 3), (2, 7, 3), (4, 9, 7))
    q, k, p = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    for product, operands in ((causal_qk, (q, k)), (causal_pv, (p, k)), (syrk, (p,)), (trmm, (p[:, :7], k))):
        by_kernel, by_strips = (product(*operands, strategy=name) for name in ("kernel", "strips"))
        torch.testing.assert_close(by_kernel, by_strips)
        weights = torch.randn_like(by_kernel)
        leaves = [x for x in (q, k, p) if any(x is y or x is y._base for y in operands)]
        gradients = (torch.autograd.grad(x, leaves, weights) for x in (by_kernel, by_strips))
        torch.testing.assert_close(*gradients)
    x, y = q.detach()[0, :4].requires_grad_(), k.detach()[0, :4].requires_grad_()
    by_kernel = partial(causal_qk, strategy="kernel")
    assert torch.autograd.gradcheck(by_kernel, (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(by_kernel, (x, y), fast_mode=True)
