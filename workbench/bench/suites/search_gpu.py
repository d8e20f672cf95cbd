"""Flip walks on GPUs: the twin as gate, flips a second, times to a rank, and the ladder of the known ranks.

Without a GPU, `--device cpu` runs the twin of the kernels.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....errors import VerificationError
from ....schemes_db import Scheme, parse_target
from ....schemes_db.costs import full_and_half
from ....schemes_db.resolve import resolve
from ....search import Policy, Progress, Result, Selection, find, pack_start
from ....search.flipgraph.gpu.fleet import Fleet
from ....search.runs.plan import gpu_setting_for
from ....verify import certify
from ..case import Case, Figures, Options, Say, at_least, at_most, barred
from ..table import rows

SAMPLED = 64
"""Walkers whose scheme is checked exactly after every rate."""

POOL = 100
"""Finds of a run that rates start from."""

TRIED = [
    Policy(plus_after=one.plus_after, margin=one.margin, selection=Selection(one.every, one.worst, one.best))
    for one in rows("search_gpu_policies")
]
"""Policies that are tried for a format without a setting of its own that is known to be good."""

RUNGS = ("4x4x4:47", "4x4x5:60", "4x5x5:73", "5x5x5:97", "5x5x5:96")
"""The ladder of the known ranks."""


ALL_TIMES = rows("search_gpu")
"""Seconds to the first find of a rank for some seeds, `limit` each and about `total` in all.

`within`: what all of the seeds, or `hits` of them, must stay below; `full`: products at most that are not half.
"""


WALKS = rows("search_gpu_walks")
"""Kinds of walks: the start of the gate ("" for Strassen's scheme squared) with `room` for more terms, and the formats
whose rate is measured on the way down from the naive scheme."""


def naive(name: str, walk: str = "flip") -> Scheme:
    """The start of a walk."""
    return pack_start(walk, parse_target(name)).to_scheme()


def search(
    options: Options, target: str, rank: int, seed: int, limit: float, say: Say, linger: float = 0.0, **settings: Any
) -> tuple[float | None, Result]:
    """A run of the engine that `lcma search` drives, and the seconds to its first find.

    It ends with the first find, or, where finds are wanted as starts, after `linger` seconds more or POOL finds.
    `on_event` in the settings sees its progress, too.
    """
    first: float | None = None
    seconds = 0.0
    on_event = settings.pop("on_event", lambda progress: None)

    def watch(progress: Progress) -> None:
        nonlocal first, seconds
        on_event(progress)
        seconds = progress.seconds
        if progress.finds and first is None:
            first = seconds
        say(progress.line)

    chosen: dict[str, Any] = {
        "ring": "Z2",
        "walks": options.sample or 0,
        "count": POOL if linger else 1,
        "ladder": (),
    } | settings
    chosen["device"] = "twin" if options.device == "cpu" else options.device
    limits: dict[str, Any] = {"seconds": limit, "stop": lambda: first is not None and seconds >= first + linger}
    result = find(target, rank=rank, seed=seed, on_event=watch, **limits, **chosen)
    return first, result


def gate(options: Options, start: Scheme, walk: str, room: int, say: Say) -> Figures:
    """The device beside the twin: every word of every walker after launches with pluses and reductions."""
    policy = replace(gpu_setting_for(start.target, walk).policy, plus_after=500, trap_rank=0, restart_after=3000)
    fleets = [
        Fleet([start], policy, seed=7, walkers=SAMPLED, walk=walk, room=room, device=device)
        for device in (options.device, "cpu")
    ]
    for steps in (1, 50, 4000, 4000):
        states = []
        for fleet in fleets:
            fleet.launch(steps)
            states.append(fleet.to_arrays())
        wrong = [key for key in states[0] if not np.array_equal(states[0][key], states[1][key])]
        if wrong:
            raise VerificationError(f"{start.target}: the device and its twin differ in {', '.join(wrong)}")
    for walker in range(SAMPLED):
        certify(fleets[0].scheme(walker, current=True))
    return {"exact": SAMPLED, "flips": fleets[0].flips, "lowest": int(fleets[0].score.min())}


def rate(
    options: Options, starts: Sequence[Scheme], policy: Policy, steps: int, say: Say, walk: str, room: int | None = None
) -> Figures:
    """Flips a second: the best of four launches, and 64 walkers checked exactly after them; `--sample` is the number of
    walkers, else as many as fit."""
    where: dict[str, Any] = {"walkers": options.sample, "device": options.device}
    fleet = Fleet(starts, policy, seed=options.seed, walk=walk, room=room, **where)
    fleet.launch(steps // 4)
    rates, seconds = [], []
    for _ in range(4):
        before = fleet.flips
        seconds.append(fleet.launch(steps))
        rates.append((fleet.flips - before) / seconds[-1] / 1e9)
        say(f"{rates[-1]:.2f} Gflip/s")
    sample = np.linspace(0, fleet.walkers - 1, SAMPLED).astype(int)
    schemes = [fleet.scheme(walker, current=True) for walker in sample.tolist()]
    for scheme in schemes:
        certify(scheme)
    first = fleet.resources[0] if fleet.resources else {}
    if first.get("local_bytes"):
        raise VerificationError(f"the kernel spills {first['local_bytes']} bytes a thread to local memory")
    figures = {"gflips": max(rates), "each": rates, "walkers": fleet.walkers, "launch_seconds": min(seconds)}
    return {**figures, "rank": statistics.median(scheme.rank for scheme in schemes), "exact": SAMPLED, **first}


def form_rate(options: Options, target: str, walk: str, say: Say) -> Figures:
    """The rate of a format after 40 000 steps of every walker from the naive scheme."""
    start = naive(target, walk)
    policy = gpu_setting_for(start.target, walk).policy
    steps = 4_000 if max(start.target.shape) > 5 else 20_000
    return rate(options, [start], replace(policy, selection=Selection()), steps, say, walk)


def middle_rate(
    options: Options, target: str, rank: int, policy: Policy, steps: int, say: Say, ring: str = "Z2", **settings: Any
) -> Figures:
    """The rate from schemes of a rank halfway down."""
    _, result = search(options, target, rank, options.seed, 20, say, 3.0, ring=ring, count=SAMPLED, **settings)
    walk, room = ("flip-zt", 4) if ring == "ZT" else ("flip", len(parse_target(target).terms) - rank)
    starts = list(result.schemes) or [naive(target, walk)]
    return rate(options, starts, policy, steps, say, walk, room)


def times(options: Options, row: Any, say: Say) -> Figures:
    """Seconds to the first find for each seed; of a biased walk also the full and half products of what it found."""
    named = {"ring": row.ring, "walk": row.walk, "ladder": (row.ladder,) if row.ladder else ()}
    settings: dict[str, Any] = {name: value for name, value in named.items() if value}
    if row.full is not None:
        settings |= {"policy": {"full": row.full}, "walk": "flip-half", "linger": 0.5}
    firsts: list[float | None] = []
    spent, lowest, schemes = 0.0, list[int](), list[Scheme]()
    for seed in range(100 * options.seed, 100 * options.seed + (options.rounds or row.seeds)):
        if spent > row.total:
            break
        first, result = search(options, row.target, row.rank, seed, row.limit, say, **settings)
        spent += result.seconds
        firsts.append(first)
        lowest.append(min(result.ranks))
        schemes += result.schemes
        say(f"seed {seed}: " + (f"not in {row.limit:.0f} s, {lowest[-1]}" if first is None else f"{first:.2f} s"))
    hits = [first for first in firsts if first is not None]
    median, worst = statistics.median(hits) if hits else None, max(hits, default=None)
    figures: dict[str, Any] = {
        "hits": len(hits),
        "tries": len(firsts),
        "median": median,
        "worst": worst,
        "seconds_each": firsts,
    }
    figures |= {"lowest": lowest, "finds": len(schemes)}
    return figures | ({} if row.full is None else {"products": sorted(map(list, set(map(full_and_half, schemes))))})


def ladder(options: Options, rungs: Sequence[str], limit: float, say: Say) -> Figures:
    """Seconds of walking until each rung is reached; a rung is `TARGET:RANK`.

    Compiling and bringing walkers to their starts are left out; going back for other schemes of a
    smaller format is not.
    """
    target, _, rank = rungs[-1].partition(":")
    firsts: dict[str, float] = {}

    def on_event(progress: Progress) -> None:
        at = rungs.index(f"{progress.target}:{progress.wanted}")
        for rung in rungs[: at + (progress.rank <= (progress.wanted or 0))]:
            firsts.setdefault(rung, progress.seconds)

    settings: dict[str, Any] = {"ladder": tuple(rungs[:-1]), "on_event": on_event}
    _, result = search(options, target, int(rank), options.seed, limit, say, **settings)
    return {**{rung: firsts.get(rung) for rung in rungs}, "finds": len(result.finds), "lowest": lowest_of(result)}


def lowest_of(result: Result) -> dict[str, int]:
    """The three lowest ranks, and how many walkers have each as theirs."""
    return {str(rank): walkers for rank, walkers in sorted(result.ranks.items())[:3]}


def policies(options: Options, target: str, rank: int, limit: float, say: Say) -> Figures:
    """Each of some policies for as long: seconds to the rank, or how many walkers came how low."""
    figures: dict[str, Any] = {}
    for policy in TRIED:
        label = f"plus {policy.plus_after} margin {policy.margin} {tuple(policy.selection)}"
        first, result = search(options, target, rank, options.seed, limit, say, policy=policy)
        figures[label] = lowest_of(result) if first is None else first
        say(f"{label}: {figures[label]}")
    return figures


@barred
def cases(options: Options) -> Iterator[Case]:
    """The device beside its twin, a kind of walk each; then rates, times and the ladder."""
    square = resolve("strassen*strassen")[0]  # has no flips at all: a plus comes first
    for one in WALKS:
        start = naive(one.start, one.walk) if one.start else square
        yield Case(f"gate/{one.kind}", partial(gate, options, start, one.walk, one.room))
    policy, low = gpu_setting_for(parse_target("4x4x4"), "flip").policy, Policy(plus_after=50_000)
    down: dict[str, Any] = {"ladder": ("4x5x5:73",), "start": resolve("4x5x5-r73-mod2")[0]}
    for name, run in (
        ("z2-4x4x4", partial(middle_rate, options, "4x4x4", 54, policy, 80_000)),
        ("z2-5x5x5", partial(middle_rate, options, "5x5x5", 97, low, 20_000, **down)),
        ("zt-4x4x4", partial(middle_rate, options, "4x4x4", 60, low, 40_000, ring="ZT")),
    ):
        yield Case(f"rate/{name}", run)
    for one in WALKS:
        for target in one.formats.split():
            run = partial(form_rate, options, target, one.walk)
            yield Case(f"rate/{one.kind}-{target.partition(':')[0]}", run)
    for row in ALL_TIMES:
        bars = at_least(hits=row.seeds if row.hits is None else row.hits)
        bars += at_most(worst=row.within, median=row.median)
        yield Case(f"time/{row.name}", partial(times, options, row), bars)
    yield Case("settings/z2-3x4x5", partial(policies, options, "3x4x5", 47, 7.0))
    yield Case("ladder/z2", partial(ladder, options, RUNGS, 60))
