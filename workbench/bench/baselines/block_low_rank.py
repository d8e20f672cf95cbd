"""The papers' own form of a block low-rank product: batched GEMMs between permutations of their results.

This is published code before any optimisation, written with the operations of numpy or torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ....kernels import Request
from ....kernels.structured.block_low_rank import Blast, LowRank, Monarch
from ....kernels.structured.chain import FactorChain
from ....kernels.structured.strategy import chain_in
from ....kernels.structured.views import padded
from .product import Array, Baseline, Factors


def baseline(request: Request, name: str) -> Baseline:
    """Return the papers' form; its permutations take as much as the results that they copy."""
    structure = chain_in(request)
    held = 2 * sum(structure.intermediates()) * padded(request.n) + structure.rows * request.n
    return Baseline(request, name, partial(_multiply, structure), held * request.itemsize)


def _multiply(structure: FactorChain, factors: Factors, x: Array, out: Array) -> None:
    rows = np.ascontiguousarray(x.T) if isinstance(x, np.ndarray) else x.T.contiguous()
    out[...] = multiply_permuted(structure, factors, rows).T


def multiply_permuted(structure: FactorChain, factors: Sequence[Array], x: Array) -> Array:
    """Compute Y (n, rows) = x W^T for x (n, cols), with every permutation as a copy."""
    if isinstance(structure, LowRank):
        return (x @ factors[1].T) @ factors[0].T
    assert isinstance(structure, Monarch | Blast)
    n, b1, b2, r = len(x), structure.b1, structure.b2, structure.rank
    parts = _swapped(x.reshape(n, b1, structure.p), 0, 1)  # (b1, n, p)
    if isinstance(structure, Monarch):
        left, right = factors
        inner = parts @ _swapped(right.reshape(b1, r * b2, structure.p), 1, 2)  # (b1, n, r b2)
        inner = _copied(_swapped(inner.reshape(b1, n, r, b2), 2, 3))  # (b1, n, b2, r)
        inner = _copied(_moved(inner, (2, 1, 0, 3)))  # (b2, n, b1, r)
        blocks = inner.reshape(b2, n, b1 * r) @ _swapped(left.reshape(b2, structure.q, b1 * r), 1, 2)
        order = (1, 2, 0) if structure.interleaved else (1, 0, 2)
        return _copied(_moved(blocks, order)).reshape(n, structure.rows)
    left, scales, right = factors
    inner = parts @ right.swapaxes(1, 2)  # (b1, n, r)
    mixed = _copied(_moved(inner, (2, 1, 0))) @ scales.swapaxes(1, 2)  # (r, n, b2)
    blocks = _copied(_moved(mixed, (2, 1, 0))) @ left.swapaxes(1, 2)  # (b2, n, q)
    return _copied(blocks.swapaxes(0, 1)).reshape(n, structure.rows)


def _swapped(x: Array, first: int, second: int) -> Array:
    return x.swapaxes(first, second)


def _moved(x: Array, axes: tuple[int, ...]) -> Array:
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(axes)


def _copied(x: Array) -> Array:
    return np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x.contiguous()
