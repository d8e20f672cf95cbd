"""The flip walk of every kind: flips, reductions where possible, plus after stagnation, restart when trapped."""

from __future__ import annotations

import numpy as np

from ..terms.bits import compiled, next_draw, scalar_code
from .constraints import BEST_FULL, FULL
from .elements import load
from .flips import FLIP, GAIN, NO_PARTNER, NONE, REDUCIBLE
from .moves import count_full, plus, reduce, reduce_dependent, try_flip
from .policy import MISS_LIMIT, PolicyNumbers
from .slots import BEST, FLIPS, MISSES, RANK, SINCE, STEPS, TRAPPED, WALK_BEST, WALK_STEPS, WordArena


@compiled(internal=True)
def standing(s: WordArena, policy: PolicyNumbers) -> int:
    """Return the quantity that the walk minimises: rank plus the number of full products beyond the policy's limit."""
    rank = s.counters[RANK]
    if len(s.kind.guard) > 1 and policy.full >= 0:
        rank += max(0, np.int64(s.guard[FULL]) - policy.full)
    return rank


@compiled(internal=True)
def record(s: WordArena, policy: PolicyNumbers) -> None:
    """Update the counters after a new lowest rank of the walk, and store the terms if they are the best of all."""
    if s.counters[RANK] < s.counters[WALK_BEST]:
        s.counters[WALK_BEST] = s.counters[RANK]
        s.counters[WALK_STEPS] = 0
        s.counters[TRAPPED] = 0
        s.counters[SINCE] = 0
    count_full(s)
    now = standing(s, policy)
    best = now < s.counters[BEST]
    if len(s.kind.guard) > 1:
        best |= now == s.counters[BEST] and s.guard[FULL] < s.guard[BEST_FULL]
    if best:
        keep(s, policy)


@compiled(internal=True)
def keep(s: WordArena, policy: PolicyNumbers) -> None:
    """Store the current terms as the best."""
    s.counters[BEST] = standing(s, policy)
    s.guard[BEST_FULL] = s.guard[FULL]
    for t in range(len(s.x)):  # word by word: slice assignment would allocate a temporary
        s.best[t] = s.x[t]


@compiled(internal=True)
def unblock(s: WordArena, policy: PolicyNumbers, trapped: bool) -> None:
    """Leave a stagnating region: reduce by a linear dependence, else make a plus, else return to the start."""
    s.counters[SINCE] = 0
    s.counters[MISSES] = 0
    if reduce_dependent(s):
        reduce(s)
        return
    if trapped:
        s.counters[TRAPPED] += 1
    if s.counters[TRAPPED] > policy.trap or s.counters[WALK_STEPS] > policy.restart_after:
        load(s, s.start)
    elif s.counters[RANK] < s.counters[WALK_BEST] + policy.margin and plus(s):
        reduce(s)
    elif trapped:
        load(s, s.start)


@compiled(nogil=True)
def advance(s: WordArena, policy: PolicyNumbers, goal: int, steps: int) -> None:
    """Walk `steps` steps, or until the best rank is at most `goal`; a step is one draw."""
    scalar_code()
    rng, best = s.rng[0], s.counters[BEST]
    since, misses, flips, done, noted = s.counters[SINCE], s.counters[MISSES], 0, 0, 0
    x, buckets, active, guard = s.x, s.buckets, s.active, s.guard
    while done < steps and best > goal:
        done += 1
        since += 1
        rng = next_draw(rng)
        event = try_flip(s.kind, x, buckets, active, guard, rng)
        flips += event >= FLIP
        misses = misses + 1 if event == NO_PARTNER else 0
        trapped = event == NONE or misses >= MISS_LIMIT
        if event >= GAIN or trapped or since >= policy.plus_after:
            s.rng[0] = rng
            s.counters[SINCE], s.counters[MISSES] = since, misses
            s.counters[STEPS] += done - noted
            s.counters[WALK_STEPS] += done - noted
            noted = done
            if event == REDUCIBLE:
                reduce(s)
            if trapped or since >= policy.plus_after:
                unblock(s, policy, trapped)
            record(s, policy)
            rng, best, since, misses = s.rng[0], s.counters[BEST], s.counters[SINCE], s.counters[MISSES]
    s.rng[0] = rng
    s.counters[SINCE], s.counters[MISSES] = since, misses
    s.counters[STEPS] += done - noted
    s.counters[WALK_STEPS] += done - noted
    s.counters[FLIPS] += flips


@compiled
def begin(s: WordArena, policy: PolicyNumbers) -> None:
    """Reset the walk to its start, also as the best terms; the random state continues."""
    load(s, s.start)
    count_full(s)
    keep(s, policy)
