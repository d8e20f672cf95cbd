"""Flip walks on a CPU: flips a second of every kind of walk, and the time to known ranks as a user searches.

Rates are of one walk without plus transitions, pinned to one core, in CPU time. A time to a rank is
`Result.seconds` of one call of `find`, which begins after the walks are compiled.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import VerificationError
from ....schemes_db import parse_target
from ....search import Policy, find, make_walker, pack_start
from ....verify import certify
from ..case import Bar, Case, Figures, Options, Say, at_least
from ..table import rows

STARTS = Path(__file__).parents[1] / "data" / "search_starts.json"
"""Schemes that our own walks found; each says how."""

ROUND_SECONDS = 5.0
ROUNDS = 5


RATES = rows("search_rates")
"""Walks of so many terms at the start (none: naive), and the least M flips a second."""

CLIMBS = rows("search_times")
"""Searches for a rank: target, seeds, seconds, and other arguments of `find`; those that are empty have their default.

Over Z walks are modulo 2, and their finds lift to -1, 0, 1.
"""


def cases(options: Options) -> Iterator[Case]:
    rounds = options.rounds or ROUNDS
    for row in RATES:
        key = f"rate {row.target} {row.walk}{f' R{row.rank}' if row.rank else ''}"
        yield Case(key, partial(_rate, row, rounds), at_least(mflips=row.bar))
    for climb in CLIMBS:
        bars = (Bar("seconds", climb.limit, at_most=True),)
        for seed in range(options.seed + 1, options.seed + 1 + min(options.sample or climb.seeds, climb.seeds)):
            key = f"time {climb.target}:{climb.rank} {climb.walk or climb.ring} seed {seed}"
            yield Case(key, partial(_time, climb, seed), bars)


def _start(row: Any) -> Any:
    target = parse_target(row.target)
    terms: Any = pack_start(row.walk, target)
    if row.rank:
        found = {(one["target"], one["walk"]): one["words"] for one in json.loads(STARTS.read_text())}
        terms = type(terms)(target, np.array(found[row.target, row.walk], dtype=np.uint64))
    certify(terms.to_scheme())
    return terms


def _rate(row: Any, rounds: int, say: Say) -> Figures:
    """Flips a CPU second, over rounds of `ROUND_SECONDS`; what the walk stands at is checked at the end."""
    still = Policy(
        plus_after=1 << 60, restart_after=1 << 60, trap=1 << 60, chance=0.15 if row.walk == "flip-half" else 1.0
    )
    start = _start(row)
    with _one_core():
        walker = make_walker(row.walk, start, 1, 0, still)
        walker.advance(0, 1_000_000)
        chunk, rates = 1_000_000, []
        for _ in range(rounds):
            flips, steps, began = walker.flips, walker.steps, time.process_time()
            while (spent := time.process_time() - began) < ROUND_SECONDS:
                walker.advance(0, chunk)
            rates.append((walker.flips - flips) / spent / 1e6)
            say(f"{rates[-1]:.1f} M flips/s")
            shares = (walker.flips - flips) / max(walker.steps - steps, 1)
    certify(walker.terms().to_scheme())
    return {
        "mflips": statistics.median(rates),
        "rates": rates,
        "flips_per_step": shares,
        "start": start.rank,
        "rank": walker.rank,
    }


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """This process on one core, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _time(climb: Any, seed: int, say: Say) -> Figures:
    """One search; without the rank within the limit there are no `seconds`."""
    result = find(
        climb.target,
        rank=climb.rank,
        ring=climb.ring,
        seed=seed,
        seconds=climb.limit,
        walk=climb.walk or "",
        policy=None if climb.full is None else {"full": climb.full},
        jobs=2,
        on_event=lambda progress: say(f"rank {progress.rank} after {progress.seconds:.0f} s"),
    )
    for found in result.finds:
        if found.scheme.rank > climb.rank:
            raise VerificationError(f"a search for {climb.target}:{climb.rank} came back with rank {found.scheme.rank}")
    figures = {"rank": min(result.ranks), "flips": result.flips, "ranks": str(dict(sorted(result.ranks.items())))}
    if not result.finds:
        return figures
    return {"seconds": result.seconds, "ternary": all(found.scheme.ternary for found in result.finds), **figures}
