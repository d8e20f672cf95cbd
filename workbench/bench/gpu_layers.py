"""Layers of large models on a GPU: what `auto` chooses beside torch's product, and beside all that could be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import PlanError
from .case import Bar, Case, Figures, Options, Say
from .gpu_products import Sizes, Tensor, checked, error_of, operands, paired

FIXED = (
    ("strassen",),
    ("strassen", "strassen"),
    ("strassen",) * 3,
    ("laderman",),
    ("4x4x5",),
    ("5x5x5",),
)
"""Schemes by level that a chosen plan is measured against, whatever the model thinks of them."""

COARSE = ("bfloat16", "float16")
"""Dtypes in which three levels lose too much to be a choice."""

TOP = 6
"""Schemes that the model puts first and that are measured too."""


@dataclass(frozen=True)
class Contest:
    """The operands of a product, the plan that `auto` has for it, and what runs it."""

    a: Tensor
    b: Tensor
    dtype: str
    plan: Any

    @property
    def by_scheme(self) -> bool:
        return bool(self.plan.candidate.program.rank > 1)


def contest(dtype: str, sizes: Sizes, seed: int) -> Contest:
    """Standard normal operands of one product.

    Raises:
        PlanError: there is no GPU, or it was not measured.
    """
    from ...kernels.gpu.dispatch import plan_of
    from ...kernels.gpu.executor import request_of
    from ...kernels.gpu.machine import device_profile, require_device
    from ...kernels.gpu.recipe import Recipe

    require_device()
    if device_profile(0) is None:
        raise PlanError("this GPU was not measured: run lcma doctor --profile --device cuda first")
    a, b = operands(dtype, sizes, seed)
    return Contest(a, b, dtype, plan_of(Recipe(), request_of(a, b, dtype)))


def layer(dtype: str, sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """One layer: `auto` against torch's product, in turn; where torch's is chosen nothing is left to be timed."""
    import torch

    from ...kernels.ops import matmul

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


def against_best(dtype: str, sizes: Sizes, rounds: int, seed: int, say: Say) -> Figures:
    """The chosen plan against the best measured of torch's product, the model's first six and the fixed schemes."""
    import torch

    from ...kernels.gpu.choose import estimated
    from ...kernels.gpu.executor import request_of
    from ...kernels.gpu.machine import device_profile
    from ...kernels.gpu.recipe import named
    from ...kernels.ops import bilinear_mm, matmul

    found = contest(dtype, sizes, seed)
    a, b = found.a, found.b
    profile = device_profile(0)
    ladders = [] if profile is None else estimated(request_of(a, b, dtype), profile)[:TOP]
    levels = [tuple(map(named, ladder.schemes)) for _, ladder in ladders]
    levels += [fixed for fixed in FIXED if dtype not in COARSE or len(fixed) < 3]
    vendor = error_of(a, b, torch.matmul(a, b))
    calls: dict[str, Callable[[], object]] = {
        "vendor": lambda: torch.matmul(a, b),
        "online": lambda: matmul(a, b),
    }
    for recipe in dict.fromkeys("/".join(one) for one in levels):
        say(recipe)
        try:
            checked(recipe, a, b, bilinear_mm(a, b, recipe), vendor)
        except PlanError as error:  # too many values alive, say: no choice then
            say(str(error))
            continue
        calls[recipe] = _call(recipe, a, b)
    figures = paired(calls, sizes, rounds, say)
    times: Mapping[str, float] = {name: figures["vendor_ms" if name == "vendor" else f"{name}_ms"] for name in calls}
    rivals = {name: time for name, time in times.items() if name != "online"}
    best = min(rivals, key=lambda name: rivals[name])
    return {
        "plan": str(found.plan.candidate),
        "ratio": figures["ratio"],
        "best": best,
        "of_best": times["online"] / min(rivals[best], times["online"]),
        "each_ms": dict(times),
    }


def _call(recipe: str, a: Tensor, b: Tensor) -> Callable[[], object]:
    from ...kernels.ops import bilinear_mm

    return lambda: bilinear_mm(a, b, recipe)


LAYERS, SHAPES, MOST_ROWS = 12, 10, 20480
"""Layers of the paper's 960 and shapes beside them, of each dtype, unless --sample says otherwise; its largest M."""


def layer_cases(options: Options) -> Iterator[Case]:
    """Some of the paper's 960 products, in each dtype."""
    for dtype, sizes, name in _sampled(options, LAYERS, ("float32", "float64", "bfloat16")):
        run = partial(layer, dtype, sizes, options.rounds or 5, options.seed)
        yield Case(f"layer {dtype} {name}", run, _seconds(dtype, sizes, 2))


def against_cases(options: Options) -> Iterator[Case]:
    """The chosen plan beside all that could be chosen: at most 6% slower, 8% where heat decides."""
    for dtype, sizes, name in _sampled(options, SHAPES, ("float32", "float64", "bfloat16", "tf32")):
        most = Bar("of_best", 1.08 if dtype == "bfloat16" else 1.06, at_most=True)
        run = partial(against_best, dtype, sizes, options.rounds or 5, options.seed)
        yield Case(f"choice {dtype} {name}", run, _seconds(dtype, sizes, 14), (most,))


def _sampled(options: Options, count: int, dtypes: tuple[str, ...]) -> Iterator[tuple[str, Sizes, str]]:
    from ...kernels.decide.workloads import sample

    for dtype in options.dtypes or dtypes:
        for m, one in sample(options.sample or count, MOST_ROWS, 24 << 30, 8):
            yield dtype, (m, one.k, one.n), f"{one.model} {one.layer} {m}x{one.k}x{one.n}"


def _seconds(dtype: str, sizes: Sizes, contenders: int) -> float:
    """What a row takes: compilation, and rounds of each contender of at least 0.15 s."""
    m, k, n = sizes
    once = 2 * m * k * n / (6e14 if dtype in COARSE else 3e14 if dtype == "tf32" else 5e13)
    return 2 + contenders * (6 * max(0.15, once) + 2 * once)
