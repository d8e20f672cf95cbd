"""The walk over the linear modules of a model: nn.Linear, and Hugging Face's Conv1D."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

Filter = Callable[[str, nn.Module], bool]
"""filter_fn(name, module): whether to select a linear module."""


@dataclass(frozen=True)
class LinearPlace:
    """A linear module of a model and its position; `weight` is (outputs, inputs) for either kind."""

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
    def parameter(self) -> Tensor:
        """The weight as stored in the module."""
        weight = self.module.weight
        assert isinstance(weight, Tensor)
        return weight

    @property
    def bias(self) -> Tensor | None:
        bias = self.module.bias
        return bias.detach() if isinstance(bias, Tensor) else None

    def replace(self, module: nn.Module) -> None:
        """Replace the module by another one, in the same training mode."""
        setattr(self.parent, self.attribute, module.train(self.module.training))


def linear_places(model: nn.Module, filter_fn: Filter | None = None) -> Iterator[LinearPlace]:
    """The linear modules below a model, in the order of `named_modules`, each once; those that `filter_fn` accepts.

    Subclasses of nn.Linear are skipped: their forward may not be a plain product. A module at several
    positions is yielded at the first one only.
    """
    modules = dict(model.named_modules())
    for name, module in list(modules.items()):
        if not name or not (type(module) is nn.Linear or is_conv1d(module)):
            continue
        if filter_fn is None or filter_fn(name, module):
            above, _, attribute = name.rpartition(".")
            yield LinearPlace(name, modules[above], attribute, module)


Refusal = tuple[str, tuple[int, int], str]
"""The name of a linear module, its inputs and outputs, and the reason why it cannot be replaced."""


def refused_places(model: nn.Module, filter_fn: Filter | None = None) -> Iterator[Refusal]:
    """Yield the linear modules that cannot be replaced, in the order of `named_modules`, that `filter_fn` accepts."""
    named = list(model.named_modules(remove_duplicate=False))
    holders: dict[int, list[str]] = {}
    for name, module in named:
        for label, parameter in module.named_parameters(recurse=False):
            holders.setdefault(id(parameter), []).append(f"{name}.{label}")
    attentions = {f"{name}.out_proj" for name, module in named if isinstance(module, nn.MultiheadAttention)}
    under_fsdp = tuple(f"{name}." if name else "" for name, module in named if _is_fully_sharded(module))
    seen: set[int] = set()
    for name, module in named:
        linear = isinstance(module, nn.Linear) or is_conv1d(module) or _is_quantised(module) or _is_fast(module)
        if not linear or id(module) in seen or not name or (filter_fn is not None and not filter_fn(name, module)):
            continue
        seen.add(id(module))
        if reason := _reason(name, module, holders, attentions, name.startswith(under_fsdp)):
            yield name, _sizes(module), reason


def _reason(
    name: str, module: nn.Module, holders: dict[int, list[str]], attentions: set[str], under_fsdp: bool
) -> str | None:
    if _is_fast(module):
        return "it runs by schemes already"
    if _is_quantised(module):
        return f"{type(module).__name__} is quantised: its product is not one of floating numbers"
    if name in attentions:
        return "MultiheadAttention reads its weight and never calls it"
    if not (type(module) is nn.Linear or is_conv1d(module)):
        return f"it is a {type(module).__name__}, whose forward may not be a plain product"
    if "forward" in module.__dict__:
        return "its forward was replaced, which a new layer would lose"
    if is_parallelised(module):  # converted in place, so that its hooks stay
        if reason := _sharded_reason(module, under_fsdp):
            return reason
    elif any(getattr(module, kind, None) for kind in _HOOKS):
        return "it has hooks, which a new layer would lose"
    shared = [one for one in holders.get(id(module.weight), []) if one != f"{name}.weight"]
    return f"its weight is tied: it is {shared[0]} too" if shared else None


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_parallelised(module: nn.Module) -> bool:
    """Return whether a module's weight is a DTensor; checked by name, since the defining module is slow to import."""
    return type(getattr(module, "weight", None)).__name__ == "DTensor"


def _sharded_reason(module: nn.Module, under_fsdp: bool) -> str | None:
    """Return the reason why a linear module with a DTensor weight cannot be converted in place, or None."""
    if under_fsdp:
        return "its weight is sharded already (DTensor); accelerate the model before fully_shard"
    if not isinstance(module, nn.Linear):
        return f"it is a {type(module).__name__} whose weight is sharded (DTensor); accelerate the model before that"
    from .placements import has_whole_parts, shown  # torch.distributed.tensor is slow to import

    weight: Any = module.weight
    if not has_whole_parts(weight.placements):
        return f"its weight has the placements {shown(weight.placements)}, for which there is no sharding rule"
    return None


def _is_fully_sharded(module: nn.Module) -> bool:
    """Return whether `fully_shard` was applied to a module, which exchanges the parameters below it."""
    return any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__)


def _is_quantised(module: nn.Module) -> bool:
    """Return whether this is one of torch's quantised linear layers."""
    return ".quantized." in f"{type(module).__module__}." and hasattr(module, "in_features")


def _is_fast(module: nn.Module) -> bool:
    """Return whether this is one of our layers (`layers.FastModule`, which is slow to import)."""
    return getattr(module, "lcma_fast", False) is True


def _sizes(module: nn.Module) -> tuple[int, int]:
    """Return the numbers of inputs and outputs."""
    if is_conv1d(module):
        weight = module.weight
        assert isinstance(weight, Tensor)
        return int(weight.shape[0]), int(weight.shape[1])
    return int(getattr(module, "in_features", 0)), int(getattr(module, "out_features", 0))


def is_conv1d(module: nn.Module) -> bool:
    """Return whether this is transformers' Conv1D, a linear layer with the weight (inputs, outputs)."""
    weight = getattr(module, "weight", None)
    return (
        type(module).__name__ == "Conv1D" and hasattr(module, "nf") and isinstance(weight, Tensor) and weight.dim() == 2
    )
