"""Block low-rank layers in place of the linear layers of a model, in place, with a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...errors import PlanError
from ..block_low_rank.decomposition import STEPS, decompose
from ..block_low_rank.structure import Blast, BlockLowRank, LowRank, Monarch
from .block_low_rank_layers import layer_of
from .modules import Filter, LinearPlace, linear_places

KINDS = ("low-rank", "monarch", "blast")


@dataclass(frozen=True)
class CompressConfig:
    """The structure of compressed layers: a kind, and the part of the dense parameters that factors may take.

    `blocks` is b1 = b2 of Monarch and BLAST; `steps` are those of BLAST's descent.

    Raises:
        PlanError: there is no such kind, or a number is out of range.
    """

    kind: str
    budget: float = 0.5
    blocks: int = 16
    steps: int = STEPS

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PlanError(f"kind {self.kind!r} is not known; choose one of {', '.join(KINDS)}")
        if not 0 < self.budget < 1:
            raise PlanError(f"budget is a part of the dense parameters, between 0 and 1, not {self.budget}")
        if self.blocks < 1 or self.steps < 1:
            raise PlanError(f"blocks and steps must be at least 1, not {self.blocks} and {self.steps}")

    def structure(self, rows: int, cols: int) -> BlockLowRank:
        """The structure of the largest rank within the budget.

        Raises:
            PlanError: blocks do not divide a side, or the budget is below rank one.
        """
        most, b = self.budget * rows * cols, self.blocks
        if self.kind == "low-rank":
            rank, bound = int(most // (rows + cols)), min(rows, cols)
        elif cols % b or rows % b:
            raise PlanError(f"blocks = {b} must divide the {cols} inputs and the {rows} outputs")
        elif self.kind == "monarch":
            rank, bound = int(most // (b * (rows + cols))), min(rows, cols) // b
        else:
            rank, bound = int(most // (rows + cols + b * b)), min(rows, cols)
        if rank < 1:
            raise PlanError(f"a budget of {self.budget} is below rank one of {rows} x {cols}")
        rank = min(rank, bound)
        if self.kind == "low-rank":
            return LowRank(rows, cols, rank)
        return Monarch(rows, cols, b, b, rank) if self.kind == "monarch" else Blast(rows, cols, b, b, rank)


@dataclass(frozen=True)
class LayerReport:
    """What became of a linear layer: bytes of its weight, the relative error of its weight, or why it stayed dense."""

    name: str
    structure: str
    bytes_before: int
    bytes_after: int
    error: float
    skipped: str | None = None


def compress_(
    model: nn.Module,
    config: CompressConfig,
    filter_fn: Filter | None = None,
    on_layer: Callable[[LayerReport], None] = lambda _: None,
) -> list[LayerReport]:
    """Replace the linear layers of a model in place by block low-rank ones; a report for each that `filter_fn` takes.

    Layers that the structure does not fit stay as they are, and their report says why. Weights are decomposed on their
    device, in float64 on a processor and in float32 on a GPU; factors get the dtype of the weight. Nothing is replaced
    where one weight holds NaN or infinity.

    Raises:
        PlanError: a weight holds NaN or infinity, or no layer is taken.
    """
    places = list(linear_places(model, filter_fn))
    if not places:
        raise PlanError("no linear layer was taken; check filter_fn")
    for place in places:
        if not torch.isfinite(place.weight).all():
            raise PlanError(f"the weight of {place.name} holds NaN or infinity; repair it first")
    found = []
    for place in places:
        found.append(_compressed(place, config))
        on_layer(found[-1])
    return found


def _compressed(place: LinearPlace, config: CompressConfig) -> LayerReport:
    weight: Tensor = place.weight
    rows, cols = (int(size) for size in weight.shape)
    held = weight.numel() * weight.element_size()
    try:
        structure = config.structure(rows, cols)
    except PlanError as error:
        return LayerReport(place.name, "dense", held, held, 0.0, str(error))
    wide = weight.to(torch.float32 if weight.is_cuda else torch.float64)
    result = decompose(wide, structure, config.steps)
    layer = layer_of(structure, place.bias is not None, weight.device, weight.dtype)
    with torch.no_grad():
        for parameter, factor in zip(layer.factors, result.factors, strict=True):
            parameter.copy_(factor)
        if layer.bias is not None and place.bias is not None:
            layer.bias.copy_(place.bias)
    place.replace(layer)
    return LayerReport(place.name, structure.name, held, structure.parameters * weight.element_size(), result.error)
