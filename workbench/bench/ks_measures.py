"""Gradients and energy of Kronecker-sparse products against the paper's baselines, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from ...errors import PlanError, VerificationError
from ...kernels import Request
from ...kernels.arrays import Tensor, torch
from ...kernels.factored import BATCH_FIRST
from ...kernels.kronecker import KroneckerSparse, Pattern
from ...lazy import LateModule
from ..contenders import Contender, PlanContest
from ..gpu_nvml import energy_of, gpu_meter
from ..output import markdown_table
from ..schemes import AUTO
from .baselines import named_plan
from .case import Options, Say
from .contest import Contest, CudaClock, relative
from .ks_patterns import BATCH
from .ks_tables import Rows, by_dtype_and_layout
from .table import LIMITS

structured: Any = LateModule("...kernels.torch.structured", __package__)

SPENT = 0.02
"""Seconds of one contender in a round."""


def permuted_product(x: Tensor, weights: Tensor, pattern: Pattern, first: bool) -> Tensor:
    """K x by copies into blocks, one batched GEMM and copies back, all of it torch's own and differentiable.

    x is (n, cols) where `first`, else (cols, n); so is the result.
    """
    a, b, c, d = pattern.sizes
    blocks = weights.reshape(a * d, b, c)
    if first:
        gathered = x.view(-1, a, c, d).permute(0, 1, 3, 2).reshape(-1, a * d, c).transpose(0, 1)
        product = torch.bmm(gathered, blocks.mT).transpose(0, 1)
        return product.reshape(-1, a, d, b).permute(0, 1, 3, 2).reshape(-1, pattern.rows)
    gathered = x.view(a, c, d, -1).permute(0, 2, 1, 3).reshape(a * d, c, -1)
    return torch.bmm(blocks, gathered).view(a, d, b, -1).permute(0, 2, 1, 3).reshape(pattern.rows, -1)


def gradient_figures(pattern: Pattern, dtype: str, order: str, options: Options, say: Say) -> dict[str, Any]:
    """Milliseconds of dX and dW of one product together, the graph kept; `ratio`: those that autograd derives from a
    permuted batched GEMM over ours."""
    torch.backends.cuda.matmul.allow_tf32 = False
    first = order == BATCH_FIRST
    generator = torch.Generator("cuda").manual_seed(options.seed)
    kind = getattr(torch, dtype)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device="cuda", dtype=kind)

    try:
        x = drawn(*((BATCH, pattern.cols) if first else (pattern.cols, BATCH))).requires_grad_()
        weights = drawn(*pattern.parameter_shape).mul_(pattern.c**-0.5).requires_grad_()
        columns = structured.structured_mm(x.T if first else x, [weights], KroneckerSparse.of(pattern), last=first)
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
        if not max(differences) <= LIMITS["Kronecker-sparse gradient"][dtype]:
            raise VerificationError(f"gradients differ by {max(differences):.1e} from autograd's; nothing was timed")
        del found
        ms = Contest(calls, options.rounds or 5, CudaClock(SPENT), say).run().ms
    except torch.OutOfMemoryError as error:
        raise PlanError(f"gradients of {pattern} at batch {BATCH} do not fit the GPU's memory") from error
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


BASELINES = ("bmm", "einsum", "bsr")
"""The baselines of the paper's comparison of energy."""

ROUNDS = 3

BELOW, PAPER_MEDIAN = 72.0, 0.85
"""The paper, Section 5: percent of patterns on which its kernel takes less energy than the least of BASELINES, and the
median of the ratios (float32, V100)."""


def joules_of(request: Request, seed: int, say: Say) -> dict[str, float | None]:
    """Joules of one product by the planner's choice ("auto") and by each of BASELINES that runs; None: not readable."""
    contenders = tuple(Contender(name, named_plan(request, name), AUTO, name != AUTO) for name in (AUTO, *BASELINES))
    calls, _ = PlanContest(request, contenders, "", seed).prepared(say)
    times = Contest(calls, ROUNDS, CudaClock(), say).run().medians
    say("measuring energy")
    return energy_of(calls, gpu_meter(), times, torch.cuda.synchronize)


def energy_figures(joules: Mapping[str, float | None]) -> dict[str, Any]:
    """The figures of a row: joules, their ratios to bmm and to the least of BASELINES; None where not readable."""
    mine, permuted = joules["auto"], joules.get("bmm")
    others = [one for name in BASELINES if (one := joules.get(name)) is not None]
    return {
        "joules": dict(joules),
        "readable": "yes" if mine is not None else "not readable",
        "energy_over_bmm": None if mine is None or permuted is None else mine / permuted,
        "energy_over_best": None if mine is None or not others else mine / min(others),
    }


def energy_lines(rows: Rows) -> Iterator[str]:
    """Markdown: by dtype and layout how often the choice takes less energy, and the median ratio."""
    yield from ("### Energy", "")
    columns, lines = ("dtype", "layout", "over", "patterns", "below %", "median", "paper: below %, median"), []
    for (dtype, layout), group in by_dtype_and_layout(rows).items():
        for over, against in (("bmm", "bmm"), ("best", f"min({', '.join(BASELINES)})")):
            known = [row[f"energy_over_{over}"] for row in group]
            found = [one for one in known if one is not None]
            figures: tuple[object, ...] = (len(known), "not readable", "", "")
            if found:
                below = 100 * sum(one < 1 for one in found) / len(found)
                paper = f"{BELOW:.0f}, {PAPER_MEDIAN}" if over == "best" and dtype == "float32" else ""
                figures = (len(found), f"{below:.3g}", f"{median(found):.3g}", paper)
            lines.append((dtype, layout, against, *figures))
    yield from markdown_table(columns, lines).splitlines()
