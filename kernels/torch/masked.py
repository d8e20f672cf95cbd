"""Masked products of tensors: the operator `lcma::masked_mm`, with derivatives of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ..arrays import is_tensor
from ..causal.block_masks import (
    TILE,
    Kinds,
    Mask,
    block_runs,
    block_sizes,
    coarse_mask,
    cut_halves,
    kinds_of,
    multiply_runs,
    scheme_reason,
)
from ..codegen.certified import SchemeLike, certified
from ..cuda.requests import check_alike
from ..cuda.triangular_products import zero_outside_triangle
from ..products.triangular import masked
from ..structure import BlockMask
from .bilinear import Options, define_bilinear, empty_product
from .ops import bilinear_mm
from .processor import through_numpy
from .recipe import named


def masked_matmul(a: Tensor, b: Tensor, mask: Mask, scheme: SchemeLike | None = None) -> Tensor:
    """See `lcma.masked_matmul`."""
    kinds = _kinds(mask)
    if scheme is None:
        return _operator(a, b, kinds, "out")
    proven = certified(scheme)
    if reason := scheme_reason(proven.target, kinds.numpy()):
        raise PlanError(reason)
    # The operator of schemes has derivatives: products by the same scheme with its roles permuted.
    return bilinear_mm(a, b, named(proven))


def _kinds(mask: Any) -> Tensor:
    """Return the kind of every block, on the CPU."""
    if not is_tensor(mask):
        return torch.from_numpy(kinds_of(mask))
    if mask.ndim != 2 or mask.dtype != torch.bool:
        raise PlanError(f"mask must be a 2-d boolean tensor or rows of letters, not {mask.ndim}-d {mask.dtype}")
    return mask.to("cpu", torch.int8)


def _run(a: Tensor, b: Tensor, mask: Tensor, side: str) -> Tensor:
    """Compute the product whose result (side "out") or left operand ("left") is masked."""
    check_alike(a, b)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise PlanError(f"operands of shapes {tuple(a.shape)} and {tuple(b.shape)} don't multiply")
    kinds = mask.numpy()
    if side == "out" and a.device.type == "cpu":
        return through_numpy(lambda x, y: masked(x, y, kinds), a, b)
    return by_runs(a, b, kinds, side)


def by_runs(a: Tensor, b: Tensor, kinds: Kinds, side: str) -> Tensor:
    """Run one `torch.mm` for each run of wanted blocks of a row of blocks; masked parts of blocks are zeroed.

    Blocks smaller than TILE are joined to tiles: tiles without wanted elements are skipped.

    Raises:
        PlanError: the mask does not fit the matrix, or a half block is not square.
    """
    m, k, n = *a.shape[-2:], b.shape[-1]
    label, rows, cols = ("the product", m, n) if side == "out" else ("a", m, k)
    if reason := BlockMask.of(kinds).reason(rows, cols):
        raise PlanError(f"{label} {reason}")
    height, width = block_sizes(kinds, rows, cols)
    inside = None
    if min(height, width) < TILE and max(rows, cols) > 1:
        inside = _elements(kinds, rows, cols).to(a.device)
        down, across = max(1, TILE // max(height, 1)), max(1, TILE // max(width, 1))
        kinds, height, width = coarse_mask(kinds, down, across), height * down, width * across
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = a.expand(*batch, m, k), b.expand(*batch, k, n)
    out = a.new_zeros((*batch, m, n))
    for index in np.ndindex(*batch):
        if side == "out":
            multiply_runs(torch.mm, zero_outside_triangle, left[index], right[index], out[index], kinds, height, width)
        else:
            _present(left[index], right[index], out[index], kinds, (height, width), inside)
    if side == "out" and inside is not None:
        out.masked_fill_(~inside, 0)
    return out


def _present(a: Tensor, b: Tensor, out: Tensor, kinds: Kinds, sizes: tuple[int, int], inside: Tensor | None) -> None:
    """Add the products of the runs of a masked left operand; masked parts of a block may be NaN."""
    width = sizes[1]
    for row, rows, start, stop, cols in block_runs(kinds, *sizes):
        run = a[rows, cols]
        halves = [j for j in range(start, stop) if row[j] != Kind.FULL]
        if inside is not None:
            run = run.masked_fill(~inside[rows, cols], 0)
        elif halves:
            run = run.clone()
        for j in halves:
            zero_outside_triangle(run[:, (j - start) * width : (j - start + 1) * width], bool(row[j] == Kind.UPPER))
        out[rows].addmm_(run, b[cols])


def _elements(kinds: Kinds, rows: int, cols: int) -> Tensor:
    """Return the element mask of a block mask."""
    height, width = block_sizes(kinds, rows, cols)
    mask = torch.from_numpy(kinds != Kind.ABSENT)
    mask = mask.repeat_interleave(height, 0).repeat_interleave(width, 1)[:rows, :cols].contiguous()
    cut_halves(zero_outside_triangle, mask, kinds, height, width)
    return mask


def _gradient(a: Tensor, b: Tensor, options: Options, grad: Tensor, of: int) -> Tensor:
    """Return the gradient of a or b.

    Of C = M o (A B): dA = (M o dC) B^H, dB^H = (M o dC)^H A; of C = (M o A) B: M o (dC B^H) and (M o A)^H dC.
    """
    mask, side = options
    if of == 0:
        return _operator(grad, b.mH, mask, "left" if side == "out" else "out")
    factor, other = (grad, a) if side == "out" else (a, grad)
    product = _operator(factor.mH, other, _transposed(mask), "left")
    return product.mH if side == "out" else product


def _transposed(mask: Tensor) -> Tensor:
    """Return the mask of the transposed matrix: lower half blocks become upper ones."""
    lower, upper = mask == int(Kind.LOWER), mask == int(Kind.UPPER)
    return mask.masked_fill(lower, int(Kind.UPPER)).masked_fill(upper, int(Kind.LOWER)).mT.contiguous()


_operator = define_bilinear(
    "masked_mm(Tensor a, Tensor b, Tensor mask, str side) -> Tensor", _run, empty_product, _gradient
)
