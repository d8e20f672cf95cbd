"""Annealing of arrangements on a GPU: a warp an arrangement, by the functions of `kernel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...schemes_db.factor import IntArray
from ..flipgraph.gpu.device import cuda_module
from ..flipgraph.gpu.lanes import WARP, on_lanes
from ..terms import bits, ternary_words
from ..terms.words import Words
from . import dual, kernel, span
from .dual import Dual
from .kernel import CANDIDATES, Candidates
from .span import BUCKETS, CHANGES, GAIN, InnerProducts, Span, room_for, words_of

WARPS, RESIDENT = 4, 4
"""Arrangements of a block, and most blocks of a multiprocessor, so that a thread has 128 registers."""

SHARED = 200 * 1024
"""Bytes of a multiprocessor's shared memory that arrangements take."""


class Chains(NamedTuple):
    """Arrangements that are annealed together; the first dimension is that of the C chains.

    Attributes:
        rows, cols, variants: (C, N) as `InnerProducts`.
        states: (C,) states of the random draws.
        made: (C,) steps of the annealing so far; -1 where random inner products are to be drawn first.
        lacks: (C,) dimensions that their space lacks.
        indices: (C,) log |det| of the forms.
    """

    rows: Words
    cols: Words
    variants: IntArray
    states: Words
    made: IntArray
    lacks: IntArray
    indices: npt.NDArray[np.float64]


def shared_bytes(size: int, count: int) -> int:
    """Return the bytes of shared memory of a chain with so many inner products."""
    words, room = words_of(size), room_for(count)
    numbers = 3 * room + count + room + BUCKETS + count
    return 8 * (size * words + words + 3 * CHANGES + 2 * count + 2 * size + 3 * CANDIDATES) + 2 * numbers + count


def chains_at_once(size: int, count: int) -> int:
    """Return how many chains a GPU holds at a time."""
    blocks = min(RESIDENT, SHARED // (WARPS * (shared_bytes(size, count) + 256) + 1024))
    return int(cuda_module().get_current_device().MULTIPROCESSOR_COUNT) * max(blocks, 1) * WARPS


class OnGpu:
    """Chains on a GPU.

    Args:
        gpu: its number.
        p, n, count: sides of C, and the number of inner products.
        seed: the random inner products depend on it.
    """

    def __init__(self, gpu: int, p: int, n: int, count: int, seed: tuple[int, ...]) -> None:
        self._gpu, self._p, self._n, self._count = gpu, p, n, count
        cuda, size = cuda_module(), p * n
        with cuda.gpus[gpu]:
            number = chains_at_once(size, count)
            self._functionals = cuda.device_array((number, size, size), dtype=np.float64)
        states = np.random.default_rng(seed).integers(1, 1 << 63, size=number, dtype=np.uint64)
        rows, cols = np.zeros((2, number, count), dtype=np.uint64)
        made, lacks = np.full((2, number), -1, dtype=np.int64)
        variants = np.zeros((number, count), dtype=np.int8)
        self.chains = Chains(rows, cols, variants, states, made, lacks, np.zeros(number))  # type: ignore[arg-type]  # int8

    def advance(self, steps: int, length: int, cooling: tuple[float, float, float]) -> None:
        """Anneal all for `steps` steps of a schedule of `length`, see `kernel.anneal`."""
        cuda = cuda_module()
        with cuda.gpus[self._gpu]:
            held = [cuda.to_device(array) for array in self.chains]
            numbers = cuda.to_device(np.array((steps, length, *cooling), dtype=np.float64))
            blocks = -(-len(self.chains.made) // WARPS)
            _kernel(self._p, self._n, self._count)[blocks, (WARP, WARPS)](*held, self._functionals, numbers)
            self.chains = Chains(*(array.copy_to_host() for array in held))

    def taken(self, rounding: float, length: int) -> list[tuple[Words, Words, IntArray]]:
        """Return the inner products of chains that span all with |log |det|| below `rounding`.

        They begin anew, as do those whose annealing of `length` steps is over.
        """
        rows, cols, variants, _, made, lacks, indices = self.chains
        arrived = (lacks == 0) & (np.abs(indices) < rounding)
        made[arrived | (made >= length)] = -1
        return [(rows[c].copy(), cols[c].copy(), variants[c].astype(np.int64)) for c in np.flatnonzero(arrived)]


@lru_cache(maxsize=4)
def _kernel(p: int, n: int, count: int) -> Any:
    """Return the kernel; numba.cuda compiles it at its first launch."""
    return cuda_module().jit(make_kernel(p, n, count), launch_bounds=(WARP * WARPS, RESIDENT))


def make_kernel(p: int, n: int, count: int) -> Callable[..., None]:
    """Return the function of the kernel for forms p x n and so many inner products."""
    cuda = cuda_module()
    on_warp = on_lanes((bits, ternary_words, span, dual, kernel))
    anneal, randomize = on_warp(kernel.anneal), on_warp(span.randomize)
    size, words, room, gains = p * n, words_of(p * n), room_for(count), GAIN
    lines, forms = size + 1, count + room

    def triples(rows, cols, variants, states, made, lacks, indices, functionals, numbers):
        shared_words = cuda.shared.array((WARPS, lines, words), np.uint64)
        shared_vectors = cuda.shared.array((WARPS, 2, count), np.uint64)
        shared_variants = cuda.shared.array((WARPS, count), np.int8)
        triples = cuda.shared.array((WARPS, 3, room), np.int16)
        places = cuda.shared.array((WARPS, forms), np.int16)
        heads = cuda.shared.array((WARPS, BUCKETS), np.int16)
        nexts = cuda.shared.array((WARPS, count), np.int16)
        changes = cuda.shared.array((WARPS, 3, CHANGES), np.uint64)
        drawn = cuda.shared.array((WARPS, 2, CANDIDATES), np.uint64)
        drawn_variants = cuda.shared.array((WARPS, 2, CANDIDATES), np.int8)
        energies = cuda.shared.array((WARPS, CANDIDATES), np.float64)
        columns = cuda.shared.array((WARPS, 2, size), np.float64)
        counts, firsts = cuda.local.array(2, np.int64), cuda.local.array(gains, np.int64)
        values, kept = cuda.local.array(words, np.uint64), cuda.local.array((gains, words), np.uint64)
        added, minor = cuda.local.array((2, gains), np.uint64), cuda.local.array((gains, gains), np.float64)
        rng, own = cuda.local.array(1, np.uint64), cuda.local.array(1, np.uint64)
        warp, lane = cuda.threadIdx.y, cuda.threadIdx.x
        c = cuda.blockIdx.x * WARPS + warp
        if c < made.shape[0]:
            vectors = shared_vectors[warp]
            for i in range(lane, count, WARP):
                vectors[0, i], vectors[1, i], shared_variants[warp, i] = rows[c, i], cols[c, i], variants[c, i]
            rng[0] = states[c]
            cuda.syncwarp()
            of = InnerProducts(vectors[0], vectors[1], shared_variants[warp], p, n)
            space = Span(
                shared_words[warp, 1:],
                shared_words[warp, 0],
                triples[warp],
                places[warp],
                heads[warp],
                nexts[warp],
                changes[warp],
                counts,
                values,
                kept,
                firsts,
                added,
            )
            among = Candidates(
                drawn[warp, 0], drawn[warp, 1], drawn_variants[warp, 0], drawn_variants[warp, 1], energies[warp], own
            )
            column = columns[warp]
            basis = Dual(functionals[c], functionals[c], column[0], column[1], column[1], minor)
            done = made[c]
            if done < 0:
                randomize(rng, of)
                cuda.syncwarp()
                done = 0
            steps, length = min(int(numbers[0]), int(numbers[1]) - done), int(numbers[1])
            cooling = numbers[2], numbers[3], numbers[4]
            more, lack, index = anneal(rng, of, space, among, basis, done, steps, length, cooling)
            cuda.syncwarp()
            for i in range(lane, count, WARP):
                rows[c, i], cols[c, i], variants[c, i] = vectors[0, i], vectors[1, i], shared_variants[warp, i]
            if lane == 0:
                states[c], made[c], lacks[c], indices[c] = rng[0], done + more, lack, index

    return triples
