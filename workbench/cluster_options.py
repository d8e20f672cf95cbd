"""The options that say where the walks of a search are: in this process, or on workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --ray and --workers to a command."""
    for option in (
        click.option(
            "--workers",
            type=click.IntRange(1),
            help="With --ray, so many workers. Default: one a core, or one a GPU.",
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
