"""The walk over the linear modules of a model: which of them can be converted in place, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...errors import PlanError
from .weight_reads import ANY, HOOKS, weight_reads

Filter = Callable[[str, nn.Module], bool]
"""filter_fn(name, module): whether to select a linear module."""

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class LinearPlace:
    """A linear module of a model by its first name, and the reason why it is left as it is, or None.

    Properties are of modules that are not refused: `weight` is (outputs, inputs) for either kind.
    """

    name: str
    module: nn.Module
    refused: str | None

    @property
    def parameter(self) -> Tensor:
        """The weight as stored in the module."""
        weight = self.module.weight
        assert isinstance(weight, Tensor)
        return weight

    @property
    def weight(self) -> Tensor:
        weight = self.parameter.detach()
        return weight if isinstance(self.module, nn.Linear) else weight.T

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of inputs and outputs, for refused modules too."""
        if self.refused is None or is_conv1d(self.module):
            outputs, inputs = self.weight.shape
            return inputs, outputs
        sizes: tuple[Any, Any] = self.module.in_features, self.module.out_features
        return sizes

    @property
    def nbytes(self) -> int:
        """The bytes of the weight, for refused modules too; 0: unknown."""
        weight = getattr(self.module, "weight", None)
        if not isinstance(weight, Tensor) or is_lazy(weight) or weight.layout is not torch.strided:
            return 0
        return weight.nbytes

    def become(self, layer: nn.Module) -> None:
        """Give the module the class, parameters and attributes of a layer; its hooks and all references to it stay."""
        mine = vars(nn.Module()).keys() - {"_parameters", "_buffers", "_modules"}
        layer.train(self.module.training)
        vars(self.module).update({name: value for name, value in vars(layer).items() if name not in mine})
        self.module.__class__ = type(layer)


def linear_places(model: nn.Module, filter_fn: Filter | None = None, *, new_weight: bool) -> list[LinearPlace]:
    """Return the linear modules of a model, in the order of `named_modules`, each once; those `filter_fn` accepts.

    With `new_weight` the conversion replaces the parameter, which tensors, hooks and methods may refer to.

    Raises:
        PlanError: the model is no module, or is itself a linear layer.
    """
    if not isinstance(model, nn.Module):
        raise PlanError(f"the model is a torch module, not {type(model).__name__}")
    if is_plain(model):
        raise PlanError("the model is itself a linear layer; put it into nn.Sequential")
    walk = _ModuleWalk(model, new_weight)
    found = []
    for names in walk.names.values():
        module = walk.modules[names[0]]
        sizes = (getattr(module, side, None) for side in ("in_features", "out_features"))
        if not (is_conv1d(module) or all(isinstance(size, int) for size in sizes)):
            continue  # no linear layer by its type or by its sizes, whatever its product is
        if accepted := [name for name in names if filter_fn is None or filter_fn(name, module)]:
            others = [name for name in names if name not in accepted]
            reason = f"it is {others[0]} too, which is not selected" if others else walk.reason(names, module)
            found.append(LinearPlace(accepted[0], module, reason))
    return found


class _ModuleWalk:
    """The modules of a model by name, the names of each, and the names of each tensor that they hold."""

    def __init__(self, model: nn.Module, new_weight: bool) -> None:
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.new_weight = new_weight
        self.names: dict[int, list[str]] = {}
        for name, module in self.modules.items():
            self.names.setdefault(id(module), []).append(name)
        self.holders: dict[int, list[str]] = {}
        self.bound: dict[int, str] = {}
        """Where a method of a module is held, which stays that of the class that the module had."""

        for name, module in model.named_modules():
            named = {**module._parameters, **module._buffers, **vars(module), "_parameters": None, "_buffers": None}
            for label, held in named.items():
                within = held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple) else [held]
                for one in within:
                    if isinstance(one, Tensor):
                        self.holders.setdefault(_memory(one), []).append(f"{name}.{label}".lstrip("."))
                    elif isinstance(one, MethodType):
                        self.bound[id(one.__self__)] = f"{name}.{label}".lstrip(".")
        self.under_fsdp = self._below("FSDPModule")
        self.under_ddp = self._below("DistributedDataParallel")
        self._reads = cache(weight_reads)

    def _below(self, kind: str) -> tuple[str, ...]:
        """Return the prefixes of the names below modules of a class; by its name, since it is slow to import."""
        above = [name for name, one in self.modules.items() if any(cls.__name__ == kind for cls in type(one).__mro__)]
        return tuple(f"{name}." if name else "" for name in above)

    def reason(self, names: list[str], module: nn.Module) -> str | None:
        """Return the reason why a linear module cannot be converted in place, or None."""
        if reason := _own_reason(module):
            return reason
        weight = module.weight
        assert isinstance(weight, Tensor)
        if is_sharded(weight):
            if reason := _sharded_reason(module, names[0].startswith(self.under_fsdp), self.new_weight):
                return reason
        elif type(weight) is not nn.Parameter:
            return f"its weight is a {type(weight).__name__}, no plain parameter"
        if self.new_weight and names[0].startswith(self.under_ddp):
            return "DistributedDataParallel holds its weight; compress the model before"
        if others := [one for one in self.holders.get(_memory(weight), ()) if one != f"{names[0]}.weight"]:
            return f"its weight is tied: it is {others[0]} too"
        if held := self.bound.get(id(module)):
            return f"{held} holds a method of it"
        for name in names:
            if found := self._reader(name):
                reader, method = found  # modules of torch multiply by the weight itself in inference
                if self.new_weight or (type(reader).__module__.startswith("torch.nn.") and not module.training):
                    return f"{type(reader).__name__}.{method} reads its weight"
        return _dependent_reason(module, weight) if self.new_weight else None

    def _reader(self, name: str) -> tuple[nn.Module, str] | None:
        """Return the nearest module above a name that reads the weight by itself, and the method."""
        parts = name.split(".")
        above = [self.modules[".".join(parts[:depth])] for depth in range(len(parts))]
        attributes = [parts[-1]]
        for container, attribute in zip(above[:0:-1], parts[-2::-1], strict=True):  # of containers their own names too
            if not isinstance(container, nn.ModuleList | nn.ModuleDict | nn.Sequential):
                break
            attributes.append(attribute)
        for module in reversed(above):
            reads = self._reads(module)
            if found := [reads[one] for one in (*attributes, ANY) if one in reads]:
                return module, found[0]
        return None


def _own_reason(module: nn.Module) -> str | None:
    """Return the reason, in a module itself, why it is not a plain product with a parameter of floating numbers."""
    kind, weight = type(module).__name__, getattr(module, "weight", None)
    if getattr(module, "lcma_fast", False) is True:  # layers.FastModule is slow to import
        return "it runs by schemes already"
    if ".quantized." in f"{type(module).__module__}.":
        return f"{kind} is quantised: its product is not one of floating numbers"
    if isinstance(weight, Tensor) and is_lazy(weight):
        return f"it is a {kind} without sizes; run the model once before"
    if isinstance(module, nn.Linear) or is_conv1d(module):
        held = (*module._parameters, *module._buffers, *module._modules)
        if besides := [name for name in held if name not in ("weight", "bias")]:
            return f"it has {besides[0]} besides weight and bias, as of pruning, a parametrization or an adapter"
    if not is_plain(module):
        return f"it is a {kind}, whose forward may not be a plain product"
    if "forward" in vars(module):
        return "its forward was replaced on the instance"
    if not isinstance(weight, Tensor) or weight.layout is not torch.strided:
        return "it has no dense weight"
    if weight.dtype not in FLOATS:
        return f"its weight is {str(weight.dtype).removeprefix('torch.')}, not float64, float32, float16 or bfloat16"
    return None


def _dependent_reason(module: nn.Module, weight: Tensor) -> str | None:
    """Return the reason why the weight of a plain linear module cannot be replaced by other parameters, or None."""
    hooks = [name[1:].replace("_", " ") for name in HOOKS if getattr(module, name)]
    if getattr(weight, "_backward_hooks", None) or getattr(weight, "_post_accumulate_grad_hooks", None):
        hooks.append("hooks of its weight")
    if hooks:
        return f"it has {hooks[0]}, which may depend on its weight"
    return "its weight has no data (device meta); load it first" if weight.is_meta else None


def _memory(tensor: Tensor) -> int:
    """Return a number that tensors of the same data share."""
    plain = type(tensor) in (nn.Parameter, Tensor) and tensor.layout is torch.strided and tensor.numel()
    return (tensor.data_ptr() if plain else 0) or id(tensor)


def is_plain(module: nn.Module) -> bool:
    """Return whether a module is nn.Linear or Conv1D itself, no subclass."""
    return type(module) is nn.Linear or (type(module).__name__ == "Conv1D" and is_conv1d(module))


def is_conv1d(module: nn.Module) -> bool:
    """Return whether this is transformers' Conv1D or a subclass, a linear layer with the weight (inputs, outputs)."""
    weight = getattr(module, "weight", None)
    named = any(kind.__name__ == "Conv1D" for kind in type(module).__mro__) and hasattr(module, "nf")
    return named and isinstance(weight, Tensor) and weight.dim() == 2


def is_sharded(tensor: Tensor) -> bool:
    """Return whether this is a DTensor; checked by name, since the defining module is slow to import."""
    return type(tensor).__name__ == "DTensor"


def _sharded_reason(module: nn.Module, under_fsdp: bool, new_weight: bool) -> str | None:
    """Return the reason why a linear module with a DTensor weight cannot be converted in place, or None."""
    if under_fsdp or new_weight:
        before = "compress the model before that" if new_weight else "accelerate the model before fully_shard"
        return f"its weight is sharded already (DTensor); {before}"
    if not isinstance(module, nn.Linear):
        return f"it is a {type(module).__name__} whose weight is sharded (DTensor); accelerate the model before that"
    from .placements import has_whole_parts, shown  # torch.distributed.tensor is slow to import

    weight: Any = module.weight
    if not has_whole_parts(weight.placements):
        return f"its weight has the placements {shown(weight.placements)}, for which there is no sharding rule"
    return None


def refuse_script(module: nn.Module) -> nn.Module:
    """Refuse torch.jit.script, as `__prepare_scriptable__` of layers: its compiler does not know their operators."""
    raise PlanError(f"{type(module).__name__} can't be compiled by torch.jit.script; use torch.compile or torch.export")
