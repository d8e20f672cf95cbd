"""The papers' own form of a block low-rank product: batched GEMMs between permutations of their results.

This is published code before any optimisation, written with the operations of numpy or torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....kernels import Request
from ....kernels.structured.block_low_rank import Blast, LowRank, Monarch
from ....kernels.structured.blocks import contiguous, permuted
from ....kernels.structured.chain import FactorChain
from ....kernels.structured.strategy import chain_in
from ....kernels.structured.views import padded
from . import Array, Baseline, Factors


def baseline(request: Request, name: str) -> Baseline:
    """Return the papers' form; its permutations take as much as the results that they copy."""
    structure = chain_in(request)
    held = 2 * sum(one.rows for one in structure.patterns[1:]) * padded(request.n) + structure.rows * request.n
    return Baseline(request, name, partial(_multiply, structure), held * request.itemsize)


def _multiply(structure: FactorChain, factors: Factors, x: Array, out: Array) -> None:
    out[...] = multiply_permuted(structure, factors, contiguous(x.T)).T


def multiply_permuted(structure: FactorChain, factors: Sequence[Array], x: Array) -> Array:
    """Compute Y (n, rows) = x W^T for x (n, cols), with every permutation as a copy."""
    if isinstance(structure, LowRank):
        return (x @ factors[1].T) @ factors[0].T
    assert isinstance(structure, Monarch | Blast)
    n, b1, b2, r = len(x), structure.b1, structure.b2, structure.rank
    parts = x.reshape(n, b1, structure.p).swapaxes(0, 1)  # (b1, n, p)
    if isinstance(structure, Monarch):
        left, right = factors
        inner = parts @ right.reshape(b1, r * b2, structure.p).swapaxes(1, 2)  # (b1, n, r b2)
        inner = contiguous(inner.reshape(b1, n, r, b2).swapaxes(2, 3))  # (b1, n, b2, r)
        inner = contiguous(permuted(inner, (2, 1, 0, 3)))  # (b2, n, b1, r)
        blocks = inner.reshape(b2, n, b1 * r) @ left.reshape(b2, structure.q, b1 * r).swapaxes(1, 2)
        order = (1, 2, 0) if structure.interleaved else (1, 0, 2)
        return contiguous(permuted(blocks, order)).reshape(n, structure.rows)
    left, scales, right = factors
    inner = parts @ right.swapaxes(1, 2)  # (b1, n, r)
    mixed = contiguous(permuted(inner, (2, 1, 0))) @ scales.swapaxes(1, 2)  # (r, n, b2)
    blocks = contiguous(permuted(mixed, (2, 1, 0))) @ left.swapaxes(1, 2)  # (b2, n, q)
    return contiguous(blocks.swapaxes(0, 1)).reshape(n, structure.rows)
