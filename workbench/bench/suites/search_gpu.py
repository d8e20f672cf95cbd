"""Flip walks on GPUs: the twin as gate, flips a second, times to rank, and the ladders of the known ranks.

Every find is certified and kept in data/finds/search_gpu.jsonl of LCMA_HOME, one scheme a line. Cases
hand their pools to later ones; a case that is run alone makes the pool it needs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....errors import PlanError, VerificationError
from ....schemes_db import Scheme, parse_target
from ....schemes_db.costs import full_and_half
from ....schemes_db.resolve import resolve
from ....search import Policy, Selection, lift
from ....search.flipgraph.gpu.fleet import Fleet
from ....search.flipgraph.gpu.ladders import Rung, climb
from ....search.flipgraph.gpu.search_until import SearchOutcome, search_until
from ....search.flipgraph.gpu.settings import setting_for
from ....search.format_moves.corners import bordered, cut, rolled
from ....verify import certify
from ..case import Bar, Case, Figures, Options, Say, Suite
from ..walk_session import Bench, naive

SAMPLED = 64
"""Walkers whose scheme is checked exactly after every rate."""

POOL = 100
"""Finds of one seed that later cases may start from."""

TRIANGULAR_POOL = 500
"""Different 4x4x4:tri-left schemes that walks on 5x5x5:tri-left start from."""

TRIES = 6
"""How often a ladder returns to the rung before for schemes that lead further."""


def gate(bench: Bench, start: Scheme, kind: dict[str, bool], cost: str = "", room: int = 0) -> Figures:
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


def rate(bench: Bench, starts: Sequence[Scheme], policy: Policy, steps: int, say: Say, **kind: Any) -> Figures:
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
    bench: Bench,
    case: str,
    starts: Sequence[Scheme],
    goal: int,
    seeds: range,
    limit: float,
    total: float,
    say: Say,
    linger: float = 0.0,
    cost: str = "",
    kind: dict[str, bool] | None = None,
) -> Figures:
    """Seconds to the first scheme for each seed, all of them, no longer than `total` in all."""
    kind = kind or {}
    setting = setting_for(starts[0].target, cost=cost, **kind)
    ring = "ZT" if kind.get("ternary") else "Z2"
    firsts: list[float | None] = []
    spent, finds, lowest = 0.0, 0, []
    for seed in seeds:
        if spent > total:
            break
        fleet = bench.fleet(starts, setting.policy, seed, **kind)
        result = search_until(
            fleet,
            goal,
            steps=setting.steps,
            seconds=limit,
            count=POOL if linger else 1,
            linger=linger,
            on_find=bench.stream(case),
            say=say,
        )
        spent += result.seconds
        firsts.append(result.first)
        lowest.append(goal if result.first else min(result.histogram))
        finds += len(result.schemes)
        bench.keep(goal, result, ring)
        say(f"seed {seed}: " + (f"{result.first:.2f} s" if result.first else f"not in {limit:.0f} s, {lowest[-1]}"))
    hits = [first for first in firsts if first is not None]
    return {
        "hits": len(hits),
        "tries": len(firsts),
        "median": statistics.median(hits) if hits else None,
        "worst": max(hits, default=None),
        "seconds_each": firsts,
        "lowest_scores": lowest,
        "finds": finds,
    }


def ladder(
    bench: Bench, case: str, starts: Sequence[Scheme], rungs: Sequence[Rung], say: Say, ternary: bool = False
) -> Figures:
    """Seconds from the beginning of the ladder to the first scheme of each rung, rungs tried in vain included.

    Compiling and bringing walkers to their starts are left out; " alone" are the seconds of the walk that found it.
    """
    figures: dict[str, Any] = {}
    ring = "ZT" if ternary else "Z2"
    stream = bench.stream(case)
    begin, walked = time.perf_counter(), 0.0

    def on_rung(rung: Rung, result: SearchOutcome, fleet: Fleet) -> None:
        nonlocal begin, walked
        bench.keep(rung.goal, result, ring)
        name = f"{rung.target}:{rung.goal}"
        if result.first is not None and figures.get(name) is None:
            figures[name] = walked + result.first
        figures.setdefault(name, None)
        walked += time.perf_counter() - begin - result.setup
        begin = time.perf_counter()
        figures[f"{name} alone"] = result.first
        figures[f"{name} tries"] = figures.get(f"{name} tries", 0) + 1
        figures[f"{name} finds"] = len(result.schemes)
        figures[f"{name} lowest"] = {str(k): v for k, v in list(result.histogram.items())[:3]}
        say(f"{name} first {result.first} s, {len(result.schemes)} finds, {result.histogram}")

    climb(
        starts,
        rungs,
        seed=bench.options.seed,
        tries=TRIES,
        ternary=ternary,
        walkers=bench.options.sample,
        device=bench.options.device,
        on_find=lambda rung, scheme, certificate: stream(scheme, certificate),
        on_rung=on_rung,
        say=say,
    )
    return figures


FORMS = {
    "z2-3x4x5": ("3x4x5", {}),
    "z2-4x4x5": ("4x4x5", {}),
    "z2-4x5x5": ("4x5x5", {}),
    "z2-6x6x6": ("6x6x6", {}),
    "z2-8x8x8": ("8x8x8", {}),
    "zt-4x5x5": ("4x5x5", {"ternary": True}),
    "c3-5x5x5": ("5x5x5", {"symmetric": True}),
    "c3z2-6x6x6": ("6x6x6", {"reversible": True}),
    "half-4x4x4": ("4x4x4:tri-left", {}),
    "half-5x5x5": ("5x5x5:tri-left", {}),
}
"""Formats whose rate is taken on the way down from the naive scheme."""

WALKS = {"ternary": "flip-zt", "symmetric": "flip-c3", "reversible": "flip-c3z2"}
"""The walk whose naive start a kind of fleet takes."""

NUMBERS = (1056, 4224, 16896, 33792, None)
"""Numbers of walkers on a GPU of 132 multiprocessors: a quarter of a warp each to as many as fit."""


def form_rate(bench: Bench, name: str, say: Say) -> Figures:
    """The rate of a format after 40 000 steps of every walker from the naive scheme."""
    target, kind = FORMS[name]
    cost = "full" if name.startswith("half") else ""
    walk = WALKS.get(next(iter(kind), ""), "flip")
    start = naive(target, walk)
    policy = setting_for(start.target, cost=cost, **kind).policy
    steps = 4_000 if max(start.target.shape) > 5 else 20_000
    return rate(bench, [start], replace(policy, selection=Selection()), steps, say, **kind)


def crowds(bench: Bench, goal: int, limit: float, say: Say) -> Figures:
    """By the number of walkers: flips a second of one and of all, and seconds to the first hit of two seeds."""
    start = naive("4x4x4")
    setting = setting_for(start.target)
    figures: dict[str, Any] = {}
    for number in NUMBERS:
        for seed in bench.seeds(2):
            fleet = Fleet([start], setting.policy, seed=seed, walkers=number, device=bench.options.device)
            result = search_until(fleet, goal, steps=setting.steps, seconds=limit, say=say)
            mine: dict[str, Any] = figures.setdefault(str(fleet.walkers), {"first": []})
            mine["gflips"] = fleet.flips_per_second / 1e9
            mine["flips_of_one"] = fleet.flips_per_second / fleet.walkers
            mine["first"].append(result.first)
        say(f"{fleet.walkers} walkers: {mine['gflips']:.2f} Gflip/s, first hits {mine['first']}")
    return figures


TRIED = (
    Policy(plus_after=30_000, selection=Selection(20, 0.2, 0.2)),
    Policy(plus_after=100_000, selection=Selection(10, 0.3, 0.1)),
    Policy(plus_after=30_000, selection=Selection(10, 0.3, 0.1)),
    Policy(plus_after=50_000, selection=Selection(40, 0.3, 0.3), margin=3),
    Policy(plus_after=100_000, selection=Selection(20, 0.2, 0.05), margin=4),
)
"""Policy that are tried for a format without a setting of its own that is known to be good."""


def settings(bench: Bench, case: str, start: Scheme, goal: int, limit: float, say: Say) -> Figures:
    """Each of some policy for as long: seconds to the goal, or how many walkers came how low."""
    figures: dict[str, Any] = {}
    for policy in TRIED:
        name = f"plus {policy.plus_after} margin {policy.margin} {tuple(policy.selection)}"
        fleet = bench.fleet([start], policy, bench.options.seed)
        steps = setting_for(start.target).steps
        result = search_until(fleet, goal, steps=steps, seconds=limit, on_find=bench.stream(case), say=say)
        figures[name] = result.first or {str(score): walkers for score, walkers in list(result.histogram.items())[:3]}
        say(f"{name}: {figures[name]}")
    return figures


def biased(target: str, full: int, half: int) -> int:
    """The score of so many full and half products, by the weights of the biased walk."""
    return setting_for(parse_target(target), cost="full").policy.score(full + half, full)


def triangular(
    bench: Bench, case: str, starts: Sequence[Scheme], goal: int, limit: float, total: float, say: Say
) -> Figures:
    """Seeds of a biased walk, and the numbers of full and half products of what it found."""
    figures = times(bench, case, starts, goal, bench.seeds(5), limit, total, say, linger=0.5, cost="full")
    found = bench.pools.get((starts[0].target.name, "Z2", goal), [])
    return {**figures, "products": sorted(map(list, {full_and_half(scheme) for scheme in found}))}


def cases(options: Options) -> Iterator[Case]:
    """All cases, in the order in which pools are handed on."""
    bench = Bench(options)

    def z2_47(say: Say) -> Figures:
        case = "time/z2-4x4x4-47"
        return times(bench, case, [naive("4x4x4")], 47, bench.seeds(10), 10, 40, say, linger=0.7)

    def z2_ladder(say: Say) -> Figures:
        pool = bench.pool("4x4x4", "Z2", 47, lambda: z2_47(say))
        rungs = [
            Rung("4x4x5", 60, 10, 64, 2.0),
            Rung("4x5x5", 73, 10, 64, 6.0),
            Rung("5x5x5", 97, 4, 64, 2.0),
            Rung("5x5x5", 96, 15, 16, 1.0),
        ]
        return ladder(bench, "ladder/z2", pool, rungs, say)

    def zt_49(say: Say) -> Figures:
        case, kind = "time/zt-4x4x4-49", {"ternary": True}
        return times(bench, case, [naive("4x4x4", "flip-zt")], 49, bench.seeds(5), 30, 120, say, linger=0.5, kind=kind)

    def zt_ladder(say: Say) -> Figures:
        pool = bench.pool("4x4x4", "ZT", 49, lambda: zt_49(say))
        rungs = [Rung("4x4x5", 61, 25, 32, 2.0), Rung("4x5x5", 76, 25, 8, 1.0)]
        return ladder(bench, "ladder/zt", pool, rungs, say, ternary=True)

    def mid(name: str, goal: int, ternary: bool) -> list[Scheme]:
        start = naive(name, "flip-zt" if ternary else "flip")
        setting = setting_for(start.target, ternary=ternary)
        fleet = bench.fleet([start], setting.policy, options.seed, ternary=ternary)
        return search_until(fleet, goal, steps=setting.steps, seconds=10, count=SAMPLED, linger=3).schemes or [start]

    def rate_444(say: Say) -> Figures:
        policy = setting_for(parse_target("4x4x4")).policy
        return rate(bench, mid("4x4x4", 54, False), policy, 80_000, say, room=64 - 54)

    def rate_555(say: Say) -> Figures:
        case, rung = "rate/z2-5x5x5", Rung("5x5x5", 97, 20, SAMPLED, 3.0)
        smaller = resolve("4x5x5-r73-mod2")[0]
        pool = bench.pool("5x5x5", "Z2", 97, lambda: ladder(bench, case, [smaller], [rung], say))
        return rate(bench, pool, Policy(plus_after=50_000), 20_000, say, room=112 - 97)

    def rate_zt(say: Say) -> Figures:
        return rate(bench, mid("4x4x4", 60, True), Policy(plus_after=50_000), 40_000, say, ternary=True, room=4)

    def z2_345(say: Say) -> Figures:
        return times(bench, "time/z2-3x4x5-47", [naive("3x4x5")], 47, bench.seeds(5), 30, 100, say)

    small, large = biased("4x4x4:tri-left", 22, 12), biased("5x5x5:tri-left", 44, 19)

    def tri_4(say: Say) -> Figures:
        return triangular(bench, "time/tri-4", [naive("4x4x4:tri-left")], small, 5, 10, say)

    def tri_5(say: Say) -> Figures:
        policy = setting_for(parse_target("4x4x4:tri-left"), cost="full").policy
        fleet = bench.fleet([naive("4x4x4:tri-left")], policy, 999)
        pool = search_until(fleet, small, steps=40_000, seconds=20, count=TRIANGULAR_POOL, linger=15, say=say).schemes
        say(f"{len(pool)} starts")
        target = parse_target("5x5x5:tri-left")
        return triangular(bench, "time/tri-5", [bordered(scheme, target) for scheme in pool], large, 30, 150, say)

    def c3_555(say: Say) -> Figures:
        case, kind = "time/c3-5x5x5-93", {"symmetric": True}
        return times(bench, case, [naive("5x5x5", "flip-c3")], 93, bench.seeds(2), 30, 30, say, linger=1.0, kind=kind)

    def down(say: Say) -> Figures:
        """4x5x5:76 from what is left of a ternary 5x5x5:93 without one index."""
        symmetric = bench.pool("5x5x5", "Z2", 93, lambda: c3_555(say))
        lifted = [one for one in (lift(scheme).scheme for scheme in symmetric[:4]) if one and one.ternary]
        if not lifted:
            raise PlanError("none of the first four 5x5x5:93 has a ternary lift to start from")
        rungs = [Rung("4x5x5", 76, 20, 16, 1.0), Rung("4x4x5", 61, 15, 16, 1.0)]
        starts = [cut(rolled(one, by), parse_target("4x5x5")) for one in lifted for by in range(5)]
        return ladder(bench, "ladder/zt-down", starts, rungs, say, ternary=True)

    square = resolve("strassen*strassen")[0]  # no flips at all: a plus comes first
    exact = (Bar("exact", SAMPLED),)
    yield Case("gate/z2", lambda say: gate(bench, square, {}, room=15), 10, exact)
    yield Case("gate/zt", lambda say: gate(bench, square, {"ternary": True}, room=15), 12, exact)
    yield Case("gate/c3", lambda say: gate(bench, naive("5x5x5", "flip-c3"), {"symmetric": True}, room=9), 12, exact)
    reverse = naive("6x6x6", "flip-c3z2")
    yield Case("gate/c3z2", lambda say: gate(bench, reverse, {"reversible": True}, room=9), 14, exact)
    yield Case("gate/half", lambda say: gate(bench, naive("4x4x4:tri-left"), {}, "full"), 10, exact)
    yield Case("rate/z2-4x4x4", rate_444, 6, (Bar("gflips", 40), *exact))
    yield Case("rate/z2-5x5x5", rate_555, 6, (Bar("gflips", 13), *exact))
    yield Case("rate/zt-4x4x4", rate_zt, 8, (Bar("gflips", 22), *exact))
    for form in FORMS:
        yield Case(f"rate/{form}", partial(form_rate, bench, form), 6, exact)
    yield Case("walkers/z2-4x4x4-47", lambda say: crowds(bench, 47, 8.0, say), 40)
    yield Case("time/z2-4x4x4-47", z2_47, 30, (Bar("hits", 10), Bar("worst", 10, True), Bar("median", 2.5, True)))
    yield Case("time/z2-3x4x5-47", z2_345, 45, (Bar("hits", 4), Bar("worst", 30, True)))
    name = "settings/z2-3x4x5"
    yield Case(name, lambda say: settings(bench, name, naive("3x4x5"), 47, 7.0, say), 36)
    ladder_bars = (Bar("4x4x5:60", 10, True), Bar("4x5x5:73", 30, True), Bar("5x5x5:96", 60, True))
    yield Case("ladder/z2", z2_ladder, 45, ladder_bars)
    yield Case("time/zt-4x4x4-49", zt_49, 30, (Bar("hits", 5), Bar("worst", 30, True)))
    yield Case("time/tri-4", tri_4, 8, (Bar("hits", 5), Bar("worst", 5, True)))
    yield Case("time/tri-5", tri_5, 70, (Bar("hits", 5), Bar("worst", 30, True)))
    yield Case("time/c3-5x5x5-93", c3_555, 35, (Bar("hits", 1),))
    yield Case("ladder/zt", zt_ladder, 45, (Bar("4x4x5:61", 60, True), Bar("4x5x5:76", 60, True)))
    yield Case("ladder/zt-down", down, 40, (Bar("4x5x5:76", 60, True),))


SUITE = Suite(
    "search_gpu",
    "flips a second and seconds to a rank of the walkers on a GPU; --sample is their number",
    cases,
    ("gflips", "walkers", "hits", "tries", "median", "worst", "exact"),
    ("search/flipgraph/gpu", "search/improve", "search/format_moves", "workbench/bench/walk_session.py"),
)
