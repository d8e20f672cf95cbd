"""`lcma demo`"""

from __future__ import annotations

import contextlib
import sys

import click

from ..demo import demo
from ..help import lcma_command
from ..output import print_json


@lcma_command("demo", json="the result")
@click.option("--size", type=click.IntRange(64, 1 << 15), default=4096, show_default=True, help="The longest side.")
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="Interleaved timing rounds.")
def command(size: int, rounds: int, as_json: bool) -> None:
    """Find, prove, store and run a scheme, in about a minute.

    Three sizes are timed: a line says from about how many rows on schemes gain on this machine.
    """
    if not as_json:
        demo(size, rounds)
        return
    with contextlib.redirect_stdout(sys.stderr):
        found = demo(size, rounds)
    print_json(found)
