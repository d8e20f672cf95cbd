"""Suite "falcon": layer sizes of large models over a grid of M, the planner's choice against the best library."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..case import Case, Figures, Options, Say, Suite
from ..contest import compete, libraries, operands
from ..picture import ratios

SAMPLE = 24
"""Products taken of the paper's 960 unless --sample says otherwise."""


def _cases(options: Options) -> Iterator[Case]:
    from ....kernels.decide.workloads import sample

    for m, layer in sample(options.sample or SAMPLE):
        seconds = 5 + 2e-11 * m * layer.k * layer.n * 2 * (options.rounds or 5)
        key = f"{layer.model} {layer.layer} {m}x{layer.k}x{layer.n}"
        yield Case(key, partial(_product, (m, layer.k, layer.n), options.rounds or 5, options.seed), seconds)


def _product(sizes: tuple[int, int, int], rounds: int, seed: int, say: Say) -> Figures:
    from ....kernels import matmul, plan_for
    from ....kernels.request import Request

    a, b = operands(sizes, "float32", seed)
    out = np.empty((sizes[0], sizes[2]), np.float32)
    plan = plan_for(Request.of(a, b, out))
    say(str(plan.candidate))
    figures = compete(a, b, libraries(a, b, 0), {"auto": lambda: matmul(a, b, out=out)}, rounds)
    chosen = plan.candidate.strategy != "gemm"
    return {**figures, "plan": str(plan.candidate), "by_scheme": chosen, "predicted_s": plan.seconds}


SUITE = Suite(
    "falcon",
    "layers of DeepSeek-R1, Qwen3.5 and HunyuanVideo, some of 960 products, against numpy and torch",
    _cases,
    ("plan", "best_library", "ratio", "interval"),
    ("kernels",),
    ratios,
)
