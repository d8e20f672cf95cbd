"""Stacks of blocks of the widths of three large models and accelerated twins: compared, then timed in turns.

The layers are those of `workloads`. Imports torch.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.cuda.clock import seconds_of
from ...kernels.torch.acceleration import AccelerateConfig, AcceleratedLayer, accelerate_
from .case import Options, Say
from .contest import Calls, Contest, CudaClock, relative, require_right
from .table import LIMITS
from .transformers import AttentionCore, Sizes, Transformer, dense, models

DENSE, ONLINE, OFFLINE = "dense", "online", "offline"
"""The stack on torch's linear layers; accelerated; accelerated with the sums of the weights made once."""

SLOW, SPENT = 0.05, 0.03
"""Seconds on a GPU from which a call has few rounds, and those of a contender in a round."""

SEQUENCE = 2048
"""Tokens of a sequence at most."""

EXTRA_BYTES = 48 << 30
"""Maximum bytes of the packed sums: more than any stack here needs."""


@dataclass(frozen=True)
class Contender:
    """A stack, and what became of its linear layers."""

    model: nn.Module
    layers: tuple[AcceleratedLayer, ...] = ()

    def by_schemes(self, rows: int) -> list[AcceleratedLayer]:
        """The layers whose product is planned by a scheme for so many rows."""
        return [
            layer
            for layer in self.layers
            if layer.refused is None
            and any(bucket.rows == rows and "scheme" in bucket.plan for bucket in layer.buckets)
        ]


def inputs(sizes: Sizes, rows: int, where: Mapping[str, Any]) -> Tensor:
    """Standard normal x (sequences, tokens, features) of so many tokens, in sequences of at most SEQUENCE."""
    tokens = min(rows, SEQUENCE)
    return torch.randn(-(-rows // tokens), tokens, sizes.features, **where)


def accelerated(model: nn.Module, config: AccelerateConfig) -> Contender:
    """A twin of a model, of the same parameters, whose linear layers run by schemes."""
    twin = copy.deepcopy(model, {id(one): one for one in model.parameters()})
    return Contender(twin, tuple(accelerate_(twin, config)))


def attention_share(model: nn.Module, call: Callable[[], object], device: str) -> float:
    """The part of a call's time that scaled dot-product attention takes."""
    marks: list[Callable[[], float]] = []
    started: dict[nn.Module, Any] = {}

    def before(module: nn.Module, _: Any) -> None:
        started[module] = _mark(device)

    def after(module: nn.Module, _: Any, __: Any) -> None:
        marks.append(partial(_between, started[module], _mark(device)))

    cores = [module for module in model.modules() if isinstance(module, AttentionCore)]
    handles = [core.register_forward_pre_hook(before) for core in cores]
    handles += [core.register_forward_hook(after) for core in cores]
    try:
        call()
        marks.clear()
        began = _mark(device)
        call()
        ended = _mark(device)
    finally:
        for handle in handles:
            handle.remove()
    whole = _between(began, ended)
    return sum(mark() for mark in marks) / whole


def measured(
    sizes: Sizes, rows: int, all_rows: tuple[int, ...], dtype: str, options: Options, say: Say, training: bool = False
) -> dict[str, Any]:
    """Figures of `rows` tokens through a stack that is accelerated for `all_rows`: of the forward pass, or with
    `training` of forward, backward and a step of SGD.
    """
    where = {"device": options.device, "dtype": getattr(torch, dtype)}
    say("making the model")
    model = stack(sizes, options.sample, **where).train(training)
    x = inputs(sizes, rows, where).requires_grad_(training)
    wanted = inputs(sizes, rows, where) if training else None
    say("planning")
    config = AccelerateConfig(all_rows, device=options.device)
    contenders = {DENSE: Contender(model), ONLINE: accelerated(model, config)}
    if options.device == "cuda" and not training:
        contenders[OFFLINE] = accelerated(model, AccelerateConfig((rows,), EXTRA_BYTES, options.device))
    with torch.inference_mode(not training):
        differences = _compared(contenders, x, wanted, dtype)
        calls: dict[str, Callable[[], object]] = {
            name: partial(one.model, x) if wanted is None else _step_of(one.model, x, wanted)
            for name, one in contenders.items()
        }
        share = attention_share(model, calls[DENSE], options.device)
        seconds = _medians(calls, options, say)
    return {**_figures(sizes, contenders, rows, seconds, options), "attention_share": share, **differences}


def _compared(contenders: Mapping[str, Contender], x: Tensor, wanted: Tensor | None, dtype: str) -> dict[str, float]:
    """The largest difference of the twins' results from the dense stack's, and of gradients where results are pulled
    towards `wanted`."""
    truth, gradients, worst = None, [], {"difference": 0.0}
    for name, contender in contenders.items():
        result: Tensor = contender.model(x) - x  # what the blocks add, which x would hide
        if wanted is not None:
            result.backward(wanted)
            gradients.append([_taken(one) for one in (x, *contender.model.parameters())])
        if truth is None:
            truth = result.detach()
            continue
        worst["difference"] = max(worst["difference"], relative(result.detach(), truth))
        require_right(name, worst["difference"], LIMITS["stack of blocks"][dtype], "relative difference")
    if gradients:
        worst["gradient_difference"] = max(relative(ours, theirs) for theirs, ours in zip(*gradients, strict=True))
        what = f"a gradient, {ONLINE},"
        require_right(what, worst["gradient_difference"], LIMITS["gradient of a stack"][dtype], "relative difference")
    return worst


def _step_of(model: nn.Module, x: Tensor, wanted: Tensor) -> Callable[[], None]:
    """One training step; at this rate the weights, which all contenders share, stay what they are in effect."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def step() -> None:
        optimizer.zero_grad()
        x.grad = None
        model(x).backward(wanted)
        optimizer.step()

    return step


def _taken(parameter: Tensor) -> Tensor:
    """A gradient, taken off its parameter."""
    gradient, parameter.grad = parameter.grad, None
    assert gradient is not None
    return gradient


def _figures(
    sizes: Sizes, contenders: Mapping[str, Contender], rows: int, seconds: Mapping[str, float], options: Options
) -> dict[str, Any]:
    online = contenders[ONLINE]
    figures: dict[str, Any] = {
        "ratio": seconds[DENSE] / seconds[ONLINE],
        "ms": {name: 1e3 * one for name, one in seconds.items()},
        "blocks": options.sample or sizes.blocks,
        "linear_layers": len(online.layers),
        "layers_on_lcma": len(online.by_schemes(rows)) / len(online.layers),
        "work_on_lcma": _work(online.by_schemes(rows)) / _work(online.layers),
        "plans": {
            f"{one.inputs}x{one.outputs}": bucket.plan
            for one in online.layers
            for bucket in one.buckets
            if bucket.rows == rows
        },
    }
    if OFFLINE in contenders:
        offline = contenders[OFFLINE]
        figures["offline"] = seconds[DENSE] / seconds[OFFLINE]
        figures["packed_layers"] = sum(layer.packed_bytes > 0 for layer in offline.layers) / len(offline.layers)
        figures["packed_bytes"] = sum(layer.packed_bytes for layer in offline.layers)
    return figures


def _work(layers: Any) -> int:
    return sum(layer.inputs * layer.outputs for layer in layers)


def _medians(calls: Calls, options: Options, say: Say) -> dict[str, float]:
    """Median seconds of calls that ran before, in turns; few of those that take long."""
    if options.device == "cpu":
        return Contest(calls, options.rounds or 3, say=say).run().medians
    rounds = options.rounds or (7 if max(map(seconds_of, calls.values())) < SLOW else 3)
    return Contest(calls, rounds, CudaClock(SPENT), say).run().medians


def _mark(device: str) -> Any:
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(start: Any, stop: Any) -> float:
    """Seconds between two marks."""
    if isinstance(start, float):
        return float(stop - start)
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1e3


STACKS = models("e2e")
"""With as few blocks as give products of every kind: more would change no ratio.

A dense block of DeepSeek-R1; blocks of Qwen3.5-397B with full attention, whose experts are one layer as wide as the 11
that a token passes; a double block of HunyuanVideo, of one stream, and two single blocks: the model has 20 and 40.
"""


def stack(sizes: Sizes, count: int | None = None, **where: Any) -> Transformer:
    """So many blocks (None: those of the sizes), dense."""
    return Transformer(count or sizes.blocks, partial(sizes.block, dense(scaled=True, **where), **where))
