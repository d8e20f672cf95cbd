"""Flip walks by the ten thousand on GPUs. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chasing import Chase, chase
    from .descents import descend
    from .device import DeviceLostError, gpus
    from .fleet import Fleet
    from .fronts import DirectedWalk, Front
    from .ladders import Rung, climb
    from .neighbours import Way, ways
    from .runs import CudaSession
    from .settings import Setting, setting_for
    from .starts import bordered, cut, rolled, starts_for

_EXPORTS = {
    "Chase": "chasing",
    "CudaSession": "runs",
    "DeviceLostError": "device",
    "DirectedWalk": "fronts",
    "Fleet": "fleet",
    "Front": "fronts",
    "Rung": "ladders",
    "Setting": "settings",
    "Way": "neighbours",
    "bordered": "starts",
    "chase": "chasing",
    "climb": "ladders",
    "cut": "starts",
    "descend": "descents",
    "gpus": "device",
    "rolled": "starts",
    "setting_for": "settings",
    "starts_for": "starts",
    "ways": "neighbours",
}

__all__ = [
    "Chase",
    "CudaSession",
    "DeviceLostError",
    "DirectedWalk",
    "Fleet",
    "Front",
    "Rung",
    "Setting",
    "Way",
    "bordered",
    "chase",
    "climb",
    "cut",
    "descend",
    "gpus",
    "rolled",
    "setting_for",
    "starts_for",
    "ways",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
