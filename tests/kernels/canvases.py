"""Tensors in any order of storage, and results in the middle of a canvas whose border must stay as it was.

Triton's interpreter itself says nothing of reads and writes out of bounds.
"""

import torch

CANARY, INTEGER = 7.5, 0x5A5A


def drawn(shape, dtype, order="rows"):
    """Standard normal numbers stored by rows, by columns, or with gaps in both directions."""
    *batch, rows, cols = shape
    if order == "columns":
        return torch.randn(*batch, cols, rows, dtype=torch.float64).to(dtype).mT
    if order == "scattered":
        return torch.randn(*batch, 2 * rows, 3 * cols, dtype=torch.float64).to(dtype)[..., ::2, ::3]
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def framed(shape, dtype, order="rows"):
    """A tensor of NaN (integers: other numbers) in the middle of a canvas of canaries, and the canvas."""
    *batch, rows, cols = shape
    sizes = (cols, rows) if order == "columns" else (rows, cols)
    real = dtype.is_floating_point or dtype.is_complex
    canvas = torch.full((*batch, sizes[0] + 5, sizes[1] + 6), CANARY if real else INTEGER, dtype=dtype)
    inner = canvas[..., 2:-3, 3:-3]
    inner.fill_(torch.nan if real else -INTEGER)
    return (inner.mT if order == "columns" else inner), canvas


def untouched(inner, canvas):
    """Whether all of the canvas but `inner`, which is overwritten, is as it was."""
    canary = canvas.flatten()[-1].item()
    inner.fill_(canary)
    return canary in (CANARY, INTEGER) and bool((canvas == canary).all())


def written(run, shape, dtype, order="rows"):
    """What run(out) writes to a tensor in the middle of a canvas, whose border must stay."""
    out, canvas = framed(shape, dtype, order)
    run(out)
    found = out.clone()
    assert untouched(out, canvas)
    return found


def close(got, truth, limit):
    """Whether all entries are finite and the error is within the limit, relative in the Frobenius norm."""
    return bool((got.double() - truth.double()).norm() <= limit * truth.double().norm())
