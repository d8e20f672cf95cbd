"""Products by factors as they are planned, held to the definition."""

from functools import reduce

import numpy as np
import pytest

from lcma.kernels import Layout, decision_for
from lcma.kernels.block_low_rank import Blast, LowRank
from lcma.kernels.cpu.threads import single_threaded_blas
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse
from lcma.kernels.structured.rewrites import REWRITES

LAYOUTS = (Layout.ROWS, Layout.COLUMNS)
ORDER = {Layout.ROWS: "C", Layout.COLUMNS: "F"}
LIMITS = {"float16": 3e-3, "float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
"""Errors in the Frobenius norm, relative to that of W times that of X over the root of its rows: what products have."""


def widening_reason(structure):
    """What the refusal of "widened" says of this structure; None where it is widened."""
    if structure.is_blocked:
        return "in block order"
    return "nothing is to be widened" if all(pattern.d == 1 for pattern in structure.patterns) else None


def random_array(shape, dtype, seed=0):
    """Standard normal numbers in an array of its own."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal(shape) for _ in range(2)]
    return (parts[0] + 1j * parts[1] if "complex" in dtype else parts[0]).astype(dtype)


def wide_dense(structure, factors):
    """W in twice the precision of its factors."""
    dtype = np.promote_types(factors[0].dtype, "float64")
    return FactoredMatrix.of(structure, [weights.astype(dtype) for weights in factors]).dense()


def defined(structure, factors):
    """W by definition, as a differentiable function of the factors, which are tensors.

    Low-rank: U V; blocks k, l of Monarch: U[k, :, l] V[l, :, k], of BLAST: U[k] diag(S[:, k, l]) V[l].
    """
    import torch

    if isinstance(structure, LowRank):
        return factors[0] @ factors[1]
    if isinstance(structure, KroneckerSparse):
        full = []
        for weights, pattern in zip(factors, structure.patterns, strict=True):
            eyes = (torch.eye(size, dtype=weights.dtype) for size in (pattern.a, pattern.d))
            factor = torch.einsum("ijpq,ik,jl->ipjkql", weights, *eyes)
            full.append(factor.reshape(pattern.rows, pattern.cols))
        return reduce(torch.matmul, full)
    if isinstance(structure, Blast):
        blocks = torch.einsum("kqr,rkl,lrp->kqlp", *factors)
    else:
        blocks = torch.einsum("kqls,lskp->kqlp", *factors)
        blocks = blocks.swapaxes(0, 1) if structure.interleaved else blocks
    return blocks.reshape(structure.rows, structure.cols)


def given_to(device):
    """What an executor of the device takes for an array, on the same memory."""
    return np.asarray if device == "cpu" else pytest.importorskip("torch").from_numpy


def check_product(structure, n, strategy, dtype="float64", layouts=LAYOUTS[:1] * 2, device="cpu", limit=None, **more):
    """Check the product with n columns that a strategy is planned for; return the plan.

    By factors as they are, repeated without checks, and by prepared ones into a result amid memory that must stay.
    """
    allowed = {"layouts": layouts, "max_extra_bytes": 1 << 20}
    plan = decision_for(factored_request(structure, n, dtype, device=device, **allowed, **more), strategy=strategy).plan
    executor, convert, order = plan.build(), given_to(device), ORDER[layouts[1]]
    arrays = [weights.copy() for weights in FactoredMatrix.random(structure, dtype=dtype).factors]
    x = random_array((structure.cols, n), dtype)
    full = wide_dense(structure, arrays)
    most = (limit or LIMITS[dtype]) * np.linalg.norm(full) * np.linalg.norm(x) / structure.cols**0.5
    factors, given = [convert(weights) for weights in arrays], convert(np.array(x, order=ORDER[layouts[0]]))
    found = np.asarray(executor.again(factors, given))
    assert found.flags.c_contiguous if order == "C" else found.flags.f_contiguous
    prepared = executor.prepare(factors)
    assert (prepared.nbytes > 0) == (strategy in REWRITES and n > 0)  # of an empty product nothing is rewritten
    assert prepared.nbytes <= plan.workspace == executor.workspace
    canvas = np.full((structure.rows + 2, n + 2), np.nan, dtype, order)
    out = canvas[1:-1, 1:-1]
    assert executor.run(prepared, given, result := convert(out)) is result
    assert np.isnan(canvas).sum() == canvas.size - out.size
    with single_threaded_blas():  # waiting for another thread takes longer than the product
        wanted = full @ x
    for product in (found, out):
        assert np.linalg.norm(product - wanted) <= most
    return plan
