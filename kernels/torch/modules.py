"""The walk over the linear modules of a model: nn.Linear, and Conv1D as Hugging Face's models have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

Filter = Callable[[str, nn.Module], bool]
"""filter_fn(name, module): whether a linear module is meant."""


@dataclass(frozen=True)
class LinearPlace:
    """A linear module of a model and where it stands; `weight` is (outputs, inputs) for either kind."""

    name: str
    parent: nn.Module
    attribute: str
    module: nn.Module

    @property
    def weight(self) -> Tensor:
        weight = self.module.weight
        assert isinstance(weight, Tensor)
        return weight.detach() if isinstance(self.module, nn.Linear) else weight.detach().T

    @property
    def bias(self) -> Tensor | None:
        bias = self.module.bias
        return bias.detach() if isinstance(bias, Tensor) else None

    def replace(self, module: nn.Module) -> None:
        """Put another module in its place, in the same mode of training."""
        setattr(self.parent, self.attribute, module.train(self.module.training))


def linear_places(model: nn.Module, filter_fn: Filter | None = None) -> Iterator[LinearPlace]:
    """The linear modules below a model, in the order of `named_modules`, each once; those that `filter_fn` takes.

    Subclasses of nn.Linear are left alone: their forward may not be a plain product. A module that stands in several
    places is given at the first one only.
    """
    modules = dict(model.named_modules())
    for name, module in list(modules.items()):
        if not name or not (type(module) is nn.Linear or _is_conv1d(module)):
            continue
        if filter_fn is None or filter_fn(name, module):
            above, _, attribute = name.rpartition(".")
            yield LinearPlace(name, modules[above], attribute, module)


def _is_conv1d(module: nn.Module) -> bool:
    """Whether this is transformers' Conv1D, a linear layer with the weight (inputs, outputs)."""
    weight = getattr(module, "weight", None)
    return (
        type(module).__name__ == "Conv1D" and hasattr(module, "nf") and isinstance(weight, Tensor) and weight.dim() == 2
    )
