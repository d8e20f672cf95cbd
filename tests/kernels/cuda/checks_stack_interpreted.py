"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: stacks of products on CPU tensors, in float16.

What lies outside a triangle is NaN, so is fresh memory, and matrices lie in the middle of wider ones
whose border must stay as it was.
"""

import pytest
import torch

from lcma.kernels.causal.naive import plain, triangular
from lcma.kernels.cuda.stack import multiply_stack
from lcma.kernels.cuda.tiles import Tile
from lcma.kernels.cuda.triangular import on_tiles
from lcma.schemes_db.symmetry import SIDES, Triangle

CANARY = 7.5
TILE = Tile(32, 64, 16, 4, 2)


def stored(x, transposed):
    """The same matrices one below the other in a wider memory, by rows or by columns."""
    x = x.mT if transposed else x
    count, rows, cols = x.shape
    wide = torch.full((count * rows, cols + 16), torch.nan, dtype=x.dtype)
    wide[:, :cols] = x.reshape(count * rows, cols)
    kept = wide.as_strided(x.shape, (rows * (cols + 16), cols + 16, 1))
    return kept.mT if transposed else kept


def canvas_of(count, m, n):
    canvas = torch.full((count * m, n + 24), CANARY, dtype=torch.float16)
    out = canvas.as_strided((count, m, n), (m * (n + 24), n + 24, 1))
    out.fill_(torch.nan)
    return canvas, out


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64).half()


def check(out, canvas, truth):
    assert torch.isfinite(out).all()
    assert (out.double() - truth).norm() <= 2e-3 * truth.norm()
    assert (canvas[:, out.shape[2] :] == CANARY).all()


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
@pytest.mark.parametrize(("count", "m", "k", "n"), [(3, 96, 48, 128), (1, 40, 24, 72), (4, 32, 16, 64)])
def test_every_product_of_a_stack(count, m, k, n, of_a, of_b):
    a, b = drawn(count, m, k), drawn(count, k, n)
    canvas, out = canvas_of(count, m, n)
    assert multiply_stack(stored(a, of_a), stored(b, of_b), out, tile=TILE)
    check(out, canvas, a.double() @ b.double())


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_triangle_is_all_that_is_read_and_written(side, upper):
    triangle, size, other = Triangle(side, upper), 96, 128
    shape_a, shape_b = {"out": ((size, 48), (48, size)), "left": ((size, size), (size, other))}.get(
        side, ((other, size), (size, size))
    )
    a, b = drawn(4, *shape_a), drawn(2, *shape_b)
    there = triangular(torch.ones(size, size), upper) > 0
    clean = {"left": a, "right": b}.get(side)
    if clean is not None:
        spoiled = clean.masked_fill(~there, torch.nan)
        clean = clean.masked_fill(~there, 0)
    clean_a, clean_b = (clean if side == "left" else a), (clean if side == "right" else b)
    a, b = (spoiled if side == "left" else a), (spoiled if side == "right" else b)
    truth = plain(clean_a.double(), clean_b.double().repeat_interleave(2, 0), triangle)
    canvas, out = canvas_of(4, *truth.shape[1:])
    assert on_tiles(stored(a, upper), stored(b, not upper), triangle, out, tile=TILE)
    check(out, canvas, truth)


def test_what_the_accelerator_cannot_read_is_left_to_others():
    a, b = drawn(2, 32, 16), drawn(2, 16, 64)
    out = torch.full((2, 32, 64), CANARY, dtype=torch.float16)
    wide = drawn(2, 64, 32)
    apart, doubled = drawn(2, 64, 16)[:, ::2], drawn(4, 32, 16)[::2]
    refused = [
        (wide[:, ::2, ::2], b, out),  # entries that are not adjacent
        (doubled, b, out),  # matrices that are not one below the other
        (a[:, :24], b, out[:, :24]),  # a tile would reach into the next matrix
        (a, b, out.mT.contiguous().mT),  # C by columns
        (a.float(), b.float(), out.float()),
        (torch.zeros(2 * 32 * 16 + 1).half()[1:].view(2, 32, 16), b, out),  # an address of 2 bytes
    ]
    assert multiply_stack(apart, b, out, tile=TILE)  # rows that lie apart are fine
    for left, right, result in refused:
        before = result.clone()
        assert not multiply_stack(left, right, result, tile=TILE)
        assert torch.equal(before, result)
