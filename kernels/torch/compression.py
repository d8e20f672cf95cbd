"""Replacement of a model's linear layers by structured ones, in place, with a report."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...arguments import INTEGER, PATH, need
from ...errors import PlanError, RankError
from .. import safetensors
from ..compressed_files import FinishedLayers, structures_in
from ..compression import (
    CompressConfig,
    Configs,
    FactorChain,
    LayerReport,
    compress_weight,
    config_for,
    output_error,
    predicted_speed,
)
from ..cpu.bench import in_turns
from ..factor_files import readable
from ..learning import paused
from .block_low_rank_layers import layer_of
from .modules import Filter, LinearPlace, linear_places
from .processor import stored_tensor

CALIBRATION_ROWS = 256
"""Maximum number of inputs of a layer for its output error: the first ones of the batch."""


@dataclass(frozen=True)
class _Task:
    """A layer to compress: its place, its configuration, and the candidate structures."""

    place: LinearPlace
    config: CompressConfig
    structures: tuple[FactorChain, ...]


def compress_(
    model: nn.Module,
    config: Configs | str,
    filter_fn: Filter | None = None,
    on_layer: Callable[[LayerReport], None] = lambda _: None,
    *,
    calibration: Any = None,
    batch: int | None = None,
    rows: Sequence[int] = (),
    folder: str | Path | None = None,
    on_event: Callable[[str], None] = lambda _: None,
) -> list[LayerReport]:
    """Convert the linear layers of a model in place to structured ones; report on all that `filter_fn` accepts.

    `config` is one configuration, its text as for `lcma compress` ("monarch:budget=0.25"), or a mapping from patterns
    of names ("blocks.*.down") to configurations, of which the first match applies and None leaves a layer unchanged.
    Biases, names, references, the training mode and requires_grad stay. Layers remain unchanged, and their report gives
    the reason, if the structure does not fit or something else depends on the weight: a tied parameter, hooks, pruning,
    a parametrization, or a method that reads it, as the fast path of nn.TransformerEncoderLayer does. Weights are
    decomposed on their device, in float64 on the CPU and in float32 on a GPU; factors get the dtype of the weight.
    Nothing is replaced if a weight contains NaN or infinity.

    `calibration` is an input of the model, or a tuple of its arguments: the model is run on it once, and reports have
    the error of each layer's outputs. With `batch` they have the predicted speed at so many inputs, with `rows` the
    measured speed of eager calls at each of these numbers of inputs: few may be slower than by the dense weight. With
    `folder` finished layers are stored there, and a later call with the same model and configuration resumes from them.

    Raises:
        RankError: a rank exceeds that of a weight.
        PlanError: a weight contains NaN or infinity, or no layer is selected.
    """
    if isinstance(config, str):
        config = {"*": CompressConfig.parse(config)}
    need(CompressConfig | Mapping, config=config)
    need(Callable | None, filter_fn=filter_fn)
    need(Callable, on_layer=on_layer, on_event=on_event)
    need(INTEGER | None, least=1, batch=batch)
    need(Sequence, rows=rows)
    for count in rows:
        need(INTEGER, least=1, rows=count)
    need(PATH | None, folder=folder)

    def selected(name: str, module: nn.Module) -> bool:
        return config_for(name, config) is not None and (filter_fn is None or filter_fn(name, module))

    places = linear_places(model, selected, new_weight=True)
    if not places:
        raise PlanError("no linear layer was taken; check filter_fn and the patterns of config")
    for place in places:
        if place.refused is None and not torch.isfinite(place.weight).all():
            raise PlanError(f"the weight of {place.name} holds NaN or infinity; repair it first")
    planned = [_planned(place, config) for place in places]
    tasks = [one for one in planned if isinstance(one, _Task)]
    inputs = {} if calibration is None else _inputs_of(model, [task.place for task in tasks], calibration)
    store = None if folder is None else FinishedLayers(Path(folder))
    found = []
    for one in planned:
        if isinstance(one, _Task):
            on_event(one.place.name)
            one = _compressed(one, inputs.get(one.place.name), batch, rows, store, on_event)
        found.append(one)
        on_layer(one)
    return found


def _planned(place: LinearPlace, configs: Configs) -> _Task | LayerReport:
    config, reason = config_for(place.name, configs), place.refused
    assert config is not None
    cols, rows = place.sizes
    try:
        if reason is None:
            return _Task(place, config, config.structures(rows, cols))
    except RankError as error:
        raise RankError(f"{place.name}: {error}") from None
    except PlanError as error:
        reason = str(error)
    return LayerReport(place.name, "dense", place.nbytes, place.nbytes, 0.0, reason)


def _compressed(
    task: _Task,
    inputs: Any,
    batch: int | None,
    rows: Sequence[int],
    store: FinishedLayers | None,
    on_event: Callable[[str], None],
) -> LayerReport:
    place, weight, config = task.place, task.place.weight, task.config
    wide = weight.to(torch.float32 if weight.is_cuda else torch.float64)
    key = "" if store is None else store.key(place.name, repr(config), _array(wide))
    found = None if store is None else store.load(key)
    if found is None:

        def say(text: str) -> None:
            on_event(f"{place.name}: {text}")

        found = compress_weight(wide, task.structures, config.steps, say, config.tolerance)
        if store is not None:
            store.store(key, replace(found, factors=tuple(map(_array, found.factors))))
    structure = found.structure
    layer = _layer(structure, place).load_factors(found.factors)
    error = None
    if inputs is not None:
        rounded = tuple(_array(factor.detach().double()) for factor in layer.factors)  # as stored in the layer
        error = output_error(_array(wide), structure, rounded, inputs)
    at_rows = measured_ratios(place.module, layer, rows)
    place.become(layer)
    held = weight.element_size()
    name = str(weight.dtype).removeprefix("torch.")
    return LayerReport(
        place.name,
        structure.name,
        weight.numel() * held,
        structure.parameters * held,
        found.error,
        output_error=error,
        predicted=None if batch is None else predicted_speed(structure, batch, name, weight.device.type),
        at_rows=at_rows,
    )


def _layer(structure: FactorChain, place: LinearPlace) -> Any:
    """Return a structured layer with the bias of a linear one, and factors that are trained if its weight is."""
    module: Any = place.module
    weight = place.parameter
    layer: Any = layer_of(structure, True, weight.device, weight.dtype)
    layer.bias = module.bias
    for factor in layer.factors:
        factor.requires_grad_(weight.requires_grad)
    return layer


def _array(x: Any) -> Any:
    return x.cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)


def _inputs_of(model: nn.Module, places: list[LinearPlace], calibration: Any) -> dict[str, Any]:
    """Return the first inputs of every layer, as float64 arrays (n, cols), from one run of the model."""
    found: dict[str, Any] = {}

    def keep(name: str, _: nn.Module, given: tuple[Any, ...]) -> None:
        rows = given[0].detach().reshape(-1, given[0].shape[-1])[:CALIBRATION_ROWS]
        found.setdefault(name, rows.double().cpu().numpy())

    with ExitStack() as hooks, torch.no_grad():
        for place in places:
            hooks.callback(place.module.register_forward_pre_hook(partial(keep, place.name)).remove)
        model(*calibration) if isinstance(calibration, tuple) else model(calibration)
    return found


def load_compressed_(model: nn.Module, path: str | Path) -> list[str]:
    """Replace linear layers by the structured ones of a file of `lcma compress`, and load all its tensors.

    The model is the one that was compressed, with dense layers. Returns the names of the replaced layers.

    Raises:
        SchemeFormatError: the file contains no compressed model.
        PlanError: the model has no such layer or tensor, or another shape of it; nothing was changed.
    """
    need(nn.Module, model=model)
    need(PATH, path=path)
    path = Path(path)
    with readable(path):
        structures, entries = structures_in(path), safetensors.entries(path)
    places = {place.name: place for place in linear_places(model, new_weight=True)}
    layers = {}
    for name, structure in structures.items():
        place = places.get(name)
        if place is None or place.refused is not None or place.sizes != (structure.cols, structure.rows):
            mine = "the model has no such linear layer"
            if place is not None:
                mine = f"in the model {place.refused or f'it is one of {place.sizes[::-1]}'}"
            raise PlanError(f"{path} has {name} as {structure.name}, and {mine}")
        layers[name] = _layer(structure, place)
    state = model.state_dict(keep_vars=True)
    there = {id(value) for name, value in state.items() if name in entries}
    dense = {id(places[name].parameter) for name in layers}
    wanted = {
        name: tuple(value.shape)
        for name, value in state.items()
        if id(value) not in dense and (name in entries or id(value) not in there)  # tied: stored once
    }
    factors = ((f"{at}.{name}", value) for at, one in layers.items() for name, value in one.named_parameters())
    wanted |= {name: tuple(value.shape) for name, value in factors if not name.endswith(".bias")}
    for name in sorted({*wanted, *entries}):
        stored = entries[name].shape if name in entries else None
        if wanted.get(name) != stored:
            raise PlanError(f"{name} has shape {wanted.get(name)} in the model and {stored} in {path}")
    for name, layer in layers.items():
        places[name].become(layer)
    tensors = {name: stored_tensor(safetensors.read(path, entry)) for name, entry in entries.items()}
    model.load_state_dict(tensors, strict=False)  # names and shapes were compared above
    return list(layers)


ROUNDS, SPENT = 7, 0.005
"""Rounds in which both layers run in turn, and the seconds of each in a round, at least one call."""


def measured_ratios(dense: nn.Module, structured: Any, rows: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Return for each number of inputs the dense layer's median seconds over the structured one's, of eager calls.

    `structured` is a `FactoredLinear`. Calls record no gradients, and the host's time counts: with few inputs factors
    are slower where their launches take longer than reading the dense weight. Products use plans that are known, and
    nothing is learned.
    """
    weight: Any = next(structured.parameters())
    wait = torch.cuda.synchronize if weight.is_cuda else lambda: None  # calls on a processor have ended
    found = []
    with torch.no_grad(), paused():
        for count in rows:
            x = torch.randn(count, structured.in_features, dtype=weight.dtype, device=weight.device)
            calls, repeats = {}, {}
            for name, layer in (("dense", dense), ("structured", structured)):
                once = partial(_repeated, partial(layer, x), 1, wait)
                once()  # plans, and compiles
                repeats[name] = math.ceil(SPENT / max(*in_turns({name: once}, 1, wait)[name], 1e-9))
                calls[name] = partial(_repeated, partial(layer, x), repeats[name], wait)
            times = in_turns(calls, ROUNDS, wait)
            theirs, ours = (statistics.median(seconds) / repeats[name] for name, seconds in times.items())
            found.append((count, theirs / ours))
    return tuple(found)


def _repeated(call: Callable[[], Any], repeats: int, wait: Callable[[], object]) -> None:
    for _ in range(repeats):
        call()
    wait()
