"""Suite "compress": a small transformer trained on text, compressed by each kind and trained again: loss and speed."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import lcma

from ....errors import PlanError
from ....kernels.arrays import torch
from ....lazy import LateModule
from ..case import Case, Figures, Options, Say
from ..contest import Timings, ratio_to
from ..picture import new_figure, save
from ..requirements import inferred, seeded_torch
from .blr import timed

text: Any = LateModule("..text_models", __package__)

KINDS = ("low-rank", "monarch", "blast", "kronecker")

BUDGETS = (0.5, 0.25, 0.75)
"""The first is that of the first row of every kind."""

SIZES = {"cpu": 128, "cuda": 2048}
"""Features of the model where --sizes is not given."""

STEPS = {"cpu": 200, "cuda": 400}

DESCENT, TOLERANCE = 100, 5e-3
"""Steps of BLAST's descent for every layer, and the part by which ten of them must lower its error to go on."""


def cases(options: Options) -> Iterator[Case]:
    if options.dtypes not in ((), ("float32",)):
        raise PlanError("models are trained in float32, and timed in bfloat16 on a GPU; leave --dtype out")
    for budget in BUDGETS:
        for kind in KINDS:
            for size in options.sizes or (SIZES[options.device],):
                run = partial(measured, kind, budget, replace(options, sizes=(size,)))
                yield Case(f"{kind} {budget:g} features={size}", run)


def setting_of(options: Options) -> Any:
    """The model and its training; on a GPU a longer one."""
    (size,), steps = options.sizes or (SIZES[options.device],), options.sample or STEPS[options.device]
    if size % 64:
        raise PlanError(f"--sizes must be a multiple of 64, the features of a head, not {size}")
    if options.device == "cpu":
        return text.Training(size, 2, 16, 64, steps, 1e-3)
    return text.Training(size, 2, 32, 256, steps, 2e-4)


def measured(kind: str, budget: float, options: Options, say: Say) -> Figures:
    """Losses before, after compression and after training again; parameters, and the ratio of forward times.

    Only the layers of the blocks are compressed. Half as many steps train again as trained before.
    """
    torch = seeded_torch(options)
    setting = setting_of(options)
    say("training the dense model")
    dense, loss_dense = _trained(setting, options.device, options.seed)
    model = copy.deepcopy(dense)
    config = lcma.CompressConfig(kind, budget, 16 if setting.features >= 512 else 4, DESCENT, tolerance=TOLERANCE)
    x = text.sample_inputs(setting, options.device)
    began = time.perf_counter()
    reports = lcma.compress_(model, {"blocks.*": config}, calibration=x, on_event=say)
    compressing = time.perf_counter() - began
    changed = [report for report in reports if report.skipped is None]
    if not changed:
        raise PlanError(reports[0].skipped or "no layer was compressed")
    compressed_loss = text.held_out_loss(model, setting)
    timings = _timed(dense, model, x, options, say)
    say("training again")
    began = time.perf_counter()
    _train_again(model, setting, options.seed, say)
    training = time.perf_counter() - began
    before, after = (sum(getattr(one, f"bytes_{when}") for one in reports) for when in ("before", "after"))
    if options.device == "cuda":
        torch.cuda.empty_cache()
    return {
        "ratio": ratio_to(timings["dense"], timings["compressed"]),
        "loss_dense": loss_dense,
        "loss_dense_retrained": _trained_again(setting, options.device, options.seed),
        "loss_compressed": compressed_loss,
        "loss_retrained": text.held_out_loss(model, setting),
        "bytes": after / before,
        "layers": len(changed),
        "weight_error": max(report.error for report in changed),
        "output_error": max(report.output_error or 0.0 for report in changed),
        "ms": timings.ms,
        "seconds": {"compressing": compressing, "training again": training},
        "descent": {"steps": DESCENT, "tolerance": TOLERANCE} if kind == "blast" else None,
        "features": setting.features,
        "steps": setting.steps,
    }


@lru_cache(maxsize=1)
def _trained(setting: Any, device: str, seed: int) -> tuple[Any, float]:
    """The dense model, trained once for all rows, and its loss."""
    torch.manual_seed(seed)
    model = text.TextModel(setting, device, torch.float32)
    text.train(model, setting, setting.steps, seed)
    return model, text.held_out_loss(model, setting)


@lru_cache(maxsize=1)
def _trained_again(setting: Any, device: str, seed: int) -> float:
    """The loss of the dense model after the training again that compressed models get."""
    model = copy.deepcopy(_trained(setting, device, seed)[0])
    _train_again(model, setting, seed)
    return text.held_out_loss(model, setting)


def _train_again(model: Any, setting: Any, seed: int, say: Say = lambda _: None) -> None:
    """Train for half as many steps at half the rate."""
    text.train(model, replace(setting, rate=setting.rate / 2), setting.steps // 2, seed + 1, say)


def _timed(dense: Any, model: Any, x: Any, options: Options, say: Say) -> Timings:
    """Both models in turns: in bfloat16 on a GPU, in float32 on a processor."""
    named = {"dense": dense, "compressed": model}
    if options.device != "cpu":
        named = {name: copy.deepcopy(one).to(torch.bfloat16) for name, one in named.items()}
    calls = {name: inferred(one, x) for name, one in named.items()}
    for call in calls.values():
        call()
    return timed(calls, x.numel(), options, say)


def picture(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Loss against speed, a line a kind: after compression (open, dashed), and after training again (filled)."""
    shown = [row for row in rows if row["refused"] is None]
    if not shown:
        return
    figure, axes = new_figure(7, 5)
    for place, kind in enumerate(KINDS):
        of = sorted((row["figures"] for row in shown if row["key"].split()[0] == kind), key=lambda one: one["ratio"])
        speeds = [one["ratio"] for one in of]
        colour = f"C{place}"
        axes.plot(speeds, [one["loss_compressed"] for one in of], "o--", color=colour, fillstyle="none", alpha=0.6)
        axes.plot(speeds, [one["loss_retrained"] for one in of], "o-", color=colour, label=kind)
    axes.axhline(shown[0]["figures"]["loss_dense"], color="0.3", linewidth=1, label="dense")
    if (again := shown[0]["figures"].get("loss_dense_retrained")) is not None:
        axes.axhline(again, color="0.3", linewidth=1, linestyle=":", label="dense, trained again")
    axes.set_xlabel("speed, dense model = 1")
    axes.set_ylabel("held-out loss, nats a byte (open: before training again)")
    axes.legend()
    save(figure, path)
