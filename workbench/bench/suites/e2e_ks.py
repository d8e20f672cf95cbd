"""Suite "e2e_ks": transformers and their submodules with Kronecker-sparse layers, over the dense ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ....lazy import LateModule
from ..case import Case, Figures, Options, Say, at_most
from ..contest import Calls, Contest, Timings, clock_of, relative, require_right
from ..requirements import inferred, placed
from ..table import LIMITS, rows

models: Any = LateModule("..layer_models", __package__)


PARTS = rows("e2e_ks")
"""Seconds over those of dense layers in the paper, with biases, of its BMM and of its kernel (Table 8; float32, A100;
GPT-2 medium on an RTX 6000), and the bar of ours."""


SHARES = {(one.name, one.dtype): one for one in rows("e2e_ks_shares")}
"""Milliseconds of a model and of the linear layers of its feed-forward parts in the paper (Table 7, A100)."""


def cases(options: Options) -> Iterator[Case]:
    if options.measure == "shares":
        for dtype in options.dtypes or ("float16", "float32"):
            for name in dict.fromkeys(name for name, _ in SHARES):
                yield Case(f"share {name} {dtype}", partial(share, name, dtype, options))
        return
    for dtype in options.dtypes or ("float32",):
        for one in PARTS:
            bars = at_most(over_dense=one.bar) if options.device == "cuda" and dtype == "float32" else ()
            yield Case(f"{one.name} {one.part} {dtype}", partial(measured, one, dtype, options), bars)


def measured(one: Any, dtype: str, options: Options, say: Say) -> Figures:
    """Seconds of a part with dense layers, with ours, and with the permuted batched GEMM, in turns.

    Ours and the permuted product have equal parameters, and their results are compared first.
    """
    torch, where = placed(options, dtype)
    sizes, part = models.KRONECKER[one.name], one.part
    x = torch.randn(sizes.batch, sizes.tokens, sizes.hidden if part == "down" else sizes.features, **where)
    modules = {kind: models.part_of(sizes, part, kind, **where) for kind in ("dense", "auto", "bmm")}
    models.copy_parameters(modules["auto"], modules["bmm"])
    calls = {kind: inferred(module, x) for kind, module in modules.items()}
    say("comparing results")
    error = relative(calls["auto"](), calls["bmm"]())
    require_right(f"{one.name} {part}", error, LIMITS["Kronecker-sparse model"][dtype], "relative difference")
    timings = _timed(calls, options, say)
    over = {kind: 1 / ratio for kind, ratio in timings.ratios(timings["dense"]).items()}
    return {
        "over_dense": over["auto"],
        "bmm_over_dense": over["bmm"],
        "paper": one.paper,
        "paper_bmm": one.paper_bmm,
        "ratio": 1 / over["auto"],
        "ms": timings.ms,
        "difference": error,
    }


def share(name: str, dtype: str, options: Options, say: Say) -> Figures:
    """The part of a dense model's seconds that the linear layers of its feed-forward parts take, timed in turns."""
    torch, where = placed(options, dtype)
    sizes = models.VISION[name]
    x = torch.randn(sizes.batch, sizes.tokens, sizes.features, **where)
    model, linear = models.part_of(sizes, "full", "dense", **where), models.feed_forward_layers(sizes, **where)
    ms = _timed({"model": inferred(model, x), "linear": inferred(linear, x)}, options, say).ms
    paper = SHARES.get((name, dtype))
    return {
        "share": ms["linear"] / ms["model"],
        "paper": None if paper is None else paper.linear_ms / paper.model_ms,
        "ms": ms,
        "paper_ms": None if paper is None else {"model": paper.model_ms, "linear": paper.linear_ms},
    }


def _timed(calls: Calls, options: Options, say: Say) -> Timings:
    return Contest(calls, options.rounds or 7, clock_of(options.device, 0.05), say).run()
