"""`lcma demo`"""

from __future__ import annotations

import click

from ..demo import demo
from ..help import Command


@click.command("demo", cls=Command)
@click.option("--size", type=click.IntRange(64, 1 << 15), default=4096, show_default=True, help="Side of the matrices.")
@click.option("--rounds", type=click.IntRange(1, 100), default=5, show_default=True, help="Interleaved timing rounds.")
def command(size: int, rounds: int) -> None:
    """Find, prove, store and run a scheme, in about a minute."""
    demo(size, rounds)
