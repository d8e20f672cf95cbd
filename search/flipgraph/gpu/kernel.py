"""One launch of a walker, and two implementations for a fleet: a GPU kernel and its twin on the processor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....jit import njit
from ....schemes_db.factor import IntArray
from ..policy import LONGEST, MISS_LIMIT, Policy
from .cells import make_cells
from .layout import MAX_CUBES, Form
from .moves import FLIP, NONE, make_moves
from .primitives import I32, U32, U64, KernelParts, gpu, processor

WALK_BEST, SINCE, MISSES, WALK_STEPS, STEPS, PLUSES, RESTARTS, GAIN_STEP = range(8)
"""Indices of a walker's counters: the lowest rank since the start, steps since an event, consecutive draws
without an active slot, steps since WALK_BEST; its total steps, pluses and restarts, and the step of the
last improvement of its score."""

COUNTERS = 8

STARTS, PLUS_AFTER, MARGIN, RESTART_AFTER, TRAP_RANK, RANK_WEIGHT, COST_WEIGHT = range(7)
"""Indices of the parameters of the kernel."""


def numbers_of(policy: Policy, starts: int) -> IntArray:
    """Return (7,): the parameters in the order above; `starts` is the number of schemes that a restart draws from."""
    events = (policy.plus_after, policy.margin, min(policy.restart_after, LONGEST), policy.trap_rank)
    return np.array([starts, *events, policy.rank_weight, policy.cost_weight], dtype=np.int64)


def thresholds_of(policy: Policy) -> npt.NDArray[np.uint32]:
    """Return (16,): the acceptance probability times 65536 of flips that raise the cost by 0 to 15."""
    return np.array([min(65536 * policy.chance**rise, 65536) for rise in range(16)]).astype(np.uint32)


def make_transfer(parts: KernelParts) -> None:
    """Add the functions that load a state from global memory, and store it."""
    jit, form, is_live, weight = parts.jit, parts.form, parts.is_live, parts.weight
    taken, active_at = parts.taken, parts.active_at
    threads, masks, room = U64(form.threads), form.masks, 32 * form.masks
    near, plane = form.near, form.plane
    signs, near_signs = form.signs, near * plane + 3 * masks
    sign_words = masks if form.ternary else 0
    cubes, cube_words = form.cubes, 2 * MAX_CUBES if form.symmetric else 0

    @jit
    def load(fast, far, lane, own, source, base):
        """Load a state and return its rank; all slots become active, as steps clear stale bits."""
        for w in range(near * plane):
            fast[U64(w) * threads + lane] = source[base + U64(w)]
        for w in range(near * plane, signs):
            far[own + U64(w)] = source[base + U64(w)]
        for w in range(sign_words):
            fast[U64(near_signs + w) * threads + lane] = source[base + U64(signs + w)]
        for w in range(cube_words):
            far[own + U64(cubes + w)] = source[base + U64(cubes + w)]
        for n in range(3 * masks):
            f, q = U32(n // masks), U32(n % masks)
            fast[active_at(lane, f, q)] = taken(fast, lane, f, q)
        rank = I32(0)
        for n in range(room):
            if is_live(fast, far, lane, own, U32(n)):
                rank = I32(rank + weight(fast, far, lane, own, U32(n)))
        for n in range(cube_words // 2):
            at = own + U64(cubes + 2 * n)
            if far[at] != U32(0) or far[at + U64(1)] != U32(0):
                rank = I32(rank + I32(1))
        return rank

    @jit
    def store(fast, far, lane, own, goal, base):
        for w in range(near * plane):
            goal[base + U64(w)] = fast[U64(w) * threads + lane]
        for w in range(near * plane, signs):
            goal[base + U64(w)] = far[own + U64(w)]
        for w in range(sign_words):
            goal[base + U64(signs + w)] = fast[U64(near_signs + w) * threads + lane]
        for w in range(cube_words):
            goal[base + U64(cubes + w)] = far[own + U64(cubes + w)]


def make_launch(parts: KernelParts) -> Any:
    """Create the function that advances one walker by a number of steps; `arrays` are those of a kernel."""
    for make in (make_cells, make_moves, make_transfer):
        make(parts)
    words, biased = parts.form.words, parts.kind_of_cost != ""
    next_draw, step, plus, total_cost = parts.next_draw, parts.step, parts.plus, parts.total_cost
    load, store = parts.load, parts.store

    @parts.jit
    def launch(fast, lane, walker, arrays, steps):
        """Advance a walker from its own state or, if `origin` is not negative, from an entry of the pool."""
        state, pool, best, score, flips, counts, draws, origin, goals, halves, accept, policy = arrays
        own = U64(walker) * U64(words)
        entry = origin[walker]
        if entry >= I32(0):
            rank = load(fast, state, lane, own, pool, U64(entry) * U64(words))
            walk_best, since, misses, walk_steps = rank, I32(0), I32(0), I32(0)
        else:
            rank = load(fast, state, lane, own, state, own)
            walk_best, since = I32(counts[walker, WALK_BEST]), I32(counts[walker, SINCE])
            misses, walk_steps = I32(counts[walker, MISSES]), I32(counts[walker, WALK_STEPS])
        goal, starts = I32(goals[walker]), U32(policy[STARTS])
        plus_after, margin = I32(policy[PLUS_AFTER]), I32(policy[MARGIN])
        restart_after, trap_rank = I32(policy[RESTART_AFTER]), I32(policy[TRAP_RANK])
        rank_weight, cost_weight = I32(policy[RANK_WEIGHT]), I32(policy[COST_WEIGHT])
        cost = I32(0)
        if biased:
            cost = total_cost(fast, state, lane, own, halves)
        lowest = I32(score[walker])
        if entry >= I32(0):
            lowest = I32(rank * rank_weight + cost * cost_weight)
            store(fast, state, lane, own, best, own)
        rng = draws[walker]
        made, done, pluses, restarts, gain = I32(0), I32(0), I32(0), I32(0), I32(-1)
        while done < steps and lowest > goal:
            done = I32(done + I32(1))
            since, walk_steps = I32(since + I32(1)), I32(walk_steps + I32(1))
            rng = next_draw(rng, walker)
            event, change, rise = step(fast, state, lane, own, halves, accept, U32(rng >> U64(32)))
            if event == I32(FLIP):
                made = I32(made + I32(1))
            misses = I32(misses + I32(1)) if event == I32(NONE) else I32(0)
            rank, cost = I32(rank + change), I32(cost + rise)
            stuck = misses > I32(MISS_LIMIT)
            if stuck or since >= plus_after:
                since, misses = I32(0), I32(0)
                if (stuck and (rank <= trap_rank or rank >= walk_best + margin)) or walk_steps >= restart_after:
                    rng = next_draw(rng, walker)
                    place = U64(U64(U64(rng >> U64(32)) * U64(starts)) >> U64(32))
                    rank = load(fast, state, lane, own, pool, U64(place * U64(words)))
                    walk_best, walk_steps, restarts = rank, I32(0), I32(restarts + I32(1))
                elif rank < walk_best + margin:
                    rise, rng = plus(fast, state, lane, own, rng, walker)
                    rank = I32(rank + rise)
                    if rise > I32(0):
                        pluses = I32(pluses + I32(1))
                if biased:
                    cost = total_cost(fast, state, lane, own, halves)
            if rank < walk_best:
                walk_best, walk_steps, since = rank, I32(0), I32(0)
            now = I32(rank * rank_weight + cost * cost_weight)
            if now < lowest:
                lowest, gain = now, done
                store(fast, state, lane, own, best, own)
        store(fast, state, lane, own, state, own)
        draws[walker] = rng
        score[walker] = lowest
        flips[walker] = made
        origin[walker] = I32(-1)
        before = counts[walker, STEPS]
        counts[walker, WALK_BEST], counts[walker, SINCE] = walk_best, since
        counts[walker, MISSES], counts[walker, WALK_STEPS] = misses, walk_steps
        counts[walker, STEPS] = before + done
        counts[walker, PLUSES] += pluses
        counts[walker, RESTARTS] += restarts
        if gain >= I32(0):
            counts[walker, GAIN_STEP] = before + gain

    return launch


@lru_cache(maxsize=32)
def twin(form: Form, cost: str) -> Callable[..., Any]:
    """Create the kernel for the processor, which runs the threads sequentially.

    Its arguments: `fast` (words of a block,) uint32 scratch, the number of walkers, then the arrays and steps of a
    launch.
    """
    launch, threads = make_launch(processor(form, cost)), form.threads

    @njit(_nrt=False, variant=f"{form} {cost}")
    def run(fast, walkers, arrays, steps):
        for walker in range(walkers):
            launch(fast, U64(walker % threads), U32(walker), arrays, I32(steps))

    return run


def make_kernel(form: Form, cost: str) -> Callable[..., Any]:
    """Create the kernel for the GPU, uncompiled: one thread a walker."""
    from .device import cuda_module

    cuda = cuda_module()
    launch, threads = make_launch(gpu(form, cost)), form.threads

    def walk(walkers, state, pool, best, score, flips, counts, draws, origin, goals, halves, accept, policy, steps):
        fast = cuda.shared.array(0, dtype=U32)
        lane = U64(cuda.threadIdx.x)
        walker = U32(U32(cuda.blockIdx.x) * U32(threads) + U32(cuda.threadIdx.x))
        if walker < U32(walkers):
            arrays = (state, pool, best, score, flips, counts, draws, origin, goals, halves, accept, policy)
            launch(fast, lane, walker, arrays, I32(steps))

    return walk
