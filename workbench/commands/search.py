"""`lcma search`"""

from __future__ import annotations

import shlex
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import click

from ...errors import TargetError
from ...schemes_db import Scheme, parse_ring, parse_target
from ...schemes_db.ranks import best_known
from ...search import ALONE, Result, RunConfig, carry_out, footprint
from ..finds import keep, print_result, progress_line
from ..improving import improve_up_to
from ..options import Duration
from ..output import print_json, print_table
from ..progress import Progress
from ..starts import start_argument


@click.command("search")
@click.argument("target", metavar="TARGET")
@click.option("--rank", type=click.IntRange(1), help="The rank to reach. Default: the best known one.")
@click.option(
    "--ring", default="Z", show_default=True, help="Z, Q, Z2 (nothing is lifted), or ZT (walks over -1, 0, 1)."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--seeds", type=click.IntRange(1), help="So many runs, from --seed on, one at a time; a table of success."
)
@click.option(
    "--time",
    "seconds",
    type=Duration(),
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
    "--walk",
    default="",
    help="The kind: flip, flip-zt (over -1, 0, 1), flip-c3 (symmetric), ... Default: by the target.",
)
@click.option("--plus", type=click.IntRange(1), help="Steps without a gain before a plus. Default: the walk's own.")
@click.option("--margin", type=click.IntRange(1), help="How far a plus may go above the best rank.")
@click.option("--restart", type=click.IntRange(1), help="Steps without a gain before a walk goes back to its start.")
@click.option(
    "--objective",
    default="rank",
    show_default=True,
    help="What finds are to be better in: rank, cost (F + H/2), recursive, additions, nonzeros or coefficients.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads. The finds do not depend on it."
)
@click.option("--device", default="cpu", show_default=True, help="What walks: cpu, or cuda with the extra [cuda].")
@click.option(
    "--start",
    metavar="SCHEME",
    help="Where walks start: naive, compose, best (of a smaller format), a name or a file, of any format. "
    "Default: naive.",
)
@click.option(
    "--ladder",
    metavar="auto|none|FORMATS",
    default="auto",
    show_default=True,
    help="Smaller formats to go through first, such as 4x4x4:47,4x4x5; auto goes through some for sides beyond 4.",
)
@click.option(
    "--pool",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Schemes of a rank to gather before walks start from it; 0: every walk goes down by itself.",
)
@click.option(
    "--improve",
    is_flag=True,
    help="Search wherever the catalogue is behind the best ranks known, in formats up to TARGET.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run in a new folder, to resume it."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@click.option("--json", "as_json", is_flag=True, help="Statistics and finds as JSON.")
def command(
    target: str,
    rank: int | None,
    ring: str,
    seed: int,
    seeds: int | None,
    seconds: float,
    rounds: int | None,
    walks: int,
    steps: int,
    count: int,
    walk: str,
    plus: int | None,
    margin: int | None,
    restart: int | None,
    objective: str,
    jobs: int,
    device: str,
    start: str | None,
    ladder: str,
    pool: int,
    improve: bool,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Search for schemes of low rank; what is found is certified and kept.

    Walks go on the flip graph, modulo 2 (finds are lifted to the ring) or over -1, 0, 1. The same
    seed, walks, steps and rounds give the same finds. With --out every find is on the disk at once,
    and `lcma resume` goes on after an interruption or a crash. Exit code 1: nothing was found.
    """
    over = parse_ring("Z" if ring.upper() == "ZT" else ring)
    wanted = parse_target(target)
    if improve:
        return improve_up_to(wanted, ring.upper(), seconds, seed, jobs, dry_run)
    if rank is None:
        known = best_known(wanted, over)
        if known is None:
            raise TargetError(f"no best known rank of {wanted} is in the tables; name one with --rank")
        rank = known.rank
    config = RunConfig(
        wanted.name,
        rank=rank,
        ring=ring.upper(),
        seed=seed,
        walks=walks,
        steps=steps,
        rounds=rounds,
        seconds=seconds,
        count=count,
        walk=walk,
        command=shlex.join(["lcma", *sys.argv[1:]]),
        start=start_argument(start, wanted, over) if start else None,
        ladder=None if ladder == "auto" else tuple(part for part in ladder.split(",") if part != "none"),
        pool=ALONE._replace(large=pool),
        device=device,
        objective=objective,
    )
    chosen = {"plus_after": plus, "margin": margin, "restart_after": restart}
    if changes := {name: value for name, value in chosen.items() if value is not None}:
        config = replace(config, policy=config.patience._replace(**changes))
    if dry_run:
        _say(config)
        return 0
    if seeds is None:
        return _one(config, jobs, out, as_json)
    return _many([replace(config, seed=seed + i) for i in range(seeds)], jobs, out, as_json)


def _say(config: RunConfig) -> None:
    """What a run would do."""
    way = " -> ".join(map(str, config.stages))
    click.echo(
        f"{way} over {config.ring}: from rank {config.start_rank} of {config.stages[0].target} to {config.rank}, "
        f"{config.walks} walks ({config.walk}) of {config.steps} steps a round, "
        f"for {'-' if config.seconds is None else format(config.seconds, 'g')} s, seed {config.seed}"
    )
    click.echo(f"the walks take {footprint(config) / (1 << 20):.1f} MiB", err=True)


def _searched(config: RunConfig, jobs: int, out: Path | None) -> Result:
    with Progress(f"{config.target}: compiling the walk") as progress:
        return carry_out(
            config,
            jobs=jobs,
            out=out,
            on_progress=lambda standing: progress.update(progress_line(standing)),
        )


def _one(config: RunConfig, jobs: int, out: Path | None, as_json: bool) -> int:
    return report(_searched(config, jobs, out), as_json, out, config.start)


def report(result: Result, as_json: bool, out: Path | None, start: Scheme | None = None) -> int:
    """Keep and print what a run found; the exit code.

    Raises:
        KeyboardInterrupt: the run was interrupted, after everything is kept.
    """
    kept = keep(result, start)
    if as_json:
        print_json({**result.to_json(), "schemes": [found.scheme.digest for found in result.finds]})
    else:
        print_result(result, kept)
    if result.interrupted:
        if out is not None:
            click.echo(f"to go on: lcma resume {shlex.quote(str(out))}", err=True)
        raise KeyboardInterrupt
    return 0 if result.finds else 1


def _many(configs: list[RunConfig], jobs: int, out: Path | None, as_json: bool) -> int:
    """The same search from many seeds, one at a time, and how often it succeeds."""
    results: list[Result] = []
    for config in configs:
        results.append(_searched(config, jobs, out / f"seed-{config.seed}" if out else None))
        keep(results[-1], config.start)
        if results[-1].interrupted:
            break
    reached = [result.seconds for result in results if result.finds]
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        rows = [
            (
                result.seed,
                min(result.ranks, default=None),
                len(result.finds),
                result.rounds,
                round(result.flips / 1e6, 2),
                round(result.seconds, 3),
            )
            for result in results
        ]
        print_table(("seed", "lowest rank", "finds", "rounds", "M flips", "seconds"), rows)
        median = f", median {statistics.median(reached):.3f} s" if reached else ""
        click.echo(f"rank {configs[0].rank} reached with {len(reached)} of {len(results)} seeds{median}")
    if results[-1].interrupted:
        raise KeyboardInterrupt
    return 0 if reached else 1
