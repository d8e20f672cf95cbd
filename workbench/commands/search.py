"""`lcma search`"""

from __future__ import annotations

import shlex
import sqlite3
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from ...errors import CatalogError
from ...schemes_db import Scheme, parse_ring, parse_target
from ...schemes_db.algebra import naive
from ...schemes_db.catalog import Catalog
from ...schemes_db.composition import best_composition
from ...schemes_db.costs import level_products, nonzeros
from ...schemes_db.ranks import best_known
from ...search import Find, Result, RunConfig, carry_out, score_of
from ...search.flipgraph.policy import ORBITS
from ...search.groups.product_rank import FORMATS, PREFIX, by_products
from ...search.runs.bounds import has_halves
from ...search.runs.keep import KEPT, refuse_unwritable, write_beside
from ...search.runs.keep import keep as keep_result
from ...search.starts import is_mask, mask_start, start_scheme, with_kept_first
from ..help import lcma_command
from ..interrupts import Interrupts
from ..options import DURATION, POSITIVE, RAY, SEED, WORKERS, Choice, argument, cluster_settings, command_line, option
from ..output import answer, print_json, print_table, wants_json
from ..progress import COMPILING, SOLVING, Progress
from ..schemes import scheme_argument


@lcma_command
def command(
    *,
    target: str = argument("TARGET"),
    rank: int | None = option(type=POSITIVE),
    ring: str = option(default="Z"),
    seed: int = SEED,
    seeds: int | None = option(type=POSITIVE),
    seconds: float | None = option("--time", type=DURATION),
    rounds: int | None = option(type=POSITIVE),
    walks: int | None = option(type=POSITIVE),
    steps: int | None = option(type=POSITIVE),
    count: int = option(type=POSITIVE, default=1),
    walk: str = option(default=""),
    orbits: str | None = option(type=Choice(ORBITS)),
    plus_after: int | None = option("--plus", type=POSITIVE),
    margin: int | None = option(type=POSITIVE),
    restart_after: int | None = option("--restart", type=POSITIVE),
    full: int | None = option(type=click.IntRange(0)),
    chance: float | None = option(type=click.FloatRange(0, 1)),
    nonzeros: int | None = option(type=POSITIVE),
    keep: str | None = option(metavar="NAMES|SCHEME"),
    objective: str | None = option(),
    jobs: int = option(type=POSITIVE, default=1),
    device: str = option(default="cpu"),
    address: str | None = RAY,
    workers: int | None = WORKERS,
    start: str | None = option(metavar="SCHEME"),
    ladder: str = option(metavar="auto|none|FORMATS", default="auto"),
    method: str = option("--by", default="walks"),
    out: Path | None = option(metavar="DIR"),
    dry_run: bool = option(),
) -> int:
    over, wanted = parse_ring("Z" if ring.upper() == "ZT" else ring), parse_target(target)
    grouped = by_products(objective or "")
    if rank is None and not grouped:
        known = best_known(wanted, over)
        rank = known.rank if known else None

    def named(text: str) -> Scheme:
        return scheme_argument(text)[0]

    if grouped and start is None:
        start = "compose"
    first = start_scheme(start or "naive", wanted, over, named) if start or keep else None
    masked = first is None and not full and ladder == "auto" and method == "walks" and is_mask(wanted)
    if masked:
        first = mask_start(wanted, over)
    naive_too, kept = masked and first is not None, None
    if first is not None and keep:
        first, kept = with_kept_first(keep, first, named)
    policy: dict[str, Any] = {"orbits": orbits, "plus_after": plus_after, "margin": margin, "full": full, "keep": kept}
    policy |= {"restart_after": restart_after, "chance": chance, "nonzeros": nonzeros}
    config = RunConfig(
        wanted.name,
        rank=rank,
        ring=ring.upper(),
        seed=seed,
        walks=walks or 0,
        steps=steps or 0,
        rounds=rounds,
        seconds=60.0 if seconds is None and rounds is None else seconds,
        count=count,
        walk=walk,
        policy={name: value for name, value in policy.items() if value is not None},
        command=command_line(),
        start=first,
        ladder=None if ladder == "auto" else tuple(part for part in ladder.split(",") if part != "none"),
        device=device,
        **cluster_settings(address, workers),
        objective=objective or ("cost" if masked and rank is None and has_halves(wanted) else "rank"),
        method=method,
        naive_too=naive_too,
    )
    if dry_run:
        _say(config)
        return 0
    if seeds is None:
        return report(_searched(config, jobs, out), out, config.start)
    return _many([replace(config, seed=config.seed + i) for i in range(seeds)], jobs, out)


def _say(config: RunConfig) -> None:
    """A description of what a run would do."""
    stages = " -> ".join(map(str, config.stages))
    last = config.setting(len(config.stages) - 1)
    each = {"triples": "annealings", "least-squares": "chains"}.get(config.method) or f"walks ({config.walk})"
    settings = {"stages": list(map(str, config.stages)), "ring": config.ring, "walk": config.walk}
    limits = {"walks": config.walks, "steps": last.steps, "seconds": config.seconds, "seed": config.seed}
    answer(
        {**settings, "start_rank": config.start_rank, "rank": config.rank, **limits},
        f"{stages} over {config.ring}: from rank {config.start_rank} of {config.stages[0].target} "
        f"to {config.rank or 'less'}, "
        f"{config.walks or 'as many'} {each} of {last.steps} steps a round, "
        f"for {'-' if config.seconds is None else format(config.seconds, 'g')} s, seed {config.seed}",
    )


def _searched(config: RunConfig, jobs: int, out: Path | None) -> Result:
    refuse_unwritable()
    return watched(config, partial(carry_out, config, jobs=jobs, out=out), config.count)


def watched(config: RunConfig, run: Callable[..., Result], count: int) -> Result:
    """Run a search that shows its progress and stops when it is interrupted; its best `count` finds."""
    with Catalog.open() as catalog:
        entries = catalog.entries(target=config.final_target.name, ring=config.output_ring.name)
    known = f", {min(entry.rank for entry in entries)} in the catalogue" if entries else ""
    with (
        Progress(f"{config.target}: {SOLVING if config.method == 'least-squares' else COMPILING}") as progress,
        Interrupts() as interrupts,
    ):
        result = run(
            on_event=lambda standing: progress.update(f"{standing.line}{known}"), stop=lambda: interrupts.wanted
        )
    return best_finds(result, count)


def report(result: Result, out: Path | None, start: Scheme | None = None) -> int:
    """Store and print the finds of a run and return the exit code.

    Raises:
        KeyboardInterrupt: the run was interrupted, after everything is kept.
        CatalogError: the catalogue can't be written; the finds are written beside.
    """
    kept = stored(result, start)
    if wants_json():
        near = result.nearest.scheme.digest if isinstance(result.nearest, Find) else None
        found = [found.scheme.digest for found in result.finds]
        print_json({**result.to_json(), "schemes": found, "nearest": near})
    else:
        print_result(result, kept, start)
        if line := composition_line(result):
            click.echo(line)
    if result.interrupted:
        interrupt(kept.count(KEPT), out, "nothing of the walks is kept without --out")
    return 0 if result.finds else 1


def stored(result: Result, start: Scheme | None) -> list[str]:
    """Store the finds that add something, and return what became of each.

    Raises:
        CatalogError: it can't be written; the finds are written into this folder, and named.
    """
    try:
        return keep_result(result, start)
    except (CatalogError, sqlite3.Error) as error:
        places = ", ".join(str(path) for path in write_beside(result, Path.cwd()))
        raise CatalogError(f"{error}; written beside: {places or 'nothing'} (`lcma add` takes them)") from None


def _many(configs: list[RunConfig], jobs: int, out: Path | None) -> int:
    """The same search from many seeds, one at a time, and how often it succeeds."""
    results: list[Result] = []
    for config in configs:
        results.append(_searched(config, jobs, out / f"seed-{config.seed}" if out else None))
        stored(results[-1], config.start)
        if results[-1].interrupted:
            break
    reached = [result.seconds for result in results if result.finds]
    if wants_json():
        print_json([result.to_json() for result in results])
    else:
        rows = []
        for one in results:
            done = (one.rounds, round(one.flips / 1e6, 2), round(one.seconds, 3))
            rows.append((one.seed, min(one.ranks, default=None), len(one.finds), *done))
        print_table(("seed", "lowest rank", "finds", "rounds", "M flips", "seconds"), rows)
        median = f", median {statistics.median(reached):.3f} s" if reached else ""
        goal = f"rank {configs[0].rank}" if configs[0].rank else "a lower rank"
        click.echo(f"{goal} reached with {len(reached)} of {len(results)} seeds{median}")
    if results[-1].interrupted:
        raise KeyboardInterrupt
    return 0 if reached else 1


def best_finds(result: Result, count: int) -> Result:
    """Return the result with the best `count` finds: the last round may have found more."""
    if len(result.finds) <= count or result.objective == FORMATS:
        return result
    if by_products(result.objective):
        return replace(result, finds=result.finds[-count:])
    best = sorted(result.finds, key=lambda found: (found.scheme.rank, sum(nonzeros(found.scheme))))
    return replace(result, finds=tuple(best[:count]))


def interrupt(saved: int, out: Path | None, otherwise: str) -> NoReturn:
    """End an interrupted run: print the number of saved schemes, and the command that resumes it, or what is lost."""
    further = f"to go on: lcma resume {shlex.quote(str(out))}" if out else otherwise
    click.echo(f"{saved} schemes saved in the catalogue; {further}", err=True)
    raise KeyboardInterrupt


def composition_line(result: Result) -> str | None:
    """Return the catalogue's composition of a full product, if it is better than all results of a run."""
    if not result.target.is_general:
        return None
    with Catalog.open() as catalog:
        part = best_composition(result.target.shape, catalog.best_ranks())
    near = [result.nearest.scheme.rank] if isinstance(result.nearest, Find) else []
    if part.rank >= min([*(scheme.rank for scheme in result.schemes), *near], default=part.rank + 1):
        return None
    return f"the catalogue has rank {part.rank}: lcma compose {result.target}"


def saving(result: Result, start: Scheme | None = None) -> str:
    """Return the saving of a run's best find over the blocks' own products, a half product counted as half of one."""
    plain = level_products(naive(result.target))
    near = [result.nearest.scheme] if isinstance(result.nearest, Find) else []
    composed = [start] if start is not None and start.provenance.kind == "composition" else []
    best = min(map(level_products, (*result.schemes, *near, *composed)), default=plain)
    products = "products of blocks" if result.target.block_recursive else "products"
    if best < plain:
        saved = f"{float(1 - best / plain):.1%}"
        return f"{result.target}: {float(best):g} {products} instead of {float(plain):g}, {saved} saved"
    return f"{result.target}: nothing below its own {float(plain):g} {products} was found"


def print_result(result: Result, kept: Iterable[str], start: Scheme | None = None) -> None:
    """The finds of a run, and what they and a composed start cost."""
    for step in result.lineage:
        click.echo(f"by way of {step.scheme!r} {step.scheme.digest[:12]}")
    for found, said in zip(result.finds, kept, strict=False):
        ternary = ", ternary" if found.scheme.ternary and not found.scheme.ring.characteristic else ""
        click.echo(f"found {found.scheme!r} {found.scheme.digest[:12]}{ternary}, certified, {said}")
    if isinstance(result.nearest, Find):
        near = result.nearest.scheme
        click.echo(f"the lowest was {near!r} {near.digest[:12]}, certified, {next(iter(kept))}")
    elif result.nearest is not None:
        click.echo(f"the lowest was {result.nearest.origin!r}, not lifted: {result.nearest.reason}")
    if by_products(result.objective) and result.finds:
        inner = result.objective.removeprefix(PREFIX)
        lowest = [str(score_of(result.objective, found.scheme)) for found in result.finds]
        of = "sums of the ranks of all formats" if inner == FORMATS else f"ranks of the products with {inner}"
        click.echo(f"{of}: {', '.join(lowest)}")
    for lost in result.unlifted:
        click.echo(f"not lifted: {lost.origin!r}: {lost.reason}")
    if not result.target.is_general:
        click.echo(saving(result, start))
    ranks = ", ".join(f"{rank} ({walks} walks)" for rank, walks in sorted(result.ranks.items()))
    flips = f", {result.flips / 1e6:.2f} M flips ({result.flips_per_second / 1e6:.1f} M/s)" if result.flips else ""
    click.echo(
        f"{len(result.finds)} found in {result.seconds:.2f} s, {result.rounds} rounds{flips}; "
        f"lowest ranks: {ranks or 'the target was not reached'}"
    )
