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
    from .rules import Rules, Selection
    from .runs import RunFleet, gpu_fleet
    from .settings import Setting, setting_for
    from .starts import bordered, carried, cut, rolled, starts_for

_EXPORTS = {
    "Chase": "chasing",
    "DeviceLostError": "device",
    "DirectedWalk": "fronts",
    "Fleet": "fleet",
    "Front": "fronts",
    "Rules": "rules",
    "RunFleet": "runs",
    "Rung": "ladders",
    "Selection": "rules",
    "Setting": "settings",
    "Way": "neighbours",
    "bordered": "starts",
    "carried": "starts",
    "chase": "chasing",
    "climb": "ladders",
    "cut": "starts",
    "descend": "descents",
    "gpu_fleet": "runs",
    "gpus": "device",
    "rolled": "starts",
    "setting_for": "settings",
    "starts_for": "starts",
    "ways": "neighbours",
}

__all__ = [
    "Chase",
    "DeviceLostError",
    "DirectedWalk",
    "Fleet",
    "Front",
    "Rules",
    "RunFleet",
    "Rung",
    "Selection",
    "Setting",
    "Way",
    "bordered",
    "carried",
    "chase",
    "climb",
    "cut",
    "descend",
    "gpu_fleet",
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
