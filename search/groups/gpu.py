"""Walks for groups of products on a GPU: a warp a walk, by the functions of `kernel` with the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..flipgraph.gpu.device import cuda_module
from ..flipgraph.gpu.lanes import WARP, on_lanes
from ..terms import bits, ternary_words
from ..terms.ternary import TernaryTerms
from . import kernel
from .kernel import Cooling, Costs, State
from .product_rank import InnerFormat
from .walk import cooling_of, costs_of, state_of, terms_of

WARPS = 4
"""Walks of a block."""

RESIDENT = 12
"""Most blocks of a multiprocessor: of 4, 6, 8 and 12 the last did the most walks a second on an H200, though a thread
has 40 registers then in place of 128."""

SHARED, TERM_BYTES = 200 * 1024, 3 * 8 + 8 + 1
"""Bytes of a multiprocessor's shared memory that walks take, and those of a term."""

SLOTS = 32
"""Walks have room for a multiple of so many terms, so that one kernel fits ranks that are near."""

BEST = 16
"""Number of walks whose result is looked at."""


def best_walks(
    gpu: int,
    starts: Sequence[TernaryTerms],
    inner: InnerFormat,
    rank: int,
    room: int,
    steps: int,
    seed: tuple[int, int],
) -> Iterator[tuple[int, TernaryTerms]]:
    """Walk on a GPU, as many walks as it holds; yield the BEST of their results, each with the number of its walk.

    Each starts at random as `fleet.walk` does; walk `i` stays at ranks up to `rank` plus `i` modulo `room`.
    """
    cuda, rng = cuda_module(), np.random.default_rng(seed)
    cooling = cooling_of(inner, max(rank + room - 1, *(start.rank for start in starts)), steps)
    slots = -(-cooling.limit // SLOTS) * SLOTS
    costs = costs_of(inner, starts[0].target.shape, slots)
    states = [state_of(start, inner, slots) for start in starts]
    with cuda.gpus[gpu]:
        number = _walks_at_once(slots)
        chosen = rng.integers(len(states), size=number)
        terms = np.stack([np.concatenate([state.x, state.signs[None]]) for state in states])[chosen]
        labels = np.stack([state.labels for state in states]).astype(np.int8)[chosen]
        numbers = np.stack([state.numbers for state in states])[chosen]
        held = [cuda.to_device(array) for array in (terms, labels, numbers)]
        given = (rank + np.arange(number) % room, rng.integers(1, 1 << 63, size=number, dtype=np.uint64), *costs)
        passed = [cuda.to_device(array) for array in (*given, np.array(cooling, dtype=np.float64))]
        _kernel(slots)[-(-number // WARPS), (WARP, WARPS)](*held, *passed)
        terms, labels, numbers = (array.copy_to_host() for array in held)
    order = np.lexsort((numbers[:, 0], numbers[:, 1]))
    for walk in order[numbers[order, 0] > 0][:BEST].tolist():
        state = State(terms[walk, :3], terms[walk, 3], labels[walk], numbers[walk])
        yield walk, terms_of(starts[0], state)


def _walks_at_once(slots: int) -> int:
    device = cuda_module().get_current_device()
    blocks = min(RESIDENT, SHARED // (WARPS * slots * TERM_BYTES + 1024))
    return int(device.MULTIPROCESSOR_COUNT) * blocks * WARPS


@lru_cache(maxsize=8)
def _kernel(slots: int) -> Any:
    """Return the kernel for walks of at most so many terms; numba.cuda compiles it at its first launch."""
    return cuda_module().jit(make_kernel(slots), launch_bounds=(WARP * WARPS, RESIDENT))


def make_kernel(slots: int) -> Callable[..., None]:
    """Return the function of the kernel."""
    cuda, walk = cuda_module(), on_lanes((bits, ternary_words, kernel))(kernel.walk)

    def groups_walk(terms, labels, numbers, ranks, seeds, prices, gains, axes, longer, p):
        shared_x = cuda.shared.array((WARPS, 3, slots), np.uint64)
        shared_signs = cuda.shared.array((WARPS, slots), np.uint64)
        shared_labels = cuda.shared.array((WARPS, slots), np.int8)
        own, rng = cuda.local.array(2, np.int64), cuda.local.array(1, np.uint64)
        lowest, held = cuda.local.array(2, np.int64), cuda.local.array(6, np.uint64)
        warp, lane = cuda.threadIdx.y, cuda.threadIdx.x
        n = cuda.blockIdx.x * WARPS + warp
        if n < terms.shape[0]:
            for t in range(lane, slots, WARP):
                for f in range(3):
                    shared_x[warp, f, t] = terms[n, f, t]
                shared_signs[warp, t], shared_labels[warp, t] = terms[n, 3, t], labels[n, t]
            for place in range(6):
                held[place] = longer[place]  # in registers
            own[0], own[1], lowest[0], lowest[1], rng[0] = numbers[n, 0], 0, 0, 0, seeds[n]
            cuda.syncwarp()
            state = State(shared_x[warp], shared_signs[warp], shared_labels[warp], own)
            best = State(terms[n, :3], terms[n, 3], labels[n], lowest)
            steps = Cooling(int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4]), int(p[5]), p[6], p[7], p[8])
            reached = walk(state, best, Costs(prices, gains, axes, held), steps, ranks[n], rng)
            cuda.syncwarp()
            if lane == 0:
                numbers[n, 0] = lowest[0] if reached else 0
                numbers[n, 1] = lowest[1]

    return groups_walk
