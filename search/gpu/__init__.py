"""Flip walks by the ten thousand on GPUs. Importing it imports no compiler."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chasing import Chase, chase
    from .device import DeviceLostError, gpus
    from .fleet import Fleet
    from .ladders import Rung, bordered, carried, climb, cut, rolled
    from .rules import Rules, Selection
    from .runs import RunFleet, gpu_fleet
    from .settings import Setting, setting_for

_EXPORTS = {
    "Chase": "chasing",
    "DeviceLostError": "device",
    "Fleet": "fleet",
    "Rules": "rules",
    "RunFleet": "runs",
    "Rung": "ladders",
    "Selection": "rules",
    "Setting": "settings",
    "bordered": "ladders",
    "carried": "ladders",
    "chase": "chasing",
    "climb": "ladders",
    "cut": "ladders",
    "gpu_fleet": "runs",
    "gpus": "device",
    "rolled": "ladders",
    "setting_for": "settings",
}

__all__ = [
    "Chase",
    "DeviceLostError",
    "Fleet",
    "Rules",
    "RunFleet",
    "Rung",
    "Selection",
    "Setting",
    "bordered",
    "carried",
    "chase",
    "climb",
    "cut",
    "gpu_fleet",
    "gpus",
    "rolled",
    "setting_for",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
