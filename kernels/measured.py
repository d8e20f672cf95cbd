"""Measured figures, for prices of stages and for tiles: the sections of planning/data/measured.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import Any


def measured(section: str) -> SimpleNamespace:
    """Return the figures of a section like "dense.split" by name; tables by numbers have them as keys."""
    found = _figures()
    for name in section.split("."):
        found = found[name]
    return SimpleNamespace(**found)


@cache
def _figures() -> dict[str, Any]:
    text = (resources.files(__package__) / "planning/data/measured.toml").read_text(encoding="utf-8")
    return _with_numbers(tomllib.loads(text))


def _with_numbers(value: Any) -> Any:
    """Return a value with numbers for keys of digits."""
    if not isinstance(value, dict):
        return value
    return {int(name) if name.isdigit() else name: _with_numbers(entry) for name, entry in value.items()}
