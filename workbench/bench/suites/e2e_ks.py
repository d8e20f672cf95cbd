"""Suite "e2e_ks": transformers and their submodules with Kronecker-sparse layers, over the dense ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..case import Bar, Case, Figures, Options, Say, Suite, code_of
from ..contest import Contest, clock_of, require_right
from ..picture import ratios
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
    if options.shares:
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
    from .. import ks_models

    sizes = {"vit-s": ks_models.VIT_S, "gpt2-medium": ks_models.GPT2_MEDIUM}[name]
    where = {"device": options.device, "dtype": getattr(torch, dtype)}
    features = sizes.features * (4 if part == "down" else 1)
    x = torch.randn(sizes.batch, sizes.tokens, features, **where)
    modules = {kind: _part(sizes, part, kind, where) for kind in ("dense", "auto", "bmm")}
    ks_models.copy_parameters(modules["auto"], modules["bmm"])
    calls = {kind: partial(_run, module, x) for kind, module in modules.items()}
    say("comparing results")
    ours, theirs = calls["auto"]().double(), calls["bmm"]().double()
    error = float((ours - theirs).norm() / theirs.norm())
    require_right(f"{name} {part}", error, LIMITS[dtype], "relative difference")
    seconds = _medians(calls, options, say)
    paper = PAPER.get(f"{name} {part}", (None, None))
    return {
        "over_dense": seconds["auto"] / seconds["dense"],
        "bmm_over_dense": seconds["bmm"] / seconds["dense"],
        "paper": paper[1],
        "paper_bmm": paper[0],
        "ratio": seconds["dense"] / seconds["auto"],
        "ms": {kind: 1e3 * value for kind, value in seconds.items()},
        "difference": error,
    }


def share(name: str, dtype: str, options: Options, say: Say) -> Figures:
    """The part of a dense model's seconds that the linear layers of its feed-forward parts take, timed in turns."""
    torch = seeded_torch(options)
    from .. import ks_models as models

    sizes = models.VISION[name]
    where = {"device": options.device, "dtype": getattr(torch, dtype)}
    x = torch.randn(sizes.batch, sizes.tokens, sizes.features, **where)
    modules = {"model": models.model(sizes, "dense", **where), "linear": models.feed_forward_layers(sizes, **where)}
    calls = {kind: partial(_run, module, x) for kind, module in modules.items()}
    seconds = _medians(calls, options, say)
    paper = SHARES.get((name, dtype))
    return {
        "share": seconds["linear"] / seconds["model"],
        "paper": None if paper is None else paper[1] / paper[0],
        "ms": {kind: 1e3 * value for kind, value in seconds.items()},
        "paper_ms": None if paper is None else dict(zip(modules, paper, strict=True)),
    }


def _part(sizes: Any, part: str, kind: str, where: dict[str, Any]) -> Any:
    from .. import ks_models

    n = sizes.features
    if part in ("square", "up", "down"):
        cols, rows = {"square": (n, n), "up": (n, 4 * n), "down": (4 * n, n)}[part]
        return ks_models.linear(cols, rows, getattr(sizes, part), kind, **where)
    builders: dict[str, Any] = {
        "ffn": ks_models.feed_forward,
        "attention": ks_models.attention,
        "block": ks_models.block,
        "full": ks_models.model,
    }
    return builders[part](sizes, kind, **where)


def _run(module: Any, x: Any) -> Any:
    import torch

    with torch.inference_mode():
        return module(x)


def _medians(calls: Mapping[str, Callable[[], Any]], options: Options, say: Say) -> dict[str, float]:
    return Contest(calls, options.rounds or 7, clock_of(options.device, 0.05), say).run().medians


SUITE = Suite(
    "e2e_ks",
    "transformers with Kronecker-sparse layers: seconds over those of dense layers",
    _cases,
    ("over_dense", "bmm_over_dense", "paper", "paper_bmm", "difference"),
    code_of("ks_models", "transformers"),
    ratios,
    {"shares": ("share", "paper", "ms", "paper_ms")},
)
