"""Layers of large models on a GPU: what `auto` chooses beside torch's product."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ...errors import PlanError
from ...kernels.cuda.requests import request_of
from ...kernels.planning.workloads import Layer, sample
from ...kernels.precision import arithmetic_of
from ...kernels.torch.dispatch import recipe_plan
from ...kernels.torch.recipe import ProductRecipe
from .case import Bar, Case, Figures, Options, Say
from .contest import Call
from .gpu_products import RATES, SPENT, Sizes, Tensor, VendorJudge, ahead, graphed, operands, paired
from .requirements import require_measured_gpu


def planned(dtype: str, sizes: Sizes, seed: int) -> tuple[Tensor, Tensor, Any]:
    """Standard normal operands of one product, and the plan that `auto` has for it."""
    require_measured_gpu()
    a, b = operands(dtype, sizes, seed)
    return a, b, recipe_plan(ProductRecipe(), request_of(a, b, arithmetic_of(dtype).precision))


def layer(dtype: str, sizes: Sizes, rounds: int, seed: int, spent: float, say: Say, graphs: bool = True) -> Figures:
    """One layer: `auto` against torch's product, in turn, where torch's is chosen too.

    With `graphs` short products (SHORT) are replayed from CUDA graphs: row "launch" has what a launch costs.
    """
    import torch

    from ...kernels.torch.ops import matmul

    a, b, plan = planned(dtype, sizes, seed)
    short = graphs and _seconds(dtype, sizes) < SHORT
    calls: dict[str, Call] = {}
    for name, call in (("vendor", torch.matmul), ("online", matmul)):
        calls[name] = graphed(partial(call, a, b)) if short else partial(call, a, b)
    return {
        "plan": str(plan.candidate),
        "by_scheme": plan.candidate.strategy != "vendor",
        "graphed": short,
        "predicted_ms": 1e3 * (plan.seconds or 0.0),
        **paired(calls, sizes, rounds, say, spent, VendorJudge(a, b)),
    }


SHORT = 1e-3
"""Seconds of torch's product, about."""

MOST_ROWS = 20480
"""The paper's largest M."""


def layer_cases(
    options: Options,
    dtypes: tuple[str, ...],
    count: int,
    bars: tuple[Bar, ...] = (),
    spent: float = SPENT,
    span: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> Iterator[Case]:
    """`count` of the paper's 960 products in each dtype, unless the options say otherwise; `spent` seconds a round.

    `span`: the least and the most seconds that torch's product takes, about, in some dtypes.
    """
    rounds = options.rounds or 5
    for dtype in options.dtypes or dtypes:
        if dtype not in RATES:
            raise PlanError(f"on a GPU layers are multiplied in {', '.join(RATES)}, not {dtype}")
        least, most = span.get(dtype, (0.0, math.inf))

        def fits(m: int, one: Layer, dtype: str = dtype, least: float = least, most: float = most) -> bool:
            return least <= _seconds(dtype, (m, one.k, one.n)) <= most

        wanted = options.sample or count
        # Layers whose products are all shorter or longer are skipped, so more are drawn.
        for m, one in sample(2 * wanted if dtype in span else wanted, MOST_ROWS, 24 << 30, 8, fits)[:wanted]:
            sizes = m, one.k, one.n
            run = partial(layer, dtype, sizes, rounds, options.seed, spent)
            key = f"layer {dtype} {one.model} {one.layer} {m}x{one.k}x{one.n}"
            once = _seconds(dtype, sizes)
            # Two contenders in every round, one of them twice, and a round more; four calls and a product in float64.
            seconds = 0.3 + 3 * (rounds + 1) * max(spent, once) + 6 * once
            yield Case(key, run, seconds, bars, partial(ahead, "auto", dtype, sizes))


def _seconds(dtype: str, sizes: Sizes) -> float:
    """About what torch's product takes."""
    m, k, n = sizes
    return 2 * m * k * n / RATES[dtype]
