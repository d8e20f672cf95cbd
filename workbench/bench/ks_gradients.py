"""Gradients of Kronecker-sparse products over those that autograd derives from a permuted batched GEMM."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from ...errors import PlanError, VerificationError
from ...kernels.factored import BATCH_FIRST
from ...kernels.kronecker import KroneckerSparse, Pattern
from ..output import markdown_table
from .case import Say
from .contest import Contest, CudaClock, relative
from .ks_tables import Rows, by_dtype_and_layout

Tensor = Any

SPENT = 0.02
"""Seconds of one contender in a round."""

MOST_DIFFERENCE = {"float64": 1e-12, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""The largest relative difference between the two that counts as rounding."""


def permuted_product(x: Tensor, weights: Tensor, pattern: Pattern, first: bool) -> Tensor:
    """K x by copies into blocks, one batched GEMM and copies back, all of it torch's own and differentiable.

    x is (n, cols) where `first`, else (cols, n); so is the result.
    """
    import torch

    a, b, c, d = pattern.sizes
    blocks = weights.reshape(a * d, b, c)
    if first:
        gathered = x.view(-1, a, c, d).permute(0, 1, 3, 2).reshape(-1, a * d, c).transpose(0, 1)
        product = torch.bmm(gathered, blocks.mT).transpose(0, 1)
        return product.reshape(-1, a, d, b).permute(0, 1, 3, 2).reshape(-1, pattern.rows)
    gathered = x.view(a, c, d, -1).permute(0, 2, 1, 3).reshape(a * d, c, -1)
    return torch.bmm(blocks, gathered).view(a, d, b, -1).permute(0, 2, 1, 3).reshape(pattern.rows, -1)


def gradient_figures(
    pattern: Pattern, batch: int, dtype: str, order: str, rounds: int, seed: int, say: Say
) -> dict[str, Any]:
    """Milliseconds of dX and dW together, the graph kept; `ratio`: autograd's over ours."""
    import torch

    from ...kernels.torch.structured import structured_mm

    torch.backends.cuda.matmul.allow_tf32 = False
    first = order == BATCH_FIRST
    generator = torch.Generator("cuda").manual_seed(seed)
    kind = getattr(torch, dtype)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device="cuda", dtype=kind)

    try:
        x = drawn(*((batch, pattern.cols) if first else (pattern.cols, batch))).requires_grad_()
        weights = drawn(*pattern.parameter_shape).mul_(pattern.c**-0.5).requires_grad_()
        columns = structured_mm(x.T if first else x, [weights], KroneckerSparse.of(pattern), last=first)
        ours = columns.T if first else columns
        products = {"ours": ours, "bmm": permuted_product(x, weights, pattern, first)}
        grad = drawn(*ours.shape)
        calls = {
            name: lambda y=y: torch.autograd.grad(y, (x, weights), grad, retain_graph=True)
            for name, y in products.items()
        }
        say("checking")
        found = {name: call() for name, call in calls.items()}
        differences = [relative(mine, theirs) for mine, theirs in zip(*found.values(), strict=True)]
        if not max(differences) <= MOST_DIFFERENCE[dtype]:
            raise VerificationError(f"gradients differ by {max(differences):.1e} from autograd's; nothing was timed")
        del found
        ms = Contest(calls, rounds, CudaClock(SPENT), say).run().ms
    except torch.OutOfMemoryError as error:
        raise PlanError(f"gradients of {pattern} at batch {batch} do not fit the GPU's memory") from error
    return {"ratio": ms["bmm"] / ms["ours"], "ms": ms, "differences": differences}


def gradient_lines(rows: Rows) -> Iterator[str]:
    """Markdown: by dtype and layout how often our gradients are faster, and the median ratio."""
    yield from ("### Gradients", "")
    columns, lines = ("dtype", "layout", "patterns", "faster %", "median", "least", "greatest"), []
    for (dtype, layout), group in by_dtype_and_layout(rows).items():
        if ratios := [figures["ratio"] for figures in group]:
            faster = 100 * sum(ratio > 1 for ratio in ratios) / len(ratios)
            shown = (f"{one:.3g}" for one in (faster, median(ratios), min(ratios), max(ratios)))
            lines.append((dtype, layout, len(ratios), *shown))
    yield from markdown_table(columns, lines).splitlines()
