"""Suite "e2e_blr": transformers with block low-rank layers over the dense ones, torch.compile on both on a GPU."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from ....kernels.factored import UNLIMITED
from ....lazy import LateModule
from ..baselines.block_low_rank import multiply_permuted
from ..case import Case, Figures, Options, Say, barred
from ..contest import relative, require_right
from ..requirements import inferred, placed
from ..table import LIMITS, rows
from .blr import timed

models: Any = LateModule("..layer_models", __package__)
layers: Any = LateModule("....kernels.torch.block_low_rank_layers", __package__)

ROWS = rows("e2e_blr")
"""Models and kinds of their layers; the paper has no Monarch of DiT."""

CPU_BLOCKS, CPU_TOKENS = 1, 128
"""The part of every model that runs on a CPU."""

OR_DENSE = "or dense"
"""The form whose layers may have the dense weight beside the factors."""


@barred
def cases(options: Options) -> Iterator[Case]:
    on_cpu = options.device == "cpu"
    for dtype in options.dtypes or (("float32",) if on_cpu else ("bfloat16",)):
        for one in ROWS:
            yield Case(f"{one.name} {one.kind} {dtype}", partial(measured, one.name, one.kind, dtype, options))


def measured(name: str, kind: str, dtype: str, options: Options, say: Say) -> Figures:
    """Seconds of a model with dense layers and with structured ones, in turns.

    The third form (OR_DENSE) has the dense weight in those layers where the planner takes it. Before, the outputs of
    the structured model by the planner's choice and by the papers' form are compared. On a GPU all are compiled, with
    CUDA graphs.
    """
    torch, where = placed(options, dtype)
    sizes = models.MODELS[name]
    on_cpu = options.device == "cpu"
    blocks = options.sample or (CPU_BLOCKS if on_cpu else sizes.blocks)
    tokens = min(CPU_TOKENS, sizes.tokens) if on_cpu else sizes.tokens
    x, condition = torch.randn(1, tokens, sizes.features, **where), torch.randn(1, sizes.features, **where)
    say("making the models")
    dense, ours = (models.transformer(sizes, one, blocks, **where).eval() for one in (models.DENSE, kind))
    free = copy.deepcopy(ours)
    with torch.inference_mode():
        packed, extra = take_dense(free, x, condition)
        difference = _difference(ours, x, condition)
        require_right(f"{name} {kind}", difference, LIMITS["block low-rank model"][dtype], "relative difference")
        mode = "reduce-overhead"  # CUDA graphs
        torch.compiler.reset()  # after eight models torch would run the next ones uncompiled
        forms = {"dense": dense, kind: ours} | ({OR_DENSE: free} if packed else {})
        ready = {what: one if on_cpu else torch.compile(one, mode=mode) for what, one in forms.items()}
        calls = {what: inferred(one, x, condition) for what, one in ready.items()}
        for what, call in calls.items():
            say(f"compiling {what}")
            for _ in range(3):
                call()
        timings = timed(calls, 1 << 20, options, say, graphs=False)
    seconds = timings.medians
    weights = {what: sum(p.nbytes for p in one.parameters()) for what, one in (("dense", dense), (kind, ours))}
    return {
        "ratio": seconds["dense"] / seconds[kind],
        "ratio_or_dense": seconds["dense"] / seconds.get(OR_DENSE, seconds[kind]),
        "dense_layers": packed,
        "extra_bytes": extra,
        "ms": timings.ms,
        "weight_bytes": weights,
        "blocks": blocks,
        "tokens": tokens,
        "difference": difference,
    }


def take_dense(model: Any, x: Any, condition: Any) -> tuple[int, int]:
    """Store the dense weight in the layers of a model where the planner takes it; returns their number and bytes.

    Each layer is asked for as many inputs as it gets of x (1, tokens, features).
    """
    found = _layers(model)
    rows: dict[int, int] = {}

    def note(module: Any, given: Any) -> None:
        rows[id(module)] = given[0].numel() // module.in_features

    hooks = [one.register_forward_pre_hook(note) for one in found]
    model(x, condition)
    for hook in hooks:
        hook.remove()
    packed = [one.pack(rows[id(one)], UNLIMITED) for one in found]
    return sum(packed), sum(one.packed_bytes for one in found)


def _layers(model: Any) -> list[Any]:
    return [module for module in model.modules() if isinstance(module, layers.BlockLowRankLinear)]


def _difference(model: Any, x: Any, condition: Any) -> float:
    """The relative difference of a model's outputs by the planner's choice and by the papers' form."""

    def papers_form(layer: Any, given: tuple[Any, ...], _: Any) -> Any:
        rows = given[0].reshape(-1, layer.in_features)
        y = multiply_permuted(layer.structure, layer.factors, rows)
        y = y if layer.bias is None else y + layer.bias
        return y.reshape(*given[0].shape[:-1], layer.out_features)

    ours = model(x, condition)
    hooks = [layer.register_forward_hook(papers_form) for layer in _layers(model)]
    theirs = model(x, condition)
    for hook in hooks:
        hook.remove()
    return relative(ours, theirs)
