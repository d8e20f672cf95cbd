"""The flip walk of every kind: flips, reductions in passing, plus after stagnation, restart when trapped."""

from __future__ import annotations

from .arena import (
    BEST,
    FLIPS,
    GAIN_STEP,
    MISSES,
    PLUSES,
    RANK,
    RESTARTS,
    SINCE,
    STEPS,
    TRAPPED,
    WALK_BEST,
    WALK_STEPS,
    Arena,
)
from .bits import compiled, next_draw, scalar_code
from .kinds import load, plus, reduce_dependent, settle, try_flip
from .moves import FLIP, HIT, MISS, NONE
from .packed import Words
from .policy import MISS_LIMIT, Policy


@compiled
def copy(source: Words, goal: Words) -> None:
    """Copy terms word by word: a slice would ask for a temporary."""
    for t in range(len(source)):
        goal[t] = source[t]


@compiled
def restart(s: Arena) -> None:
    """Go back to the start."""
    load(s.ring, s, s.start)
    s.tally[RESTARTS] += 1


@compiled
def record(s: Arena) -> None:
    """Note a rank that is new to the walk, and keep the terms if it is the lowest of all."""
    if s.tally[RANK] < s.tally[WALK_BEST]:
        s.tally[WALK_BEST] = s.tally[RANK]
        s.tally[WALK_STEPS] = 0
        s.tally[TRAPPED] = 0
        s.tally[SINCE] = 0
    if s.tally[RANK] < s.tally[BEST]:
        s.tally[BEST] = s.tally[RANK]
        s.tally[GAIN_STEP] = s.tally[STEPS]
        copy(s.x, s.best)


@compiled
def unblock(s: Arena, policy: Policy, trapped: bool) -> None:
    """What to do when flips lead nowhere: a linear dependence, else a plus, else the start."""
    s.tally[SINCE] = 0
    s.tally[MISSES] = 0
    if reduce_dependent(s.ring, s):
        settle(s.ring, s)
        return
    if trapped:
        s.tally[TRAPPED] += 1
    if s.tally[TRAPPED] > policy.trap or s.tally[WALK_STEPS] > policy.restart_after:
        restart(s)
    elif s.tally[RANK] < s.tally[WALK_BEST] + policy.margin and plus(s.ring, s):
        s.tally[PLUSES] += 1
        settle(s.ring, s)
    elif trapped:
        restart(s)


@compiled(nogil=True)
def advance(s: Arena, policy: Policy, goal: int, steps: int) -> None:
    """Walk for so many steps, or until the rank is at most `goal`; a step is one draw."""
    scalar_code()
    rng, rank = s.rng[0], s.tally[RANK]
    since, misses, flips, done, noted = s.tally[SINCE], s.tally[MISSES], 0, 0, 0
    x, buckets, active = s.x, s.buckets, s.active
    while done < steps and rank > goal:
        done += 1
        since += 1
        rng = next_draw(rng)
        event = try_flip(s.lanes, s.ring, x, buckets, active, rng)
        flips += event >= FLIP
        misses = misses + 1 if event == MISS else 0
        trapped = event == NONE or misses >= MISS_LIMIT
        if event == HIT or trapped or since >= policy.plus_after:
            s.rng[0] = rng
            s.tally[SINCE], s.tally[MISSES] = since, misses
            s.tally[STEPS] += done - noted
            s.tally[WALK_STEPS] += done - noted
            noted = done
            if event == HIT:
                settle(s.ring, s)
            if trapped or since >= policy.plus_after:
                unblock(s, policy, trapped)
            record(s)
            rng, rank, since, misses = s.rng[0], s.tally[RANK], s.tally[SINCE], s.tally[MISSES]
    s.rng[0] = rng
    s.tally[SINCE], s.tally[MISSES] = since, misses
    s.tally[STEPS] += done - noted
    s.tally[WALK_STEPS] += done - noted
    s.tally[FLIPS] += flips


@compiled
def rewind(s: Arena) -> None:
    """Forget the best and go back to the start; draws go on where they were."""
    restart(s)
    s.tally[BEST] = s.tally[RANK]
    copy(s.start, s.best)
