"""`lcma search`"""

from __future__ import annotations

import re
import shlex
import sys

import click

from ...errors import TargetError
from ...schemes_db import parse_ring, parse_target
from ...schemes_db.catalog import Catalog
from ...schemes_db.ranks import best_known
from ...search import Progress as Standing
from ...search import Result, find
from ..output import print_json
from ..progress import Progress
from ..schemes import scheme_argument

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class _Duration(click.ParamType[float]):
    """Seconds, or a number with s, m or h."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if not match:
            self.fail(f"{value!r} is not a duration; write 90, 90s, 10m or 2h", param, ctx)
        return float(match.group(1)) * _UNITS[match.group(2) or "s"]


@click.command("search")
@click.argument("target", metavar="TARGET")
@click.option("--rank", type=click.IntRange(1), help="The rank to reach. Default: the best known one.")
@click.option("--ring", default="Z", show_default=True, help="Z, Q, or Z2 (nothing is lifted).")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--time",
    "seconds",
    type=_Duration(),
    default="60s",
    show_default=True,
    help="Stop after the round in which this is over.",
)
@click.option("--rounds", type=click.IntRange(1), help="Stop after so many rounds.")
@click.option("--walks", type=click.IntRange(1), default=4, show_default=True, help="Walks in a round.")
@click.option(
    "--steps", type=click.IntRange(1), default=1_000_000, show_default=True, help="Steps of a walk in a round."
)
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="Stop with so many finds.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads. The finds do not depend on it."
)
@click.option("--start", metavar="SCHEME", help="Where walks start. Default: the naive scheme.")
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@click.option("--json", "as_json", is_flag=True, help="Statistics and finds as JSON.")
def command(
    target: str,
    rank: int | None,
    ring: str,
    seed: int,
    seconds: float,
    rounds: int | None,
    walks: int,
    steps: int,
    count: int,
    jobs: int,
    start: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Search for schemes of low rank; what is found is certified and kept.

    Walks go on the flip graph modulo 2; finds are lifted to the ring. The same seed, walks, steps
    and rounds give the same finds. Exit code 1: nothing was found.
    """
    wanted, over = parse_target(target), parse_ring(ring)
    known = best_known(wanted, over)
    if rank is None and known is None:
        raise TargetError(f"no best known rank of {wanted} is in the tables; name one with --rank")
    goal = rank or (known.rank if known else 0)
    first = scheme_argument(start)[0] if start else None
    if dry_run:
        click.echo(
            f"{wanted} over {over}: from rank {first.rank if first else len(wanted.terms)} to {goal}, "
            f"{walks} walks of {steps} steps a round, for {seconds:g} s, seed {seed}"
        )
        return 0
    with Progress(f"{wanted}: compiling the walk") as progress:
        result = find(
            wanted,
            rank=goal,
            ring=over,
            seed=seed,
            walks=walks,
            steps=steps,
            rounds=rounds,
            seconds=seconds,
            count=count,
            start=first,
            jobs=jobs,
            command=shlex.join(["lcma", *sys.argv[1:]]),
            on_progress=lambda standing: progress.update(_line(wanted.name, standing)),
        )
    kept = keep(result)
    if as_json:
        print_json({**result.to_json(), "schemes": [found.scheme.digest for found in result.finds]})
    else:
        _print(result, kept)
    if result.interrupted:
        raise KeyboardInterrupt
    return 0 if result.finds else 1


def _line(name: str, standing: Standing) -> str:
    return (
        f"{name}: best rank {standing.rank}, round {standing.round}, {standing.flips_per_second / 1e6:.1f} M flips/s, "
        f"last gain {standing.seconds_since_gain:.0f} s ago, {standing.finds} found"
    )


def keep(result: Result) -> list[bool]:
    """Store the finds and the schemes over Z2 that they were lifted from; for each, whether it is new."""
    fresh = []
    with Catalog.open() as catalog:
        for found in result.finds:
            if found.origin is not found.scheme:
                catalog.add(found.origin, found.origin_certificate)
            fresh.append(catalog.add(found.scheme, found.certificate))
    return fresh


def _print(result: Result, kept: list[bool]) -> None:
    for found, fresh in zip(result.finds, kept, strict=True):
        ternary = ", ternary" if found.scheme.ternary and not found.scheme.ring.characteristic else ""
        click.echo(
            f"found {found.scheme!r} {found.scheme.digest[:12]}{ternary}, certified, "
            f"{'kept' if fresh else 'known already'}"
        )
    for lost in result.unlifted:
        click.echo(f"not lifted: {lost.origin!r}: {lost.reason}")
    ranks = ", ".join(f"{rank} ({walks} walks)" for rank, walks in sorted(result.ranks.items()))
    click.echo(
        f"{len(result.finds)} found in {result.seconds:.2f} s, {result.rounds} rounds, "
        f"{result.flips / 1e6:.2f} M flips "
        f"({result.flips_per_second / 1e6:.1f} M/s); lowest ranks: {ranks}"
    )
