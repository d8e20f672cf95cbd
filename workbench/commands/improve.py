"""`lcma improve`"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click

from ...search.improve.events import Event, Exhausted, Kept, OnEvent, TurnBegun
from ...search.improve.folder import ImproveConfig
from ...search.improve.gaps import Gap
from ...search.improve.run import Improved, ImprovementPlan, improve, plan
from ...search.runs.keep import refuse_unwritable
from ..finds import kept_line
from ..help import lcma_command
from ..interrupts import Interrupts
from ..options import Choice, Duration, cluster_options, cluster_settings, path_option, seed_option
from ..output import print_json, print_table
from ..progress import COMPILING, Progress


@lcma_command("improve", json="the stored schemes")
@click.argument("targets", metavar="[TARGET...]", nargs=-1)
@click.option(
    "--for",
    "goal",
    type=Choice(["closure"], case_sensitive=False),
    help="closure: in place of TARGETs, all formats up to 16x16x16.",
)
@click.option("--up-to", is_flag=True, help="Include every format that fits into a full product among the TARGETs.")
@click.option(
    "--ring", default="Z", show_default=True, help="Z, Q, Z2 (nothing is lifted), or ZT (walks over -1, 0, 1)."
)
@seed_option
@click.option("--time", "seconds", type=Duration(), default="60s", show_default=True, help="Stop after this time.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads of lifts, and of walks on a CPU."
)
@click.option(
    "--device", default="cpu", show_default=True, help="The device of the walks: cpu, cuda, cuda:0,1 or cuda:all."
)
@cluster_options
@path_option("--out", metavar="DIR", help="Store the run in a new folder, so that it can be resumed.")
@click.option("--retry", is_flag=True, help="Try routes again on which earlier runs spent half an hour without a gain.")
@click.option("--dry-run", is_flag=True, help="Show the targets with their gaps, and search nothing.")
def command(
    targets: tuple[str, ...],
    goal: str | None,
    up_to: bool,
    ring: str,
    seed: int,
    seconds: float,
    jobs: int,
    device: str,
    address: str | None,
    workers: int | None,
    out: Path | None,
    retry: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Improve the catalogue: ranks behind the best known ones, fronts of structured targets.

    TARGETs take turns, full products in proportion to what the best known rank would take from the mean gap of all
    formats up to 16x16x16, with compositions (--dry-run shows it). A scheme that improves the catalogue is certified
    and stored at once; several processes may share it. Exit code 1: nothing was kept.
    """
    if bool(targets) == (goal is not None):
        raise click.UsageError("give TARGETs, or --for closure")
    # Commas stand between targets, too, and between the grids of blocks(...).
    names = tuple(name for text in targets for name in re.split(r",(?![^()]*\))", text))
    config = ImproveConfig(
        targets=names,
        ring=ring.upper(),
        seconds=seconds,
        seed=seed,
        device=device,
        up_to=up_to,
        closure=goal is not None,
        retry=retry,
        **cluster_settings(address, workers),
        command=shlex.join(["lcma", *sys.argv[1:]]),
    )
    if dry_run:
        show_plan(plan(config), as_json)
        return 0
    refuse_unwritable()
    with Progress(COMPILING) as progress, Interrupts() as interrupts:
        result = improve(
            config, jobs=jobs, out=out, on_event=teller(progress, quiet=as_json), stop=lambda: interrupts.wanted
        )
    return report(result, as_json, out)


def show_plan(planned: ImprovementPlan, as_json: bool) -> None:
    """Print what an improvement would search, full products with what a lower rank of theirs changes."""
    if as_json:
        print_json(
            [_gap_to_json(gap) for gap in planned.gaps]
            + [{"target": name, "front": front} for name, front in planned.fronts.items()]
        )
        return
    if planned.gaps:
        rows = [
            (
                gap.target,
                gap.rank,
                gap.known,
                *(text for change in (gap.one, gap.all) if change for text in (f"{change.points:.4f}", change.cells)),
            )
            for gap in planned.gaps
        ]
        print_table(("format", "rank", "best known", "points by 1", "formats", "points by all", "formats"), rows)
    for name, front in planned.fronts.items():
        click.echo(f"{name}: {front}")
    if not planned.gaps and not planned.fronts:
        click.echo("nothing: no gap to the best known ranks is left")


def _gap_to_json(gap: Gap) -> dict[str, object]:
    changes = {"one": gap.one, "all": gap.all}
    return {
        "target": gap.target.name,
        "rank": gap.rank,
        "best_known_rank": gap.known,
        **{name: change._asdict() for name, change in changes.items() if change is not None},
    }


def teller(progress: Progress, *, quiet: bool) -> OnEvent:
    """A callback that prints the events of an improvement: finds to stdout unless `quiet`, the rest to stderr."""

    def tell(event: Event) -> None:
        if isinstance(event, Kept):
            if not quiet:
                click.echo(kept_line(event))
        elif isinstance(event, TurnBegun):
            click.echo(event.route, err=True)
        elif isinstance(event, Exhausted):
            stays = f"{event.target} stays at rank {event.rank}, best known {event.known}"
            click.echo(f"{stays}: every route had half an hour in vain; --retry tries them again", err=True)
        else:
            progress.update(event.text)

    return tell


def report(result: Improved, as_json: bool, out: Path | None) -> int:
    """Print the result of an improvement and return the exit code.

    Raises:
        KeyboardInterrupt: it was interrupted; everything is kept.
    """
    if as_json:
        print_json(
            {
                "gained": result.gained,
                "turns": result.turns,
                "seconds": result.seconds,
                "closed": result.closed,
                "exhausted": list(result.exhausted),
                "fronts": result.fronts,
                "schemes": [scheme.digest for scheme in result.kept],
            }
        )
    else:
        for name, front in result.fronts.items():
            click.echo(f"{name}: {front}")
        if result.exhausted:
            click.echo(f"dead ends on every route: {', '.join(result.exhausted)}")
        if result.closed:
            click.echo("no gap to the best known ranks is left")
        click.echo(f"{result.gained} gained in {sum(result.turns.values())} turns, {len(result.kept)} schemes kept")
    if result.interrupted:
        saved = f"to go on: lcma resume {shlex.quote(str(out))}" if out else "without --out the turns begin anew"
        click.echo(f"{len(result.kept)} schemes saved in the catalogue; {saved}", err=True)
        raise KeyboardInterrupt
    return 0 if result.kept or result.closed else 1
