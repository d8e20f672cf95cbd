"""`lcma improve`"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ...schemes_db import parse_target
from ...schemes_db.costs import additions
from ...search.improve.events import Event, Exhausted, Kept, OnEvent, TurnBegun
from ...search.improve.folder import ImproveConfig
from ...search.improve.gaps import Gap
from ...search.improve.run import Improved, ImprovementPlan, improve, plan
from ...search.runs.keep import refuse_unwritable
from ..help import lcma_command
from ..interrupts import Interrupts
from ..options import DURATION, POSITIVE, RAY, SEED, WORKERS, Choice, argument, cluster_settings, command_line, option
from ..output import answer, print_json, print_table, wants_json
from ..progress import COMPILING, Progress
from .search import interrupt


@lcma_command
def command(
    *,
    targets: tuple[str, ...] = argument("[TARGET...]"),
    goal: str | None = option("--for", type=Choice(["closure"], case_sensitive=False)),
    up_to: bool = option(),
    ring: str = option(default="Z"),
    seed: int = SEED,
    seconds: float = option("--time", type=DURATION, default="60s"),
    jobs: int = option(type=POSITIVE, default=1),
    device: str = option(default="cpu"),
    address: str | None = RAY,
    workers: int | None = WORKERS,
    out: Path | None = option(metavar="DIR"),
    retry: bool = option(),
    dry_run: bool = option(),
) -> int:
    if bool(targets) == (goal is not None):
        raise click.UsageError("give TARGETs, or --for closure")
    # Commas stand between targets, too, and between the grids of blocks(...).
    named = (parse_target(name).name for text in targets for name in re.split(r",(?![^()]*\))", text))
    config = ImproveConfig(
        targets=tuple(named),
        ring=ring.upper(),
        seconds=seconds,
        seed=seed,
        device=device,
        up_to=up_to,
        closure=goal is not None,
        retry=retry,
        **cluster_settings(address, workers),
        command=command_line(),
    )
    if dry_run:
        show_plan(plan(config))
        return 0
    refuse_unwritable()
    return improved(partial(improve, config, jobs=jobs, out=out), out)


def show_plan(planned: ImprovementPlan) -> None:
    """Print what an improvement would search, full products with what a lower rank of theirs changes."""
    fronts = [{"target": name, "front": front} for name, front in planned.fronts.items()]
    if wants_json():
        print_json([*map(_gap_to_json, planned.gaps), *fronts])
        return
    if planned.gaps:
        rows = []
        for gap in planned.gaps:
            changes = [(f"{change.points:.4f}", change.cells) for change in (gap.one, gap.all) if change]
            rows.append((gap.target, gap.rank, gap.known, *(text for change in changes for text in change)))
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


def kept_line(event: Kept) -> str:
    """One line on a scheme that an improvement keeps."""
    scheme = event.scheme
    exact = not scheme.ring.characteristic
    ternary = ", ternary" if scheme.ternary and exact else ""
    if event.full is None:
        return f"found {scheme!r} {scheme.digest[:12]}{ternary}, certified, kept; rank {event.before} before"
    cost = f", {additions(scheme)} additions" if exact else ""
    return f"found {scheme!r} {scheme.digest[:12]}, {event.full} + {scheme.rank - event.full}{cost}, certified, kept"


def improved(run: Callable[..., Improved], out: Path | None) -> int:
    """Run an improvement, print its events and its result, and return the exit code.

    Raises:
        KeyboardInterrupt: it was interrupted; everything is kept.
    """
    with Progress(COMPILING) as progress, Interrupts() as interrupts:
        result = run(on_event=teller(progress, quiet=wants_json()), stop=lambda: interrupts.wanted)
    facts = {name: getattr(result, name) for name in ("gained", "turns", "seconds", "closed", "exhausted", "fronts")}
    lines = [f"{name}: {front}" for name, front in result.fronts.items()]
    if result.exhausted:
        lines.append(f"dead ends on every route: {', '.join(result.exhausted)}")
    if result.closed:
        lines.append("no gap to the best known ranks is left")
    lines.append(f"{result.gained} gained in {sum(result.turns.values())} turns, {len(result.kept)} schemes kept")
    answer({**facts, "schemes": [scheme.digest for scheme in result.kept]}, "\n".join(lines))
    if result.interrupted:
        interrupt(len(result.kept), out, "without --out the turns begin anew")
    return 0 if result.kept or result.closed else 1
