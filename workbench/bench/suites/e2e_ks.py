"""Suite "e2e_ks": transformers and their submodules with Kronecker-sparse layers, over the dense ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..case import Bar, Case, Figures, Options, Say, Suite
from ..contest import Calls, Contest, Timings, clock_of, relative, require_right
from ..requirements import seeded_torch

PARTS = ("square", "up", "down", "ffn", "attention", "block", "full")

PAPER = {
    "vit-s square": (0.97, 0.66),
    "vit-s up": (0.93, 0.90),
    "vit-s down": (0.94, 0.61),
    "vit-s ffn": (0.91, 0.77),
    "vit-s attention": (0.87, 0.79),
    "vit-s block": (0.90, 0.78),
    "vit-s full": (0.89, 0.78),
    "gpt2-medium full": (None, 0.84),
}
"""Seconds over those of dense layers in the paper, with biases: of its BMM and of its kernel (Table 8; float32, A100;
GPT-2 medium on an RTX 6000)."""

FULL_BARS = {"vit-s": 0.80, "gpt2-medium": 0.86}

LIMITS = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-2, "bfloat16": 1e-1}
"""The relative difference of results by two strategies above which one of them is wrong."""


SHARES = {
    ("vit-s/16", "float16"): (14.0, 4.6),
    ("vit-b/16", "float16"): (36.0, 15.0),
    ("vit-l/16", "float16"): (110.0, 50.0),
    ("vit-h/14", "float16"): (310.0, 160.0),
    ("vit-s/16", "float32"): (90.0, 40.0),
    ("vit-b/16", "float32"): (300.0, 160.0),
    ("vit-l/16", "float32"): (1000.0, 580.0),
    ("vit-h/14", "float32"): (2600.0, 1600.0),
}
"""Milliseconds of the whole model and of the linear layers of its feed-forward parts in the paper (Table 7, A100)."""


def _cases(options: Options) -> Iterator[Case]:
    if options.measure == "shares":
        for dtype in options.dtypes or ("float16", "float32"):
            for name in ("vit-s/16", "vit-b/16", "vit-l/16", "vit-h/14"):
                yield Case(f"share {name} {dtype}", partial(share, name, dtype, options), 20.0)
        return
    for dtype in options.dtypes or ("float32",):
        for name in ("vit-s", "gpt2-medium"):
            for part in PARTS if name == "vit-s" else ("down", "ffn", "block", "full"):
                bars = (Bar("over_dense", FULL_BARS[name], at_most=True),) if part == "full" else ()
                checked = bars if options.device == "cuda" and dtype == "float32" else ()
                yield Case(f"{name} {part} {dtype}", partial(measured, name, part, dtype, options), 20.0, checked)


def measured(name: str, part: str, dtype: str, options: Options, say: Say) -> Figures:
    """Seconds of a part with dense layers, with ours, and with the permuted batched GEMM, in turns.

    Ours and the permuted product have equal parameters, and their results are compared first.
    """
    torch = seeded_torch(options)
    from .. import layer_models as models
    from ..transformers import inferred

    sizes = {"vit-s": models.VIT_S, "gpt2-medium": models.GPT2_MEDIUM}[name]
    where = {"device": options.device, "dtype": getattr(torch, dtype)}
    x = torch.randn(sizes.batch, sizes.tokens, sizes.hidden if part == "down" else sizes.features, **where)
    modules = {kind: models.part_of(sizes, part, kind, **where) for kind in ("dense", "auto", "bmm")}
    models.copy_parameters(modules["auto"], modules["bmm"])
    calls = {kind: inferred(module, x) for kind, module in modules.items()}
    say("comparing results")
    error = relative(calls["auto"](), calls["bmm"]())
    require_right(f"{name} {part}", error, LIMITS[dtype], "relative difference")
    timings = _timed(calls, options, say)
    over = {kind: 1 / ratio for kind, ratio in timings.ratios(timings["dense"]).items()}
    paper = PAPER.get(f"{name} {part}", (None, None))
    return {
        "over_dense": over["auto"],
        "bmm_over_dense": over["bmm"],
        "paper": paper[1],
        "paper_bmm": paper[0],
        "ratio": 1 / over["auto"],
        "ms": timings.ms,
        "difference": error,
    }


def share(name: str, dtype: str, options: Options, say: Say) -> Figures:
    """The part of a dense model's seconds that the linear layers of its feed-forward parts take, timed in turns."""
    torch = seeded_torch(options)
    from .. import layer_models as models
    from ..transformers import inferred

    sizes = models.VISION[name]
    where = {"device": options.device, "dtype": getattr(torch, dtype)}
    x = torch.randn(sizes.batch, sizes.tokens, sizes.features, **where)
    model, linear = models.part_of(sizes, "full", "dense", **where), models.feed_forward_layers(sizes, **where)
    ms = _timed({"model": inferred(model, x), "linear": inferred(linear, x)}, options, say).ms
    paper = SHARES.get((name, dtype))
    return {
        "share": ms["linear"] / ms["model"],
        "paper": None if paper is None else paper[1] / paper[0],
        "ms": ms,
        "paper_ms": None if paper is None else dict(zip(ms, paper, strict=True)),
    }


def _timed(calls: Calls, options: Options, say: Say) -> Timings:
    return Contest(calls, options.rounds or 7, clock_of(options.device, 0.05), say).run()


SUITE = Suite(
    "e2e_ks",
    "transformers with Kronecker-sparse layers: seconds over those of dense layers",
    _cases,
    ("over_dense", "bmm_over_dense", "paper", "paper_bmm", "difference"),
    flags={"shares": ("share", "paper", "ms", "paper_ms")},
)
