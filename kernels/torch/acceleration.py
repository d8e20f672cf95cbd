"""Replacement of a model's linear layers by layers that use schemes, in place, with a report for each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from ...arguments import INTEGER, need, shown
from ...errors import PlanError
from ...schemes_db.display import line
from ..dense.chains import Chain
from ..plans.decisions import decision_for
from ..plans.tuning import tune
from ..precision import TF32
from ..request import Layout, Request
from .layers import FastConv1D, FastLinear, FastModule, unpackable
from .modules import Filter, LinearPlace, is_sharded, linear_places

ON_PROCESSOR = ("float32", "float64")
"""dtypes of layers that are replaced on the CPU: half precision is multiplied in float32 there."""


@dataclass(frozen=True)
class AccelerateConfig:
    """Options of `accelerate_`: the products that layers are planned for.

    `rows`: the numbers of rows (tokens) of a layer's input; a layer is replaced if one of them
    gains. `max_extra_bytes`: the memory of all packed weights together besides the model, assigned to the layers
    with the largest gain per byte; packed for the largest of `rows`. `device`: "cpu" or "cuda", the device to plan for;
    None: that of the weights. `measure`: time the candidates of every product, as `lcma tune` does, instead of
    predicting them.

    Raises:
        PlanError: a number is out of range.
    """

    rows: tuple[int, ...] = (512, 2048, 8192)
    max_extra_bytes: int = 0
    device: str | None = None
    measure: bool = False

    def __post_init__(self) -> None:
        need(INTEGER, max_extra_bytes=self.max_extra_bytes)
        need(str | None, device=self.device)
        need(bool, measure=self.measure)
        rows = self.rows if isinstance(self.rows, Sequence) else ()
        if not rows or not all(isinstance(one, int) and one >= 1 for one in rows):
            raise PlanError(f"rows are numbers of tokens, one or more of at least 1, not {shown(self.rows)}")
        if self.max_extra_bytes < 0:
            raise PlanError(f"max_extra_bytes must be at least 0, not {self.max_extra_bytes}")
        if self.device not in (None, "cpu", "cuda"):
            raise PlanError(f'device is "cpu", "cuda" or None, not {self.device!r}')


@dataclass(frozen=True)
class Bucket:
    """The plan of a layer's product for a number of rows.

    `predicted` and `measured`: seconds of the vendor's products over those of the planned ones, both gradients included
    in training mode; None: unknown.
    """

    rows: int
    plan: str
    predicted: float | None
    measured: float | None

    @property
    def gain(self) -> float:
        """The measured gain, else the predicted one; 1 if both are unknown."""
        return self.measured or self.predicted or 1.0


@dataclass(frozen=True)
class AcceleratedLayer:
    """The report of a linear layer: its plans by rows, the bytes of its packed sums, or why it was not replaced.

    Of a layer whose weight is sharded the sizes are those of the part that this process multiplies by.
    """

    name: str
    inputs: int
    outputs: int
    buckets: tuple[Bucket, ...] = ()
    packed_bytes: int = 0
    refused: str | None = None

    def __repr__(self) -> str:
        return line(f"layer {self.name} {self.inputs}->{self.outputs}: {self.refused or 'accelerated'}")


def accelerate_(
    model: nn.Module,
    config: AccelerateConfig | None = None,
    filter_fn: Filter | None = None,
    on_layer: Callable[[AcceleratedLayer], None] = lambda _: None,
) -> list[AcceleratedLayer]:
    """Replace the linear layers of a model in place by ones whose products use schemes; return a report for each.

    nn.Linear and transformers' Conv1D are converted in place if a scheme should gain for one of `config.rows`:
    parameters, hooks, names and references stay, so that optimizers, checkpoints and `state_dict` are unaffected.
    Refused with a reason: tied, pruned and parametrized weights, subclasses such as MultiheadAttention's projection,
    quantised, lazy and structured layers, dtypes without schemes, weights under `fully_shard`, and in evaluation mode
    the layers that nn.TransformerEncoderLayer does not call. An nn.Linear of tensor parallelism (a DTensor weight) is
    planned for its local part. In training mode both gradients' products are planned and counted too. `restore_` undoes
    it.

    Raises:
        PlanError: the model is no module, is itself a linear layer, or has none that `filter_fn` accepts.
    """
    need(AccelerateConfig | None, config=config)
    need(Callable | None, filter_fn=filter_fn)
    need(Callable, on_layer=on_layer)
    config = config or AccelerateConfig()
    places = linear_places(model, filter_fn, new_weight=False)
    if not places:
        raise PlanError("the model has no linear layer" + (" that filter_fn accepts" if filter_fn else ""))
    plan = _Planner(config)
    reports = [plan.report(place) for place in places]
    packed = plan.packing([place for place, report in zip(places, reports, strict=True) if report.refused is None])
    found = []
    for place, report in zip(places, reports, strict=True):
        if report.refused is None:
            kind: type[FastModule] = FastLinear if isinstance(place.module, nn.Linear) else FastConv1D
            layer = kind.convert_(place.module)
            if place.name in packed and layer.pack(max(config.rows)):
                report = replace(report, packed_bytes=layer.packed_bytes)
        found.append(report)
        on_layer(report)
    return found


def restore_(model: nn.Module) -> int:
    """Convert the layers of `accelerate_` back to plain linear layers in place; return their number."""
    need(nn.Module, model=model)
    layers = [module for module in model.modules() if isinstance(module, FastModule)]
    for layer in layers:
        layer.revert_()
    return len(layers)


class _Planner:
    """Plans of layers, each distinct layer once."""

    def __init__(self, config: AccelerateConfig) -> None:
        self._config = config
        self._gains = cache(self._decided)

    def report(self, place: LinearPlace) -> AcceleratedLayer:
        """Return the buckets of a layer, or the reason why it is refused."""
        if place.refused is not None:
            return AcceleratedLayer(place.name, *place.sizes, refused=place.refused)
        outputs, inputs = _part(place).shape
        of = partial(AcceleratedLayer, place.name, inputs, outputs)
        name = str(place.weight.dtype).removeprefix("torch.")
        if self._device(place.weight) == "cpu" and name not in ON_PROCESSOR:
            return of(refused=f"{name} is multiplied in float32 on a processor; convert the layer to float32 first")
        try:
            requests = (tuple(self._requests(place, rows, place.module.training)) for rows in self._config.rows)
            buckets = tuple(Bucket(some[0].m, *self._gains(some)) for some in requests)
        except PlanError as error:
            return of(refused=str(error))
        if all(bucket.gain <= 1 for bucket in buckets):
            rows = ", ".join(map(str, self._config.rows))
            return of(buckets, refused=f"the vendor's product is the fastest for {rows} rows")
        return of(buckets)

    def packing(self, places: list[LinearPlace]) -> dict[str, int]:
        """Return the bytes by name of the layers to pack: those with the largest gain per byte, within the limit."""
        offers = []
        for place in places:
            if unpackable(place.parameter) is not None:
                continue
            request = next(self._requests(place, max(self._config.rows), False))
            online, offline = decision_for(request), decision_for(replace(request, static="B"))
            source = offline.plan.candidate.source
            if online.plan.seconds is None or offline.plan.seconds is None or not isinstance(source, Chain):
                continue
            size = place.weight.numel() * place.weight.element_size()
            for level in source.levels:
                _, k, n = level.scheme.target.shape
                size = size * level.scheme.rank // (k * n)
            offers.append(((online.plan.seconds - offline.plan.seconds) / size, size, place.name))
        left, found = self._config.max_extra_bytes, {}
        for gain, size, name in sorted(offers, reverse=True):
            if gain > 0 and size <= left:
                found[name] = size
                left -= size
        return found

    def _device(self, weight: Tensor) -> str:
        return self._config.device or ("cuda" if weight.is_cuda else "cpu")

    def _requests(self, place: LinearPlace, rows: int, training: bool) -> Iterator[Request]:
        """Yield the request of the layer's product; in training also those of the gradients of its input and weight."""
        outputs, inputs = _part(place).shape
        device = self._device(place.weight)
        name = str(place.weight.dtype).removeprefix("torch.")
        rounds = device == "cuda" and name == "float32" and torch.backends.cuda.matmul.allow_tf32
        rows_, columns = Layout.ROWS, Layout.COLUMNS
        stored, other = (columns, rows_) if isinstance(place.module, nn.Linear) else (rows_, columns)
        of = partial(Request, dtype=name, device=device, precision=TF32 if rounds else None)
        yield of(rows, inputs, outputs, layouts=(rows_, stored, rows_))
        if training:
            yield of(rows, outputs, inputs, layouts=(rows_, other, rows_))
            yield of(inputs, rows, outputs, layouts=(columns, rows_, rows_))

    def _decided(self, requests: tuple[Request, ...]) -> tuple[str, float | None, float | None]:
        plans, ours, theirs, timed = [], [], [], []
        for request in requests:
            times = {}
            if self._config.measure:
                times = {one.plan.candidate: one.seconds for one in tune(request)}
            decision = decision_for(request)
            plans.append(str(decision.plan.candidate))
            ours.append(decision.plan.seconds)
            theirs.append(decision.baseline.seconds)
            timed.append((times.get(decision.baseline.candidate), times.get(decision.plan.candidate)))
        measured = _ratio([one for one, _ in timed], [one for _, one in timed])
        return "; ".join(dict.fromkeys(plans)), _ratio(theirs, ours), measured


def _part(place: LinearPlace) -> Tensor:
    """Return the part (outputs, inputs) of the weight that this process multiplies by: all of it, but for a DTensor."""
    weight: Any = place.weight
    return weight.to_local() if is_sharded(weight) else weight


def _ratio(theirs: list[float | None], ours: list[float | None]) -> float | None:
    known = [one for one in (*theirs, *ours) if one]
    return sum(known[: len(theirs)]) / sum(known[len(theirs) :]) if len(known) == 2 * len(ours) else None
