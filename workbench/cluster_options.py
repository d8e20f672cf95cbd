"""The options that say where the walks of a search are: in this process, or on workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..search.cluster.connection import LOCAL
from .options import Choice

ENGINES = ("process", "ray")


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --engine, --address and --workers to a command."""
    for option in (
        click.option(
            "--workers",
            type=click.IntRange(1),
            help="With --engine ray, so many workers. Default: one a core, or one a GPU.",
        ),
        click.option(
            "--address",
            metavar="auto|local|HOST:PORT",
            help="With --engine ray, the cluster: that of this machine's node, one of its own (the default), or by "
            "its head.",
        ),
        click.option(
            "--engine",
            type=Choice(ENGINES),
            default="process",
            show_default=True,
            help="Where walks are: in this process, or on the workers of a Ray cluster, each with a --device.",
        ),
    ):
        command = option(command)
    return command


def cluster_settings(engine: str, address: str | None, workers: int | None) -> dict[str, Any]:
    """The settings `address` and `workers` of a configuration.

    Raises:
        click.UsageError: they are given without --engine ray.
    """
    if engine != "ray":
        if address or workers:
            raise click.UsageError("--address and --workers are of a cluster: give --engine ray, too")
        return {}
    return {"address": address or LOCAL, "workers": workers or 0}
