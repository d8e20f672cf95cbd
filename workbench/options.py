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


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --ray and --workers to a command."""
    for option in (
        click.option(
            "--workers", type=click.IntRange(1), help="With --ray, so many workers. Default: one a core, or one a GPU."
        ),
        click.option(
            "--ray",
            "address",
            metavar="auto|local|HOST:PORT",
            help="Walk on the workers of a Ray cluster, each with a --device: that of this machine's node, one of its "
            "own, or by its head.",
        ),
    ):
        command = option(command)
    return command


def cluster_settings(address: str | None, workers: int | None) -> dict[str, Any]:
    """The settings `address` and `workers` of a configuration.

    Raises:
        click.UsageError: --workers is given without --ray.
    """
    if address is None and workers:
        raise click.UsageError("--workers are of a cluster: give --ray auto, local or HOST:PORT, too")
    return {"address": address, "workers": workers or 0} if address else {}


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random numbers: equal seeds, equal finds."
)
