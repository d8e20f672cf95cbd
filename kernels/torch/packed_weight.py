"""Layers that store what was computed from their weights, and weights that drop it if they may change."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn

from .modules import refuse_script


class PackedModule(nn.Module):
    """A layer that stores a tensor computed from its parameters, until they change; base of the linear layers."""

    __prepare_scriptable__ = refuse_script

    weight: Tensor
    _packed: tuple[Any, ...] | None = None
    """The tensor, and the identity of what it was computed from."""

    @property
    def packed_bytes(self) -> int:
        """Number of bytes of what `pack` stored."""
        return 0 if self._packed is None else int(self._packed[0].nbytes)

    def unpack(self) -> None:
        """Free what `pack` stored."""
        self._packed = None

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.unpack()
        super()._load_from_state_dict(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}


_packed_layers: weakref.WeakSet[Any] = weakref.WeakSet()


class PackedWeight(nn.Parameter):
    """A parameter that notifies its layer when its `.data` is accessed: writes to that do not change the version."""

    _layer: weakref.ref[PackedModule]

    @property
    def data(self) -> Tensor:
        """The data, as of any tensor; the packed sums are dropped first."""
        self._drop()
        found: Tensor = torch._C.TensorBase.data.__get__(self)  # type: ignore[attr-defined]
        return found

    @data.setter
    def data(self, value: Tensor) -> None:
        self._drop()
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]

    def _drop(self) -> None:
        layer = self._layer()
        if layer is not None:
            layer.unpack()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as a plain parameter: the layer's sums are not stored either."""
        return nn.Parameter(self.detach(), self.requires_grad).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Parameter:
        found = memo[id(self)] = nn.Parameter(self.detach().clone(), self.requires_grad)
        return found


def watch(layer: PackedModule) -> None:
    """Drop a layer's sums at `weight.data` and after every step of an optimizer that has its weight."""
    if not isinstance(layer.weight, PackedWeight):
        layer.weight.__class__ = PackedWeight
    layer.weight._layer = weakref.ref(layer)  # type: ignore[attr-defined]
    if not _hooked:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        _hooked.append(register_optimizer_step_post_hook(_after_step))
    _packed_layers.add(layer)


def unwatch(layer: PackedModule) -> None:
    """Drop a layer's sums, and make its weight a plain parameter again; undoes `watch`."""
    layer.unpack()
    _packed_layers.discard(layer)
    if isinstance(layer.weight, PackedWeight):
        layer.weight.__class__ = nn.Parameter  # type: ignore[assignment]


_hooked: list[Any] = []
"""The hook that is registered for all optimizers, once."""


def _after_step(optimizer: Any, *_: Any) -> None:
    stepped = {id(one) for group in optimizer.param_groups for one in group["params"]}
    for layer in list(_packed_layers):
        if id(layer.weight) in stepped:
            layer.unpack()
