"""Flip walks on GPUs: the twin as gate, flips a second, times to rank, and the ladders of the known ranks.

Every find is certified and kept in data/finds/search_gpu.jsonl of LCMA_HOME, one scheme a line. Cases
hand their pools to later ones; a case that is run alone makes the pool it needs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError, VerificationError
from ....schemes_db import Scheme, parse_target
from ....schemes_db.costs import full_and_half
from ....schemes_db.resolve import resolve
from ....search import Policy, Progress, Result, Selection, lift
from ....search.flipgraph.gpu.fleet import Fleet
from ....search.flipgraph.gpu.session import WALKS
from ....search.flipgraph.gpu.settings import setting_for
from ....verify import certify
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..walk_session import Walks, naive

SAMPLED = 64
"""Walkers whose scheme is checked exactly after every rate."""

EXACT = (Bar("exact", SAMPLED),)


def gate(bench: Walks, start: Scheme, kind: dict[str, Any], cost: str = "", room: int = 0) -> Figures:
    """The device beside the twin: every word of every walker after launches with pluses and reductions."""
    setting = setting_for(start.target, cost=cost, **kind)
    policy = replace(setting.policy, plus_after=500, trap_rank=0, restart_after=3000)
    fleets = [
        Fleet([start], policy, seed=7, walkers=SAMPLED, room=room, device=device, **kind)
        for device in (bench.options.device, "cpu")
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


def rate(bench: Walks, starts: Sequence[Scheme], policy: Policy, steps: int, say: Say, **kind: Any) -> Figures:
    """Flips a second: the best of four launches, and 64 walkers checked exactly after them."""
    fleet = bench.fleet(starts, policy, bench.options.seed, **kind)
    fleet.launch(steps // 4)
    rates, seconds = [], []
    for _ in range(4):
        before = fleet.flips
        seconds.append(fleet.launch(steps))
        rates.append((fleet.flips - before) / seconds[-1] / 1e9)
        say(f"{rates[-1]:.2f} Gflip/s")
    sample = np.linspace(0, fleet.walkers - 1, SAMPLED).astype(int)
    ranks = [fleet.scheme(walker, current=True) for walker in sample.tolist()]
    for scheme in ranks:
        certify(scheme)
    first = fleet.resources[0] if fleet.resources else {}
    if first.get("local_bytes"):
        raise VerificationError(f"the kernel spills {first['local_bytes']} bytes a thread to local memory")
    return {
        "gflips": max(rates),
        "each": rates,
        "walkers": fleet.walkers,
        "launch_seconds": min(seconds),
        "rank": statistics.median(scheme.rank for scheme in ranks),
        "exact": SAMPLED,
        **first,
    }


def times(
    bench: Walks, name: str, target: str, rank: int, seeds: int, limit: float, total: float, say: Say, **settings: Any
) -> Figures:
    """Seconds to the first find for each seed, no longer than `total` in all."""
    firsts: list[float | None] = []
    spent, finds, lowest = 0.0, 0, []
    for seed in bench.seeds(seeds):
        if spent > total:
            break
        first, result = bench.search(target, rank, seed, limit, say, **settings)
        spent += result.seconds
        firsts.append(first)
        lowest.append(min(result.ranks))
        finds += len(result.finds)
        bench.write(name, result, settings.get("ring", "Z2"), rank)
        say(f"seed {seed}: " + (f"not in {limit:.0f} s, {lowest[-1]}" if first is None else f"{first:.2f} s"))
    hits = [first for first in firsts if first is not None]
    return {
        "hits": len(hits),
        "tries": len(firsts),
        "median": statistics.median(hits) if hits else None,
        "worst": max(hits, default=None),
        "seconds_each": firsts,
        "lowest": lowest,
        "finds": finds,
    }


def ladder(
    bench: Walks, name: str, rungs: Sequence[str], limit: float, say: Say, ring: str = "Z2", **settings: Any
) -> Figures:
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

    ladder = tuple(rungs[:-1])
    settings |= {"ring": ring, "ladder": ladder, "on_event": on_event}
    _, result = bench.search(target, int(rank), bench.options.seed, limit, say, **settings)
    bench.write(name, result, ring, int(rank))
    return {**{rung: firsts.get(rung) for rung in rungs}, "finds": len(result.finds), "lowest": lowest_of(result)}


def lowest_of(result: Result) -> dict[str, int]:
    """The three lowest ranks, and how many walkers have each as theirs."""
    return {str(rank): walkers for rank, walkers in sorted(result.ranks.items())[:3]}


FORMS = {
    "z2-3x4x5": ("3x4x5", "flip"),
    "z2-4x4x5": ("4x4x5", "flip"),
    "z2-4x5x5": ("4x5x5", "flip"),
    "z2-6x6x6": ("6x6x6", "flip"),
    "z2-8x8x8": ("8x8x8", "flip"),
    "zt-4x5x5": ("4x5x5", "flip-zt"),
    "c3-5x5x5": ("5x5x5", "flip-c3"),
    "c3z2-6x6x6": ("6x6x6", "flip-c3z2"),
    "pairs-4x5x5": ("4x5x5", "flip-z2"),
    "pairs-6x7x7": ("6x7x7", "flip-z2"),
    "half-4x4x4": ("4x4x4:tri-left", "flip-half"),
    "half-5x5x5": ("5x5x5:tri-left", "flip-half"),
}
"""Formats and walks whose rate is measured on the way down from the naive scheme."""

NUMBERS = (1056, 4224, 16896, 33792, 0)
"""Numbers of walkers on a GPU of 132 multiprocessors: a quarter of a warp each to 0, as many as fit."""


def form_rate(bench: Walks, name: str, say: Say) -> Figures:
    """The rate of a format after 40 000 steps of every walker from the naive scheme."""
    target, walk = FORMS[name]
    kind = {option: value for option, value in WALKS[walk].items() if option != "cost"}
    start = naive(target, walk)
    policy = setting_for(start.target, **WALKS[walk]).policy
    steps = 4_000 if max(start.target.shape) > 5 else 20_000
    return rate(bench, [start], replace(policy, selection=Selection()), steps, say, **kind)


def crowds(bench: Walks, target: str, rank: int, limit: float, say: Say) -> Figures:
    """Return by the number of walkers: flips a second of one and of all, and seconds to the first find of two seeds."""
    figures: dict[str, Any] = {}
    for number in NUMBERS:
        for seed in bench.seeds(2):
            first, result = bench.search(target, rank, seed, limit, say, walks=number)
            walkers = sum(result.ranks.values())
            mine: dict[str, Any] = figures.setdefault(str(walkers), {"first": []})
            mine["gflips"] = result.flips_per_second / 1e9
            mine["flips_of_one"] = result.flips_per_second / walkers
            mine["first"].append(first)
        say(f"{walkers} walkers: {mine['gflips']:.2f} Gflip/s, first finds {mine['first']}")
    return figures


TRIED = (
    Policy(plus_after=30_000, selection=Selection(20, 0.2, 0.2)),
    Policy(plus_after=100_000, selection=Selection(10, 0.3, 0.1)),
    Policy(plus_after=30_000, selection=Selection(10, 0.3, 0.1)),
    Policy(plus_after=50_000, selection=Selection(40, 0.3, 0.3), margin=3),
    Policy(plus_after=100_000, selection=Selection(20, 0.2, 0.05), margin=4),
)
"""Policies that are tried for a format without a setting of its own that is known to be good."""


def policies(bench: Walks, name: str, target: str, rank: int, limit: float, say: Say) -> Figures:
    """Each of some policies for as long: seconds to the rank, or how many walkers came how low."""
    figures: dict[str, Any] = {}
    for policy in TRIED:
        label = f"plus {policy.plus_after} margin {policy.margin} {tuple(policy.selection)}"
        first, result = bench.search(target, rank, bench.options.seed, limit, say, policy=policy)
        bench.write(name, result, "Z2", rank)
        figures[label] = lowest_of(result) if first is None else first
        say(f"{label}: {figures[label]}")
    return figures


def triangular(
    bench: Walks, name: str, target: str, full: int, half: int, limit: float, total: float, say: Say, **settings: Any
) -> Figures:
    """Seeds of a biased walk, and the numbers of full and half products of what it found."""
    settings |= {"policy": {"full": full}, "walk": "flip-half", "linger": 0.5}
    figures = times(bench, name, target, full + half, 5, limit, total, say, **settings)
    found = bench.pools.get((target, "Z2", full + half), [])
    return {**figures, "products": sorted(map(list, {full_and_half(scheme) for scheme in found}))}


def middle(bench: Walks, target: str, rank: int, ring: str, say: Say) -> list[Scheme]:
    """Schemes of a rank halfway down."""
    settings: dict[str, Any] = {"ring": ring, "linger": 3.0, "count": SAMPLED}
    _, result = bench.search(target, rank, bench.options.seed, 10, say, **settings)
    return list(result.schemes) or [naive(target, "flip-zt" if ring == "ZT" else "flip")]


def middle_rate(bench: Walks, target: str, rank: int, ring: str, policy: Policy, steps: int, say: Say) -> Figures:
    """The rate from schemes of a rank halfway down."""
    kind: dict[str, Any] = (
        {"ternary": True, "room": 4} if ring == "ZT" else {"room": len(parse_target(target).terms) - rank}
    )
    return rate(bench, middle(bench, target, rank, ring, say), policy, steps, say, **kind)


def low_rate(bench: Walks, say: Say) -> Figures:
    """The rate at 5x5x5 from rank 97, which a ladder finds."""
    rungs, start = ("4x5x5:73", "5x5x5:97"), resolve("4x5x5-r73-mod2")[0]
    name = "rate/z2-5x5x5"
    pool = bench.pool(
        "5x5x5", "Z2", 97, lambda: ladder(bench, name, rungs, 20, say, start=start, count=SAMPLED, linger=3.0)
    )
    return rate(bench, pool, Policy(plus_after=50_000), 20_000, say, room=112 - 97)


def symmetric_times(bench: Walks, say: Say) -> Figures:
    """Seconds to 5x5x5:93 by cyclic symmetry."""
    return times(bench, "time/c3-5x5x5-93", "5x5x5", 93, 2, 30, 30, say, walk="flip-c3", linger=1.0)


def down(bench: Walks, say: Say) -> Figures:
    """4x5x5:76 and 4x4x5:61 from what is left of a ternary 5x5x5:93 without one index, then without another."""
    symmetric = bench.pool("5x5x5", "Z2", 93, lambda: symmetric_times(bench, say))
    lifted = [one for one in (lift(scheme).scheme for scheme in symmetric[:4]) if one and one.ternary]
    if not lifted:
        raise PlanError("none of the first four 5x5x5:93 has a ternary lift to start from")
    rungs = ("5x5x5:93", "4x5x5:76", "4x4x5:61")
    return ladder(bench, "ladder/zt-down", rungs, 40, say, "ZT", start=lifted[0])


def gates(bench: Walks) -> Iterator[Case]:
    """The device beside its twin, a kind of walk each."""
    square = resolve("strassen*strassen")[0]  # no flips at all: a plus comes first
    yield Case("gate/z2", lambda say: gate(bench, square, {}, room=15), 10, EXACT)
    yield Case("gate/zt", lambda say: gate(bench, square, {"ternary": True}, room=15), 12, EXACT)
    yield Case("gate/c3", lambda say: gate(bench, naive("5x5x5", "flip-c3"), {"symmetric": True}, room=9), 12, EXACT)
    reverse = naive("6x6x6", "flip-c3z2")
    both = {"symmetric": True, "reversible": True}
    yield Case("gate/c3z2", lambda say: gate(bench, reverse, both, room=9), 14, EXACT)
    pairs = naive("4x4x5", "flip-z2")
    yield Case("gate/z2", lambda say: gate(bench, pairs, {"reversible": True}, room=9), 12, EXACT)
    yield Case("gate/half", lambda say: gate(bench, naive("4x4x4:tri-left"), {}, "full"), 10, EXACT)


def rates(bench: Walks) -> Iterator[Case]:
    """Flips a second."""
    policy = setting_for(parse_target("4x4x4")).policy
    z2 = partial(middle_rate, bench, "4x4x4", 54, "Z2", policy, 80_000)
    zt = partial(middle_rate, bench, "4x4x4", 60, "ZT", Policy(plus_after=50_000), 40_000)
    yield Case("rate/z2-4x4x4", z2, 6, (Bar("gflips", 40), *EXACT))
    yield Case("rate/z2-5x5x5", partial(low_rate, bench), 6, (Bar("gflips", 13), *EXACT))
    yield Case("rate/zt-4x4x4", zt, 8, (Bar("gflips", 22), *EXACT))
    for form in FORMS:
        yield Case(f"rate/{form}", partial(form_rate, bench, form), 6, EXACT)


def cases(options: Options) -> Iterator[Case]:
    """All cases, in the order in which pools are handed on."""
    bench = Walks(options)
    yield from gates(bench)
    yield from rates(bench)
    yield Case("walkers/z2-4x4x4-47", partial(crowds, bench, "4x4x4", 47, 8.0), 40)

    name = "time/z2-4x4x4-47"
    quick = (Bar("hits", 10), Bar("worst", 10, True), Bar("median", 2.5, True))
    yield Case(name, partial(times, bench, name, "4x4x4", 47, 10, 10, 40), 30, quick)
    name = "time/z2-3x4x5-47"
    most = (Bar("hits", 4), Bar("worst", 30, True))
    yield Case(name, partial(times, bench, name, "3x4x5", 47, 5, 30, 100), 45, most)
    name = "settings/z2-3x4x5"
    yield Case(name, partial(policies, bench, name, "3x4x5", 47, 7.0), 36)
    name, rungs = "ladder/z2", ["4x4x4:47", "4x4x5:60", "4x5x5:73", "5x5x5:97", "5x5x5:96"]
    limits = (Bar("4x4x5:60", 10, True), Bar("4x5x5:73", 30, True), Bar("5x5x5:96", 60, True))
    yield Case(name, partial(ladder, bench, name, rungs, 60), 45, limits)
    name = "time/zt-4x4x4-49"
    yield Case(name, partial(times, bench, name, "4x4x4", 49, 5, 30, 120, ring="ZT"), 30, _all_within(30))
    name = "time/tri-4"
    yield Case(name, partial(triangular, bench, name, "4x4x4:tri-left", 22, 12, 5, 10), 8, _all_within(5))
    name, below = "time/tri-5", ("4x4x4:tri-left:22+12",)
    large = partial(triangular, bench, name, "5x5x5:tri-left", 44, 19, 90, 450, ladder=below)
    yield Case(name, large, 150, _all_within(90))
    yield Case("time/c3-5x5x5-93", partial(symmetric_times, bench), 35, (Bar("hits", 1),))
    for target, rank in (("4x4x5", 61), ("2x5x6", 47)):
        name = f"time/pairs-{target}-{rank}"
        yield Case(name, partial(times, bench, name, target, rank, 5, 30, 120, ring="Z", walk="flip-z2"), 60)
    name, rungs = "ladder/zt", ["4x4x4:49", "4x4x5:61", "4x5x5:76"]
    slow = (Bar("4x4x5:61", 60, True), Bar("4x5x5:76", 60, True))
    yield Case(name, partial(ladder, bench, name, rungs, 90, ring="ZT"), 45, slow)
    yield Case("ladder/zt-down", partial(down, bench), 40, (Bar("4x5x5:76", 60, True),))


def _all_within(seconds: float) -> tuple[Bar, ...]:
    """All of five seeds find, each in so many seconds."""
    return Bar("hits", 5), Bar("worst", seconds, True)


SUITE = Suite(
    "search_gpu",
    "flips a second and seconds to a rank of the walkers on a GPU; --sample is their number",
    cases,
    ("gflips", "walkers", "hits", "tries", "median", "worst", "exact"),
    ("search/flipgraph/gpu", "search/improve", "search/format_moves", "workbench/bench/walk_session.py"),
)
