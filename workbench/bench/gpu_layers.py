"""Layers of large models on a GPU: what `auto` chooses beside torch's product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import PlanError
from .case import Case, Figures, Options, Say
from .gpu_products import RATES, SPENT, Sizes, Tensor, ahead, checked, error_of, operands, paired


@dataclass(frozen=True)
class Contest:
    """The operands of a product, the plan that `auto` has for it, and what runs it."""

    a: Tensor
    b: Tensor
    dtype: str
    plan: Any

    @property
    def by_scheme(self) -> bool:
        return bool(self.plan.candidate.strategy != "vendor")


def contest(dtype: str, sizes: Sizes, seed: int) -> Contest:
    """Standard normal operands of one product.

    Raises:
        PlanError: there is no GPU, or it was not measured.
    """
    from ...kernels.cuda.executor import request_of
    from ...kernels.cuda.machine import device_profile, require_device
    from ...kernels.torch.dispatch import plan_of
    from ...kernels.torch.recipe import Recipe

    require_device()
    if device_profile(0) is None:
        raise PlanError("this GPU was not measured: run lcma doctor --profile --device cuda first")
    a, b = operands(dtype, sizes, seed)
    return Contest(a, b, dtype, plan_of(Recipe(), request_of(a, b, dtype)))


def layer(dtype: str, sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """One layer: `auto` against torch's product, in turn; where torch's is chosen nothing is left to be timed."""
    import torch

    from ...kernels.torch.ops import matmul

    found = contest(dtype, sizes, seed)
    figures: dict[str, Any] = {
        "plan": str(found.plan.candidate),
        "by_scheme": found.by_scheme,
        "predicted_ms": 1e3 * (found.plan.seconds or 0.0),
    }
    if not found.by_scheme:
        return {**figures, "ratio": 1.0}
    a, b = found.a, found.b
    checked("auto", a, b, matmul(a, b), error_of(a, b, torch.matmul(a, b)))
    calls = {"vendor": lambda: torch.matmul(a, b), "online": lambda: matmul(a, b)}
    return {**figures, **paired(calls, sizes, rounds, say)}


LAYERS, MOST_ROWS = 12, 20480
"""Layers of the paper's 960, of each dtype, unless --sample says otherwise; its largest M."""


def layer_cases(options: Options) -> Iterator[Case]:
    """Some of the paper's 960 products, in each dtype."""
    from ...kernels.planning.workloads import sample

    for dtype in options.dtypes or ("float32", "float64", "bfloat16"):
        for m, one in sample(options.sample or LAYERS, MOST_ROWS, 24 << 30, 8):
            sizes = m, one.k, one.n
            run = partial(layer, dtype, sizes, options.rounds or 5, options.seed)
            key = f"layer {dtype} {one.model} {one.layer} {m}x{one.k}x{one.n}"
            # Two contenders, of at least SPENT in each of about six rounds.
            once = 2 * m * one.k * one.n / RATES[dtype]
            yield Case(key, run, 2 + 12 * max(SPENT, once) + 4 * once, ahead=partial(ahead, "auto", dtype, sizes))
