"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: triangular products and stacks of products on CPU tensors.

What lies outside a triangle is NaN, so is fresh memory, and results lie in memory whose border must stay as it was.
Sizes of triangular products are no multiples of a tile; those of stacks, which the accelerator for tiles reads, are.
"""

from dataclasses import replace
from functools import partial

import pytest
import torch

from lcma.kernels.causal.naive import plain, triangular
from lcma.kernels.cuda import requests
from lcma.kernels.cuda.requests import request_of
from lcma.kernels.cuda.stack import multiply_stack
from lcma.kernels.cuda.tiles import Tile, tile_places
from lcma.kernels.cuda.triangular import multiply, on_tiles
from lcma.kernels.torch import triangular as triangular_ops
from lcma.kernels.triangular import causal_pv, causal_qk, syrk, trmm
from lcma.schemes_db.symmetry import SIDES, Triangle

from ..canvases import CANARY, close, drawn, untouched, written

TILE, STACK_TILE = Tile(32, 32, 16, 4, 2), Tile(32, 64, 16, 4, 2)
LIMITS = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 2e-3}


def operands(triangle, sizes, draw):
    """Four A and two B, with NaN where nothing may be read, and their products."""
    size, other = sizes
    shapes = {"out": ((size, other), (other, size)), "left": ((size, size), (size, other))}
    shape_a, shape_b = shapes.get(triangle.side, ((other, size), (size, size)))
    given = [draw((4, *shape_a)), draw((2, *shape_b))]
    clean, inside = list(given), triangular(torch.ones(size, size), triangle.upper) > 0
    for place in {"left": [0], "right": [1]}.get(triangle.side, []):
        clean[place] = triangular(given[place], triangle.upper)
        given[place] = given[place].masked_fill(~inside, torch.nan)
    return *given, plain(clean[0].double(), clean[1].double().repeat_interleave(2, 0), triangle)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_triangle_is_all_that_is_read_and_written(side, upper, dtype):
    triangle, order = Triangle(side, upper), "columns" if upper else "scattered"
    a, b, truth = operands(triangle, (35, 21), lambda shape: drawn(shape, dtype, order))
    out = written(lambda out: multiply(a, b, triangle, out, tile=TILE), truth.shape, dtype)
    assert close(out, truth, LIMITS[dtype])
    if side == "out":
        assert not (out - triangular(out, upper)).any()


def test_whole_tiles_have_no_mask_and_tiles_beyond_the_triangle_are_left_out():
    a, b = torch.randn(1, 64, 32), torch.randn(1, 32, 64)
    for upper in (False, True):
        got = multiply(a, b, Triangle("out", upper), tile=TILE)
        torch.testing.assert_close(got, triangular(a @ b, upper), rtol=1e-4, atol=1e-5)
    count = {upper: len(tile_places(256, 256, Triangle("out", upper), TILE)) for upper in (False, True)}
    assert count == {False: 36, True: 36}  # of 64
    assert len(tile_places(256, 256, Triangle("left"), TILE)) == 64


def test_gradients_by_the_kernel_are_products_by_the_kernel(monkeypatch):
    monkeypatch.setitem(triangular_ops.PRODUCTS, "cpu", triangular_ops.PRODUCTS["cuda"])
    monkeypatch.setattr(requests, "request_of", lambda *a, **k: replace(request_of(*a, **k), device="cuda"))
    shapes = ((4, 9, 3), (2, 7, 3), (4, 9, 7))
    q, k, p = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    for product, given in ((causal_qk, (q, k)), (causal_pv, (p, k)), (syrk, (p,)), (trmm, (p[:, :7], k))):
        by_kernel, by_strips = (product(*given, strategy=name) for name in ("kernel", "strips"))
        torch.testing.assert_close(by_kernel, by_strips)
        weights = torch.randn_like(by_kernel)
        leaves = [x for x in (q, k, p) if any(x is y or x is y._base for y in given)]
        gradients = (torch.autograd.grad(x, leaves, weights) for x in (by_kernel, by_strips))
        torch.testing.assert_close(*gradients)
    x, y = q.detach()[0, :4].requires_grad_(), k.detach()[0, :4].requires_grad_()
    by_kernel = partial(causal_qk, strategy="kernel")
    assert torch.autograd.gradcheck(by_kernel, (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(by_kernel, (x, y), fast_mode=True)


def halves(*shape):
    return drawn(shape, torch.float16)


def stored(x, transposed):
    """The same matrices one below the other in a wider memory of NaN, by rows or by columns."""
    x = x.mT if transposed else x
    count, rows, cols = x.shape
    wide = torch.full((count * rows, cols + 16), torch.nan, dtype=x.dtype)
    wide[:, :cols] = x.reshape(count * rows, cols)
    kept = wide.as_strided(x.shape, (rows * (cols + 16), cols + 16, 1))
    return kept.mT if transposed else kept


def stacked(count, m, n):
    """Matrices of NaN one below the other in a wider memory of canaries, and that memory."""
    canvas = torch.full((count * m, n + 24), CANARY, dtype=torch.float16)
    out = canvas.as_strided((count, m, n), (m * (n + 24), n + 24, 1))
    return out.fill_(torch.nan), canvas


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
@pytest.mark.parametrize(("count", "m", "k", "n"), [(2, 96, 48, 128), (1, 40, 24, 72), (3, 32, 16, 64)])
def test_every_product_of_a_stack(count, m, k, n, of_a, of_b):
    a, b = halves(count, m, k), halves(count, k, n)
    out, canvas = stacked(count, m, n)
    assert multiply_stack(stored(a, of_a), stored(b, of_b), out, tile=STACK_TILE)
    assert close(out, a.double() @ b.double(), LIMITS[torch.float16])
    assert untouched(out, canvas)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_triangle_is_all_that_is_read_and_written_of_a_stack(side, upper):
    triangle = Triangle(side, upper)
    a, b, truth = operands(triangle, (96, 48 if side == "out" else 128), lambda shape: halves(*shape))
    out, canvas = stacked(*truth.shape)
    assert on_tiles(stored(a, upper), stored(b, not upper), triangle, out, tile=STACK_TILE)
    assert close(out, truth, LIMITS[torch.float16])
    assert untouched(out, canvas)


def test_what_the_accelerator_cannot_read_is_left_to_others():
    a, b = halves(2, 32, 16), halves(2, 16, 64)
    out = torch.full((2, 32, 64), CANARY, dtype=torch.float16)
    wide = halves(2, 64, 32)
    refused = [
        (wide[:, ::2, ::2], b, out),  # entries that are not adjacent
        (halves(4, 32, 16)[::2], b, out),  # matrices that are not one below the other
        (a[:, :24], b, out[:, :24]),  # a tile would reach into the next matrix
        (a, b, out.mT.contiguous().mT),  # C by columns
        (a.float(), b.float(), out.float()),
        (torch.zeros(2 * 32 * 16 + 1).half()[1:].view(2, 32, 16), b, out),  # an address of 2 bytes
    ]
    assert multiply_stack(halves(2, 64, 16)[:, ::2], b, out, tile=STACK_TILE)  # rows that lie apart are fine
    for left, right, result in refused:
        before = result.clone()
        assert not multiply_stack(left, right, result, tile=STACK_TILE)
        assert torch.equal(before, result)
