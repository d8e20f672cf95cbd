"""Costs of chains of levels on the CPU, computed together as arrays: all extensions of the best chains by depth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schemes_db.program import ProductKind, Program
from ..cpu.cost_model import CpuCostModel
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from ..request import Request
from .pool import LevelScheme, SchemePool
from .scheme_costs import STAGES, SchemeCosts, costs_of

BEAM = 12
"""Number of chains that are extended by another level."""

FASTEST = 8
"""Number of those that are selected by their own time; the others by their estimated time with a further level."""

GAIN_BELOW = 0.045
"""A further level on blocks of v = m k n operations reduces their time to about v^-GAIN_BELOW. The exponent is at most
1 - omega/3 = 0.073 for the best schemes of small grids (omega 2.78); the combines of the level cost part of that.
"""

MAX_DEPTH = 3

BATCHED, TASKS, LOOP, DEPTH_FIRST = "batched", "tasks", "loop", "depth-first"
METHODS = (BATCHED, TASKS, LOOP, DEPTH_FIRST)
"""The methods of levels: all sums and then all products, each by all threads or each by one thread; or one product of
the first level, or of every level, at a time in small buffers.
"""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Levels:
    """Schemes by level, outermost first; a `Source`. An entry may be two levels flattened into one."""

    levels: tuple[LevelScheme, ...]

    @cached_property
    def key(self) -> str:
        """See `Source`."""
        return "/".join(level.name for level in self.levels)

    @property
    def label(self) -> str:
        """See `Source`."""
        return " * ".join(level.label for level in self.levels)

    @cached_property
    def program(self) -> Program:
        """The nested program of all levels."""
        return nested_program(self.levels)


@dataclass(frozen=True)
class Chain(Levels):
    """Levels that are executed one within the other.

    `pool` and `places` locate the costs of the levels, if available: computing them requires reading the schemes.
    """

    pool: SchemePool | None = field(default=None, compare=False, repr=False)
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def costs(self) -> tuple[SchemeCosts, ...]:
        """The costs of every level."""
        if self.pool is None:
            return tuple(costs_of(level.scheme) for level in self.levels)
        return tuple(self.pool.costs[place] for place in self.places)


@lru_cache(maxsize=128)
def nested_program(levels: tuple[LevelScheme, ...]) -> Program:
    """Return the nested program of schemes by level: one object for equal levels, for memoization by identity."""
    *outer, program = (level.program for level in levels)
    for one in reversed(outer):
        program = one.nested({ProductKind.FULL: program})
    return program


@dataclass(frozen=True)
class ChainCosts:
    """Costs of chains of one depth as arrays: the accumulated costs of their levels, and the blocks at the bottom.

    Chain i is one of `heads` extended by one of the `entries` schemes; without entries, a head.
    `outer` is the rank of the first level. `batched` to `deep` are workspaces by method; `spent` to
    `spent_deep` seconds by method, without the products; `below` seconds of sums below the first level.
    """

    heads: tuple[tuple[int, ...], ...]
    entries: int
    outer: Array
    spent: Array
    count: Array
    sizes: tuple[Array, Array, Array]
    growth: Array
    batched: Array
    tasks: Array
    looped: Array
    deep: Array
    spent_loop: Array
    spent_deep: Array
    below: Array

    def chain(self, i: int) -> tuple[int, ...]:
        """Return the indices in the pool of chain i, outermost first."""
        return (*self.heads[i // self.entries], i % self.entries) if self.entries else self.heads[i]

    def at(self, places: Array) -> ChainCosts:
        """Return some of the chains."""
        m, k, n = (size[places] for size in self.sizes)
        return ChainCosts(
            tuple(self.chain(i) for i in places.tolist()),
            0,
            self.outer[places],
            self.spent[places],
            self.count[places],
            (m, k, n),
            self.growth[places],
            self.batched[places],
            self.tasks[places],
            self.looped[places],
            self.deep[places],
            self.spent_loop[places],
            self.spent_deep[places],
            self.below[places],
        )


@dataclass(frozen=True)
class DepthCosts:
    """The chains of one depth, and for every method seconds and bytes of workspace."""

    chains: ChainCosts
    methods: tuple[tuple[str, Array, Array], ...]


def cost_table(request: Request, model: CpuCostModel, pool: SchemeCosts) -> Sequence[DepthCosts]:
    """Return the costs of all chains to depth 3 on one matrix of a request; NaN if a rate was not measured."""
    chains, depths = start(request), []
    for depth in range(1, MAX_DEPTH + 1):
        chains = extended(chains, pool, request, model)
        depths.append(DepthCosts(chains, seconds_by_method(chains, request.dtype, model, depth)))
        if depth < MAX_DEPTH:
            method = depths[-1].methods[1 if model.threads > 1 else 0]
            chains = chains.at(promising(chains, method[1] - model.spin * (model.threads > 1)))
    return depths


def promising(chains: ChainCosts, seconds: Array) -> Array:
    """Return the indices of the BEAM chains to extend by another level: the fastest, and then those with the best
    estimate after extension.

    The larger the remaining blocks, the more a further level gains, so a chain of a small grid may end up ahead
    of a faster chain of a large one. Chains with equally many products are mostly one scheme in several
    orientations, so at most two of them are selected.
    """
    bm, bk, bn = chains.sizes
    extended_seconds = seconds * (bm * bk * bn) ** -GAIN_BELOW
    found: list[int] = []
    alike = Counter[float]()
    for values, most, most_alike in ((seconds, FASTEST, 2), (extended_seconds, BEAM, 1)):
        for index in smallest(values, 6 * BEAM).tolist():
            count = float(chains.count[index])
            if len(found) < most and alike[count] < most_alike:
                alike[count] += 1
                found.append(index)
    return np.array(found)


def seconds_by_method(
    chains: ChainCosts, dtype: str, model: CpuCostModel, depth: int
) -> tuple[tuple[str, Array, Array], ...]:
    """Return (method, seconds, workspace) of every method available to such chains."""
    whole, tasks = model.gemm_modes(dtype, *chains.sizes, chains.count)
    shared = model.overlap(chains.below, "whole")
    methods = [(BATCHED, chains.spent + whole + shared, chains.batched)]
    if model.threads > 1:
        # Products beyond a multiple of the threads are executed by all of them together.
        rest = chains.outer % model.threads / chains.outer
        seconds = chains.spent + (1 - rest) * tasks + rest * (whole + shared) + model.spin
        methods.append((TASKS, seconds, chains.tasks))
    methods.append((LOOP, chains.spent_loop + whole, chains.looped))
    if depth > 1:
        methods.append((DEPTH_FIRST, chains.spent_deep + whole, chains.deep))
    return tuple(methods)


def smallest(values: Array, count: int) -> Array:
    """Return the indices of the least values, in increasing order, ties by position; NaN counts as the largest."""
    if len(values) > count:
        limit = np.partition(values, count - 1)[count - 1]
        places = np.flatnonzero(~(values > limit))
    else:
        places = np.arange(len(values))
    return places[np.argsort(values[places], kind="stable")[:count]]


def start(request: Request) -> ChainCosts:
    """Return the chain without levels."""
    one, none = np.ones(1), np.zeros(1)
    m, k, n = (size * one for size in request.shape)
    return ChainCosts(((),), 0, one, none, one, (m, k, n), one, *[none] * 7)


def extended(chains: ChainCosts, costs: SchemeCosts, request: Request, model: CpuCostModel) -> ChainCosts:
    """Return every chain extended by every scheme."""
    item, threads = dtype_of(request.dtype).numpy.itemsize, model.threads
    m, k, n = (size[:, None] for size in chains.sizes)
    count = chains.count[:, None]
    bm, bk, bn = costs.block(m, k, n)
    work = costs.combines(request.dtype, bm, bk, bn)
    if request.static == "B":
        work = work[0], work[2]
    combine = count * sum(model.combine(moved, flops) for flops, moved in work)
    level = combine + count * model.overhead(costs.rank, 1)
    left, right, product = bm * bk, bk * bn, bm * bn
    own = item * (costs.made[0] * left + costs.made[1] * right + costs.rank * product)
    buffers = item * (left + right + product)
    # Sums one at a time read every term again; a product is read for, and added to, every block that it contributes to.
    nu, nv, nw = costs.nnz
    moved = (nu + costs.rank) * left + (nv + costs.rank) * right + (costs.rank + 2 * nw) * product
    looped = count * model.copy(item * moved)
    first = not chains.heads[0]
    entries = len(costs.rank)
    return ChainCosts(
        chains.heads,
        entries,
        costs.rank if first else np.repeat(chains.outer, entries),
        (chains.spent[:, None] + level).ravel(),
        (count * costs.rank).ravel(),
        (bm.ravel(), bk.ravel(), bn.ravel()),
        (chains.growth[:, None] * costs.growth).ravel(),
        (chains.batched[:, None] + own).ravel(),
        (chains.tasks[:, None] + (own if first else threads * own)).ravel(),
        (chains.looped[:, None] + (buffers if first else own)).ravel(),
        (chains.deep[:, None] + buffers).ravel(),
        (chains.spent_loop[:, None] + (looped if first else level)).ravel(),
        (chains.spent_deep[:, None] + looped).ravel(),
        (chains.below[:, None] + (0 * combine if first else combine)).ravel(),
    )


def chain_stages(
    costs: Sequence[SchemeCosts], labels: Sequence[str], request: Request, model: CpuCostModel, method: str
) -> list[Stage]:
    """Return the stages of a chain of levels; their seconds add up to those of `cost_table`, times the items."""
    chains, stages = start(request), []
    sizes, count, items = request.shape, 1.0, float(math.prod(request.batch))
    for depth, (one, label) in enumerate(zip(costs, labels, strict=True)):
        single = SchemeCosts.stacked([one])
        before = chains
        chains = extended(chains, single, request, model).at(np.zeros(1, np.int64))
        looped = method == DEPTH_FIRST or (method == LOOP and not depth)
        bm, bk, bn = (int(size[0]) for size in single.block(*sizes))
        work = [(float(f[0]), float(b[0])) for f, b in single.combines(request.dtype, bm, bk, bn)]
        for name, (flops, moved) in zip(STAGES, work, strict=True):
            if name == "Combine B" and request.static == "B" and not looped:
                continue
            seconds = None if looped else items * count * float(model.combine(moved, flops))
            stages.append(Stage(name, items * count * flops, items * count * moved, seconds, level=label))
        if looped:
            spent = chains.spent_deep - before.spent_deep if method == DEPTH_FIRST else chains.spent_loop
            share = items * float(spent[0]) / len(STAGES)
            stages[-len(STAGES) :] = [replace(stage, seconds=share) for stage in stages[-len(STAGES) :]]
        else:
            seconds = items * count * model.overhead(float(one.rank), 1)
            stages.append(Stage("calls", 0.0, 0.0, seconds, level=label))
        sizes = bm, bk, bn
        count *= float(one.rank)
    methods = seconds_by_method(chains, request.dtype, model, len(costs))
    found = {name: float(seconds[0]) for name, seconds, _ in methods}
    products = _products(request, sizes, items * count)
    rest = items * found[method] - sum(stage.seconds or 0.0 for stage in stages)
    return [*stages, replace(products, seconds=rest)]


def _products(request: Request, sizes: tuple[int, int, int], count: float) -> Stage:
    m, k, n = sizes
    kind = dtype_of(request.dtype)
    flops = 2.0 * kind.parts**2 * count * m * k * n
    moved = count * (m * k + k * n + m * n) * kind.numpy.itemsize
    return Stage(f"{count:.0f} products {m}x{k}x{n}", flops, moved, product=sizes)
