"""Suite "falcon": layer sizes of large models over a grid of M, the planner's choice against the best library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ....kernels import Request, matmul, plan_for
from ....kernels.planning.workloads import sample
from ....schemes_db.resolve import resolve
from ..case import Bar, Case, Figures, Options, Rows, Say, Suite, code_of
from ..cpu_products import compete, libraries, operands
from ..means import geometric

SAMPLE = 24
"""Products taken of the paper's 960 unless --sample says otherwise: one of every layer."""

FORMULAS = 8
"""Every so many products the formula under torch.compile competes, too: each takes a compilation."""

OVER_ALL, WHERE_CHOSEN = 1.12, 1.15
"""Geometric means of the ratios to reach."""

GPU_SAMPLE, GPU_SPENT = 96, 0.05
"""Products of each dtype on a GPU, and the seconds that a contender runs in a round."""

ON_GPU = {"float32": (1.16, 1.22), "bfloat16": (1.005, 1.04)}
"""Geometric means to reach on a GPU, by dtype."""

NEVER_BELOW = 0.99
"""The bar of every ratio there."""


def _cases(options: Options) -> Iterator[Case]:
    if options.device == "cuda":
        from ..gpu_layers import layer_cases

        yield from layer_cases(options, tuple(ON_GPU), GPU_SAMPLE, (Bar("ratio", NEVER_BELOW),), GPU_SPENT)
        return
    for i, (m, layer) in enumerate(sample(options.sample or SAMPLE)):
        one = 1e-11 * m * layer.k * layer.n  # at 200 Gflop/s
        rounds = options.rounds or (7 if one < 1.5 else 3)
        key = f"{layer.model} {layer.layer} {m}x{layer.k}x{layer.n}"
        sizes = m, layer.k, layer.n
        compiled = i % FORMULAS == FORMULAS // 2
        seconds = 4 + 20 * compiled + one * (rounds + 2) * (5 if compiled else 4)
        yield Case(key, partial(_product, sizes, rounds, options.seed, compiled), seconds)


def _product(sizes: tuple[int, int, int], rounds: int, seed: int, compiled: bool, say: Say) -> Figures:
    from ..rivals import rivals

    a, b, out = operands(sizes, "float32", seed)
    plan = plan_for(Request.of(a, b, out))
    say(str(plan.candidate))
    ours = {"auto": lambda: matmul(a, b, out=out)}
    if not any(size % 2 for size in sizes):
        ours |= rivals(resolve("strassen")[0], a, b, say, compiled)
    figures = compete(a, b, libraries(a, b), ours, rounds)
    chosen = plan.candidate.strategy != "vendor"
    return {**figures, "plan": str(plan.candidate), "by_scheme": chosen, "predicted_s": plan.seconds}


def _summary(rows: Rows) -> Mapping[str, Any]:
    """Geometric means over all products, and over those that a scheme works; on a GPU those of each dtype."""
    figures = {row["key"]: row["figures"] for row in rows if row["figures"]}
    on_gpu = [key for key in figures if key.startswith("layer ")]
    groups = {
        dtype: [key for key in on_gpu if key.split()[1] == dtype] for dtype in {key.split()[1]: 0 for key in on_gpu}
    }
    means, bars = {}, {}
    for name, keys in (groups or {"all": list(figures)}).items():
        every = geometric([figures[key]["ratio"] for key in keys])
        chosen = geometric([figures[key]["ratio"] for key in keys if figures[key]["by_scheme"]])
        least = min(keys, key=lambda key: figures[key]["ratio"], default=None)
        means[name] = {
            "products": len(keys),
            "geometric_mean": every,
            "by_scheme": sum(figures[key]["by_scheme"] for key in keys),
            "geometric_mean_where_chosen": chosen,
            "least": None if least is None else [least, figures[least]["ratio"]],
        }
        wanted = (OVER_ALL, WHERE_CHOSEN) if name == "all" else ON_GPU.get(name)
        if wanted is not None:
            bars[f"{name}, over all"] = [wanted[0], (every or 0) >= wanted[0]]
            bars[f"{name}, where chosen"] = [wanted[1], (chosen or 0) >= wanted[1]]
        if name in groups:
            bars[f"{name}, least"] = [NEVER_BELOW, least is not None and figures[least]["ratio"] >= NEVER_BELOW]
    return {
        "means": means,
        "bars": bars,
        "ratios": {key: one["ratio"] for key, one in figures.items()},
        "by_scheme": [key for key, one in figures.items() if one["by_scheme"]],
        "contended": [row["key"] for row in rows if row["contended"]],
    }


SUITE = Suite(
    "falcon",
    "layers of DeepSeek-R1, Qwen3.5 and HunyuanVideo, some of 960 products, against numpy and torch (cuBLAS on a GPU)",
    _cases,
    ("plan", "best_library", "ratio", "interval"),
    code_of("cpu_products", "gpu_layers", "gpu_products"),
    summaries={"": _summary},
)
