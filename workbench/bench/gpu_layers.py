"""What `auto` chooses on a GPU: layers of large models beside torch's product, and beside all other plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ...errors import PlanError
from ...kernels import decision_for
from ...kernels.arrays import torch
from ...kernels.cuda import clock
from ...kernels.dense.chains import Chain
from ...kernels.torch.dispatch import recipe_plan
from ...kernels.torch.recipe import AUTO, ProductRecipe, named
from ...lazy import LateModule
from .case import Case, Figures, Options, Say
from .contest import Call, Contest, CudaClock
from .gpu_products import RATES, SPENT, Sizes, VendorJudge, ahead, graphed, intensity, operands, paired, request_for
from .requirements import require_measured_gpu
from .workloads import sample

ops: Any = LateModule("...kernels.torch.ops", __package__)

SHORT = 1e-3
"""Seconds of torch's product, about, below which both are replayed from CUDA graphs: row "launch" is of launches."""

MOST_ROWS, MOST_BYTES = 20480, 24 << 30
"""The paper's largest M, and the maximum bytes of a product's matrices with 8 bytes an element."""

FIXED = (("strassen",), ("strassen", "strassen"), ("strassen",) * 3, ("laderman",), ("4x4x5",), ("5x5x5",))
"""Schemes by level that a chosen plan is measured against, whatever the model thinks of them."""

COARSE = ("bfloat16", "float16")
"""Dtypes in which three levels lose too much to be a choice."""

TOP = 6
"""Schemes that the model puts first and that are measured too."""

VENDOR = "vendor"
"""The name of torch's product among the contenders."""

SHAPES, SPAN = 40, (1e-3, 30e-3)
"""Shapes of each dtype whose choice is measured, unless --sample says otherwise, and the seconds that torch's product
should take: of shorter ones launches decide."""

WARM = 0.1
"""Seconds that a GPU which has rested is faster than it stays."""

HEAT, NEAR, CHOICE_SPENT = 0.01, 1.15, 0.02
"""Seconds of a contender in the first heat, how much slower than its winner those are that go on, and their rounds'."""


def vendor_seconds(dtype: str, sizes: Sizes) -> float:
    """About what torch's product takes."""
    m, k, n = sizes
    return 2 * m * k * n / RATES[dtype]


def layer(dtype: str, sizes: Sizes, rounds: int, seed: int, spent: float, say: Say, graphs: bool = True) -> Figures:
    """One layer: `auto` against torch's product, in turn, where torch's is chosen too.

    With `graphs` short products (SHORT) are replayed from CUDA graphs.
    """
    require_measured_gpu()
    a, b = operands(dtype, sizes, seed)
    plan = recipe_plan(ProductRecipe(), request_for(dtype, sizes))
    short = graphs and vendor_seconds(dtype, sizes) < SHORT
    calls: dict[str, Call] = {VENDOR: partial(torch.matmul, a, b), "online": partial(ops.matmul, a, b)}
    calls = {name: graphed(call) for name, call in calls.items()} if short else calls
    return {
        "plan": str(plan.candidate),
        "by_scheme": plan.candidate.strategy != VENDOR,
        "graphed": short,
        "predicted_ms": 1e3 * (plan.seconds or 0.0),
        **paired(calls, sizes, rounds, say, spent, VendorJudge(a, b)),
    }


def sampled(count: int, dtype: str, span: tuple[float, float], distinct: bool = False) -> Iterator[tuple[str, Sizes]]:
    """`count` of the paper's 960 products that take torch so long in a dtype: the layers in turn, M spread evenly.

    `distinct`: layers of equal sizes count once.
    """

    def fits(m: int, one: Any) -> bool:
        return span[0] <= vendor_seconds(dtype, (m, one.k, one.n)) <= span[1]

    # Layers whose products are all shorter or longer are skipped, so more are drawn.
    every = sample(len(RATES) * 960 if distinct else 2 * count, MOST_ROWS, MOST_BYTES, 8, fits)
    found: dict[object, tuple[str, Sizes]] = {}
    for place, (m, one) in enumerate(every):
        sizes = m, one.k, one.n
        found.setdefault(sizes if distinct else place, (f"{one.model} {one.layer} {m}x{one.k}x{one.n}", sizes))
    yield from list(found.values())[:count]


def layer_cases(
    options: Options,
    dtypes: tuple[str, ...],
    count: int,
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
        for name, sizes in sampled(options.sample or count, dtype, span.get(dtype, (0.0, math.inf))):
            run = partial(layer, dtype, sizes, rounds, options.seed, spent)
            yield Case(f"layer {dtype} {name}", run, ahead=partial(ahead, AUTO, dtype, sizes))


def contenders(dtype: str, sizes: Sizes) -> tuple[str, dict[str, str]]:
    """The name of the plan that `auto` chooses, and the recipes of all plans that are measured, by name.

    Plans of the same levels and method are one contender. The model's first are of different grids and
    products: it does not tell the orders of two levels apart.
    """
    require_measured_gpu()
    request = request_for(dtype, sizes)
    chosen = recipe_plan(ProductRecipe(), request).candidate
    found = {VENDOR: AUTO} if chosen.strategy == VENDOR else {str(chosen): AUTO}
    first: dict[tuple[float, ...], Chain] = {}
    for proposal in decision_for(request).proposals:
        source = proposal.candidate.source
        if isinstance(source, Chain):
            costs = source.flat_costs
            first.setdefault((float(costs.m), float(costs.k), float(costs.n), float(costs.rank)), source)
    levels = [tuple(named(level.scheme) for level in chain.levels) for chain in list(first.values())[:TOP]]
    levels += [fixed for fixed in FIXED if dtype not in COARSE or len(fixed) < 3]
    for recipe in map("/".join, levels):
        try:
            found.setdefault(str(recipe_plan(ProductRecipe.parse(recipe), request).candidate), recipe)
        except PlanError:  # too many values alive, say: no choice then
            continue
    return next(iter(found)), found


def choice_ahead(dtype: str, sizes: Sizes) -> None:
    """All contenders on operands without data."""
    for recipe in contenders(dtype, sizes)[1].values():
        ahead(recipe, dtype, sizes)


def choice(dtype: str, sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """The chosen plan against the best measured: all are checked and run once, those that come near in turn."""
    chosen, recipes = contenders(dtype, sizes)
    a, b = operands(dtype, sizes, seed)
    calls: dict[str, Call] = {VENDOR: partial(torch.matmul, a, b)}
    calls |= {name: partial(ops.bilinear_mm, a, b, recipe) for name, recipe in recipes.items() if name != VENDOR}
    if chosen != VENDOR:
        calls[chosen] = partial(ops.matmul, a, b)
    judge, (m, k, n) = VendorJudge(a, b), sizes
    clock.seconds_of(calls[VENDOR], max(1, round(WARM / vendor_seconds(dtype, sizes))))
    times: dict[str, float] = {}
    for name, call in calls.items():
        say(name)
        judge(name, call())
        once = clock.seconds_of(call)
        times[name] = clock.seconds_of(call, max(1, round(HEAT / max(once, 1e-7))))
    near = [name for name, seconds in times.items() if seconds <= NEAR * min(times.values())]
    last = {name: calls[name] for name in dict.fromkeys((VENDOR, chosen, *near))}
    times |= Contest(last, rounds, CudaClock(CHOICE_SPENT)).run().medians
    best = min(last, key=lambda name: times[name])  # what a heat says of those that are out is less sure
    rates = {name: 2e-12 * m * k * n / times[one] for name, one in (("vendor", VENDOR), ("online", chosen))}
    return {
        "plan": chosen,
        "best": best,
        "of_best": times[chosen] / times[best],
        "ratio": times[VENDOR] / times[chosen],
        "vendor_ms": 1e3 * times[VENDOR],
        "online_ms": 1e3 * times[chosen],
        **{f"{name}_tflops": rate for name, rate in rates.items()},
        "flops_per_element": intensity(sizes),
        "in_rounds": list(last),
        "each_ms": {name: 1e3 * seconds for name, seconds in times.items()},
    }


def choice_cases(options: Options) -> Iterator[Case]:
    """The chosen plan beside all that could be chosen."""
    rounds = options.rounds or 3
    for dtype in options.dtypes or ("float32", "float64", "bfloat16", "tf32"):
        for name, sizes in sampled(options.sample or SHAPES, dtype, SPAN, distinct=True):
            run, compiled = partial(choice, dtype, sizes, rounds, options.seed), partial(choice_ahead, dtype, sizes)
            yield Case(f"choice {dtype} {name}", run, ahead=compiled)
