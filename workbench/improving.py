"""`lcma search --improve`: searches where the catalogue is behind the best ranks known, one after the other."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import click

from ..errors import TargetError
from ..schemes_db import Ring, Scheme, Target, Z, parse_ring
from ..schemes_db.catalog import Catalog
from ..search import RunConfig, carry_out
from ..search.improve.gaps import Gap, formats_up_to, gaps
from ..verify import certify
from .finds import keep_finds, progress_line
from .keeping import Keeper, in_order
from .progress import Progress
from .starts import best_below

LONGEST = 60.0
"""Seconds of a turn at most; then the format of most promise has the next."""

SHARE = 0.05
"""The share of all the time that a turn gets at most."""

GPU_BLOCKS = 64
"""Blocks of a factor that a walk on a GPU holds."""

Turn = Callable[[Gap, int, float], str]
"""Works on a format for so many seconds, after so many turns; returns the way that it took."""


def formats_of(limits: Sequence[Target], alone: bool) -> list[Target]:
    """The formats to improve, sides in increasing order: these `alone`, or all up to one of them.

    Raises:
        TargetError: one is no full product.
    """
    for limit in limits:
        if not limit.is_general:
            raise TargetError(
                f"--improve works on full products or on structured targets, not on both: {limit} is structured"
            )
    shapes = [in_order(limit.shape) for limit in limits]
    if alone:
        return [Target.general(*shape) for shape in dict.fromkeys(shapes)]
    return list(dict.fromkeys(target for shape in shapes for target in formats_up_to(shape)))


def improve(
    formats: Sequence[Target],
    ring: str,
    seconds: float,
    seed: int,
    jobs: int,
    dry_run: bool,
    device: str,
    command: str,
) -> int:
    """Close gaps to the best known ranks, in turns that share the time out by promise; the exit code.

    Raises:
        PlanError: the device is not known, or not here, or has no walks over the ring.
        KeyboardInterrupt: the run was interrupted, after everything is kept.
    """
    over = Z if ring == "ZT" else parse_ring(ring)
    if device != "cpu":
        formats = [one for one in formats if one.shape[1] * one.shape[2] <= GPU_BLOCKS]
    tries: Counter[str] = Counter()
    begin = time.perf_counter()
    with Keeper(over, jobs) as keeper:
        turn = _runs(keeper, ring, seed, jobs) if device == "cpu" else _descents(keeper, ring, seed, device, command)
        while (left := seconds - (time.perf_counter() - begin)) > 1 or not tries:
            open_gaps = gaps(keeper.ranks[over.name], over, formats)
            if not open_gaps:
                click.echo(f"no gap to the best known ranks over {over} is left in the {len(formats)} formats")
                return 0
            if dry_run:
                for one in sorted(open_gaps, key=lambda gap: -gap.promise(0)):
                    click.echo(f"{one.target}: rank {one.rank}, best known {one.known}")
                return 0
            gap = max(open_gaps, key=lambda gap: gap.promise(tries[gap.target.name]))
            turn(gap, tries[gap.target.name], min(LONGEST, max(1.0, SHARE * seconds), left))
            tries[gap.target.name] += 1
            keeper.look()
    click.echo(f"{keeper.gained} ranks gained in {sum(tries.values())} searches")
    return 0 if keeper.gained else 1


def _descents(keeper: Keeper, ring: str, seed: int, device: str, command: str) -> Turn:
    """Turns on GPUs."""
    from .descending import Descents  # imports a compiler

    descents = Descents(keeper, ring, seed, device, command)

    def turn(gap: Gap, tried: int, seconds: float) -> str:
        with Progress(f"{gap.target}: compiling the walk") as progress:
            return descents.turn(gap, tried, seconds, progress.update)

    return turn


def _runs(keeper: Keeper, ring: str, seed: int, jobs: int) -> Turn:
    """Turns on the processor: each is a run, with the command that repeats it."""

    def turn(gap: Gap, tried: int, seconds: float) -> str:
        with Catalog.open() as catalog:
            configs = list(_ways(gap, ring, keeper.over, catalog, seed + tried))
        config = configs[tried % len(configs)]
        click.echo(config.command, err=True)
        with Progress(f"{config.target}: compiling the walk") as progress:
            result = carry_out(
                config.limited(None, seconds, 1),
                jobs=jobs,
                on_progress=lambda standing: progress.update(progress_line(standing)),
            )
        keep_finds(result.lineage)
        for found in result.finds:
            # What it was lifted from comes first: it may improve the catalogue over Z2 more than its lift over Z.
            keeper.keep(found.origin, found.origin_certificate)
            keeper.keep(found.scheme, found.certificate)
        for lost in result.unlifted:
            keeper.keep(lost.origin, certify(lost.origin))
        if result.interrupted:
            raise KeyboardInterrupt
        return config.command

    return turn


def _ways(gap: Gap, ring: str, over: Ring, catalog: Catalog, seed: int) -> Iterator[RunConfig]:
    """Runs for one rank less: by symmetry, from below, from what is kept of the format itself, from naive."""
    m, k, n = gap.target.shape
    if m == k == n and ring != "ZT":
        yield _config(gap, ring, seed, walk="flip-c3")
    entries = catalog.entries(target=gap.target.name, max_rank=gap.rank)
    kept = [one for one in entries if one.ring in (over.name, "Z") and one.rank == gap.rank]
    below = best_below(catalog, gap.target, over)
    for start in (below, catalog.find(kept[0].digest)[0] if kept else None):
        if start is not None and (ring != "ZT" or start.ternary):
            yield _config(gap, ring, seed, start=start)
    yield _config(gap, ring, seed)


def _config(gap: Gap, ring: str, seed: int, walk: str = "", start: Scheme | None = None) -> RunConfig:
    words = ["lcma", "search", gap.target.name, "--rank", str(gap.rank - 1), "--ring", ring, "--seed", str(seed)]
    words += ["--walk", walk] if walk else []
    words += ["--start", start.digest[:16]] if start else []
    return RunConfig(
        gap.target.name,
        gap.rank - 1,
        ring,
        seed,
        seconds=LONGEST,
        walk=walk,
        command=shlex.join([*words, "--time", f"{LONGEST:g}s"]),
        start=start,
    )
