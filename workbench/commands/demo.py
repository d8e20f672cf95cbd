"""`lcma demo`"""

from __future__ import annotations

import contextlib
import sys

import click

from ..demo import demo
from ..help import lcma_command
from ..options import option
from ..output import print_json, wants_json


@lcma_command("demo", json="the result")
def command(
    *,
    size: int = option(type=click.IntRange(64, 1 << 15), default=4096),
    rounds: int = option(type=click.IntRange(1, 100), default=3),
) -> None:
    """Find, prove, store and run a scheme, in about a minute.

    Three sizes are timed: a line says from about how many rows on schemes gain on this machine.
    """
    if not wants_json():
        demo(size, rounds)
        return
    with contextlib.redirect_stdout(sys.stderr):
        found = demo(size, rounds)
    print_json(found)
