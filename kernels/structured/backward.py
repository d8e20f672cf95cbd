"""Both gradients of a product whose operands are batch-first: three transpositions, and GEMMs between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import apply_transposed, as_blocks
from .outer import is_gathered, outer_blocks, outer_tensors
from .pattern import Pattern
from .tensors import multiply_blocks
from .transposition import batch_first, batch_last, gathered_blocks

Tensor = Any


def naive_gradients(grad: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return dX = K^H dY and dW[i, j] = dY[i, :, j] X[i, :, j]^H of arrays."""
    a, d, b, c = weights.shape
    return apply_transposed([weights], [Pattern(a, b, c, d)], grad), outer_blocks(grad, np.conj(x), a, d)


def transposed_gradients(grad: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return `naive_gradients` of tensors of a GPU, dX batch-first, for batch-first grad (abd, n) and x (acd, n).

    Each operand is transposed once for both; the memory of the transposed x receives dX before its transposition.
    """
    import torch

    a, d, b, c = weights.shape
    pattern, adjoint = Pattern(a, b, c, d), weights.conj().mT.resolve_conj()
    if is_gathered(pattern, x.shape[1], x.itemsize):
        left, right = gathered_blocks(grad, b, d), gathered_blocks(x, c, d)
        grad_w = torch.bmm(left, right.mH).view(weights.shape)
        torch.bmm(adjoint.flatten(0, 1), left, out=right)
        return batch_first(right, c, d), grad_w
    left, right = batch_last(grad), batch_last(x)
    grad_w = outer_tensors(left, right.conj(), a, d)
    multiply_blocks(adjoint, as_blocks(left, a, b, d), as_blocks(right, a, c, d))
    return batch_first(right), grad_w
