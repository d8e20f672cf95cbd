"""The plan that `auto` chooses on a GPU beside all that it could have chosen: short rounds of many contenders."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...errors import PlanError
from ...kernels import decision_for
from ...kernels.cuda import clock
from ...kernels.cuda.requests import request_of
from ...kernels.dense.chains import Chain
from ...kernels.planning.workloads import GOLDEN, MODEL_ROWS, layers
from ...kernels.precision import arithmetic_of
from ...kernels.torch.dispatch import recipe_plan
from ...kernels.torch.recipe import AUTO, ProductRecipe, named
from .case import Bar, Case, Figures, Options, Say
from .contest import Call, Contest, CudaClock
from .gpu_products import RATES, Sizes, VendorJudge, ahead, blank, intensity, operands
from .requirements import require_measured_gpu

FIXED = (("strassen",), ("strassen", "strassen"), ("strassen",) * 3, ("laderman",), ("4x4x5",), ("5x5x5",))
"""Schemes by level that a chosen plan is measured against, whatever the model thinks of them."""

COARSE = ("bfloat16", "float16")
"""Dtypes in which three levels lose too much to be a choice."""

TOP = 6
"""Schemes that the model puts first and that are measured too."""

VENDOR = "vendor"
"""The name of torch's product among the contenders."""

SHAPES = 40
"""Shapes of each dtype unless --sample says otherwise."""

SHORTEST, LONGEST = 1e-3, 30e-3
"""Seconds that torch's product of a shape should take: of shorter ones launches decide."""

MOST_BYTES = 24 << 30
"""Maximum bytes of a shape's matrices, with 8 bytes an element."""

WARM = 0.1
"""Seconds that a GPU which has rested is faster than it stays."""

HEAT, NEAR, SPENT = 0.01, 1.15, 0.02
"""Seconds of a contender in the first heat, how much slower than its winner those are that go on, and their rounds'."""

WORST = {"bfloat16": 0.08}
"""Bars of the loss of the choice against the best, by dtype (0.06 unless given)."""


def worst_of(dtype: str) -> float:
    """The bar of the loss of the chosen plan against the best measured one, for any shape."""
    return WORST.get(dtype, 0.06)


def contenders(dtype: str, sizes: Sizes) -> tuple[str, dict[str, str]]:
    """The name of the plan that `auto` chooses, and the recipes of all plans that are measured, by name.

    Plans of the same levels and method are one contender. The model's first are of different grids and
    products: it does not tell the orders of two levels apart.
    """
    require_measured_gpu()
    request = request_of(*blank(dtype, sizes), arithmetic_of(dtype).precision)
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


def prepared(dtype: str, sizes: Sizes) -> None:
    """All contenders on operands without data."""
    for recipe in contenders(dtype, sizes)[1].values():
        ahead(recipe, dtype, sizes)


def against_best(dtype: str, sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """The chosen plan against the best measured: all are checked and run once, those that come near in turn."""
    import torch

    from ...kernels.torch.ops import bilinear_mm, matmul

    chosen, recipes = contenders(dtype, sizes)
    a, b = operands(dtype, sizes, seed)
    calls: dict[str, Call] = {VENDOR: partial(torch.matmul, a, b)}
    calls |= {name: partial(bilinear_mm, a, b, recipe) for name, recipe in recipes.items() if name != VENDOR}
    if chosen != VENDOR:
        calls[chosen] = partial(matmul, a, b)
    judge, (m, k, n) = VendorJudge(a, b), sizes
    clock.seconds_of(calls[VENDOR], max(1, round(WARM * RATES[dtype] / (2 * m * k * n))))
    times: dict[str, float] = {}
    for name, call in calls.items():
        say(name)
        judge(name, call())
        once = clock.seconds_of(call)
        times[name] = clock.seconds_of(call, max(1, round(HEAT / max(once, 1e-7))))
    near = [name for name, seconds in times.items() if seconds <= NEAR * min(times.values())]
    last = {name: calls[name] for name in dict.fromkeys((VENDOR, chosen, *near))}
    times |= Contest(last, rounds, CudaClock(SPENT)).run().medians
    best = min(last, key=lambda name: times[name])  # what a heat says of those that are out is less sure
    return {
        "plan": chosen,
        "best": best,
        "of_best": times[chosen] / times[best],
        "ratio": times[VENDOR] / times[chosen],
        "vendor_ms": 1e3 * times[VENDOR],
        "online_ms": 1e3 * times[chosen],
        "vendor_tflops": 2e-12 * m * k * n / times[VENDOR],
        "online_tflops": 2e-12 * m * k * n / times[chosen],
        "flops_per_element": intensity(sizes),
        "in_rounds": list(last),
        "each_ms": {name: 1e3 * seconds for name, seconds in times.items()},
    }


def shapes(dtype: str, count: int) -> Iterator[tuple[str, Sizes]]:
    """`count` of the paper's 960 products that take torch a few milliseconds: the layers in turn, M spread evenly."""
    known, taken = layers(), set[Sizes]()
    for i in range(len(known) * len(MODEL_ROWS)):
        if len(taken) == count:
            return
        one = known[i % len(known)]
        rows = [
            m
            for m in MODEL_ROWS
            if SHORTEST <= 2 * m * one.k * one.n / RATES[dtype] <= LONGEST
            and 8 * (m * one.k + one.k * one.n + m * one.n) <= MOST_BYTES
        ]
        if not rows:
            continue
        sizes = rows[int(i * GOLDEN % 1 * len(rows))], one.k, one.n
        if sizes not in taken:
            taken.add(sizes)
            yield f"{one.model} {one.layer} {sizes[0]}x{one.k}x{one.n}", sizes


def choice_cases(options: Options) -> Iterator[Case]:
    """The chosen plan beside all that could be chosen: at most 6% slower, 8% where heat decides."""
    for dtype in options.dtypes or ("float32", "float64", "bfloat16", "tf32"):
        for name, sizes in shapes(dtype, options.sample or SHAPES):
            m, k, n = sizes
            once, rounds = 2 * m * k * n / RATES[dtype], options.rounds or 3
            # A dozen contenders run three times, four of them in all rounds and the one that does not count.
            seconds = 0.5 + WARM + 12 * (2 * once + max(once, HEAT)) + 4 * (rounds + 2) * max(once, SPENT)
            yield Case(
                f"choice {dtype} {name}",
                partial(against_best, dtype, sizes, rounds, options.seed),
                seconds,
                (Bar("of_best", 1 + worst_of(dtype), at_most=True),),
                partial(prepared, dtype, sizes),
            )
