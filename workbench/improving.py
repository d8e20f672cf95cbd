"""`lcma search --improve`: searches where the catalogue is behind the best ranks known, one after the other."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator

import click

from ..errors import TargetError
from ..schemes_db import Ring, Scheme, Target, Z, parse_ring
from ..schemes_db.catalog import Catalog
from ..search import RunConfig, carry_out
from ..search.gaps import Gap, Shape, gaps
from .finds import keep, print_finds, progress_line
from .progress import Progress
from .starts import best_below

LONGEST = 120.0
"""Seconds that a search gets at most before the next format has its turn."""

SHARE = 0.2
"""The share of all the time that a search gets at most."""


GPU_WALKS, GPU_STEPS = 16_384, 20_000
"""Walks of a search on a GPU, and their steps a round: what half fills one H200 with the largest formats."""


def improve_up_to(
    limit: Target, ring: str, seconds: float, seed: int, jobs: int, dry_run: bool, device: str = "cpu"
) -> int:
    """Close gaps to the best known ranks in formats up to `limit`, those of most promise first; the exit code.

    Raises:
        TargetError: the limit is no full product.
        PlanError: the device is not known, or not here.
        KeyboardInterrupt: the run was interrupted, after everything is kept.
    """
    if not limit.is_general:
        raise TargetError(f"--improve works on full products up to a format such as 5x5x5, not {limit}")
    over = Z if ring == "ZT" else parse_ring(ring)
    tries: Counter[str] = Counter()
    begin, gained = time.perf_counter(), 0
    while (left := seconds - (time.perf_counter() - begin)) > 1 or not tries:
        with Catalog.open() as catalog:
            open_gaps = gaps(kept_ranks(catalog, over), over, limit.shape)
            if not open_gaps:
                click.echo(f"no gap to the best known ranks over {over} is left up to {limit}")
                return 0
            gap = max(open_gaps, key=lambda gap: gap.promise(tries[gap.target.name]))
            tried = tries[gap.target.name]
            configs = list(_ways(gap, ring, over, catalog, seed + tried, device))
        if dry_run:
            for one in sorted(open_gaps, key=lambda gap: -gap.promise(0)):
                click.echo(f"{one.target}: rank {one.rank}, best known {one.known}")
            return 0
        tries[gap.target.name] += 1
        gained += _tried(configs[tried % len(configs)], min(LONGEST, max(1.0, SHARE * seconds), left), jobs)
    click.echo(f"{gained} ranks gained in {sum(tries.values())} searches")
    return 0 if gained else 1


def kept_ranks(catalog: Catalog, over: Ring) -> dict[Shape, int]:
    """The lowest ranks kept for full products over a ring, sides in increasing order; what holds over Z holds mod 2."""
    kept: dict[Shape, int] = {}
    for entry in catalog.entries():
        name, _, structured = entry.target.partition(":")
        if structured or (entry.ring != over.name and entry.ring != "Z"):
            continue
        m, k, n = sorted(int(side) for side in name.split("x"))
        kept[m, k, n] = min(entry.rank, kept.get((m, k, n), entry.rank))
    return kept


def _ways(gap: Gap, ring: str, over: Ring, catalog: Catalog, seed: int, device: str) -> Iterator[RunConfig]:
    """Searches for one rank less, each with the command that repeats it: by symmetry, by extension, from below."""
    m, k, n = gap.target.shape
    if m == k == n and ring != "ZT":
        yield _config(gap, ring, seed, device, walk="flip-c3")
    below = best_below(catalog, gap.target, over)
    if below is not None and (ring != "ZT" or below.ternary):
        yield _config(gap, ring, seed, device, start=below)
    yield _config(gap, ring, seed, device)


def _config(gap: Gap, ring: str, seed: int, device: str, walk: str = "", start: Scheme | None = None) -> RunConfig:
    words = ["lcma", "search", gap.target.name, "--rank", str(gap.rank - 1), "--ring", ring, "--seed", str(seed)]
    words += ["--walk", walk] if walk else []
    words += ["--start", start.digest[:16]] if start else []
    walks, steps = (0, 0) if device == "cpu" else (GPU_WALKS, GPU_STEPS)
    if walks:
        words += ["--device", device, "--walks", str(walks), "--steps", str(steps)]
    return RunConfig(
        gap.target.name,
        gap.rank - 1,
        ring,
        seed,
        walks,
        steps,
        seconds=LONGEST,
        walk=walk,
        command=shlex.join([*words, "--time", f"{LONGEST:g}s"]),
        start=start,
        device=device,
    )


def _tried(config: RunConfig, seconds: float, jobs: int) -> int:
    """How many ranks a search gained; what it found is kept."""
    click.echo(f"{config.command}", err=True)
    with Progress(f"{config.target}: compiling the walk") as progress:
        result = carry_out(
            config.limited(None, seconds, 1),
            jobs=jobs,
            on_progress=lambda standing: progress.update(progress_line(standing)),
        )
    print_finds(result.finds, keep(result, config.start))
    if result.interrupted:
        raise KeyboardInterrupt
    best = min((found.scheme.rank for found in result.finds), default=None)
    return 0 if best is None or config.rank is None else config.rank + 1 - best
