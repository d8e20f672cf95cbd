"""Option types that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import did_you_mean


class Choice(click.Choice[str]):
    """One of some words; the error of another word names those that resemble it."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        hint = did_you_mean(str(value), self.choices)
        return f"{value!r} is not known{hint}" if hint else super().get_invalid_choice_message(value, ctx)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m or h."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if not match:
            self.fail(f"{value!r} is not a duration; write 90, 90s, 10m or 2h", param, ctx)
        return float(match.group(1)) * _UNITS[match.group(2) or "s"]


def path_option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option whose value is a path."""
    return click.option(*names, type=click.Path(path_type=Path), **settings)


seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of random numbers: equal seeds, equal finds.",
)
