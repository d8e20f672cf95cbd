"""Costs of chains of levels on the CPU, computed together as arrays: all extensions of the best chains by depth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from operator import matmul
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import CatalogError
from ...schemes_db.program import ProductKind, Program
from ..cpu.cost_model import CpuCostModel
from ..dtypes import dtype_of
from ..identity import memoize_on_instance
from ..planning.strategy import Stage
from ..request import Request
from .pool import LevelScheme, SchemePool, catalogue_stamp
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

LEAST_BLOCK = 96
"""Smallest side of a block: below it products are far from their best rate (measured)."""

BATCHED, TASKS, LOOP = METHODS = "batched", "tasks", "loop"
"""The methods of levels: all sums and then all products, each by all threads or each by one thread; or one product of
the first level at a time in small buffers.
"""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Chain:
    """Schemes by level, outermost first; a `Source`. An entry may be two levels flattened into one.

    `pool` and `places` locate the costs of the levels, and `known` are those of all levels as one, if available:
    computing them requires reading the schemes.
    """

    levels: tuple[LevelScheme, ...]
    pool: SchemePool | None = field(default=None, compare=False, repr=False)
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)
    known: SchemeCosts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def key(self) -> str:
        return "/".join(level.name for level in self.levels)

    @property
    def label(self) -> str:
        return " * ".join(level.label for level in self.levels)

    @cached_property
    def program(self) -> Program:
        """The nested program of all levels."""
        return nested_program(self.levels)

    @cached_property
    def costs(self) -> tuple[SchemeCosts, ...]:
        """The costs of every level."""
        if self.pool is None:
            return tuple(costs_of(level.scheme) for level in self.levels)
        return tuple(self.pool.costs[place] for place in self.places)

    @cached_property
    def flat_costs(self) -> SchemeCosts:
        """The costs of all levels as one level, their tensor product."""
        return self.known or reduce(matmul, self.costs)


def restored_chain(key: str) -> Chain | None:
    """Return the chain of a key; None if the catalogue lacks one of its schemes.

    Cached until the catalogue changes: reading a scheme takes as long as planning a product.
    """
    return _restored_chain(key, catalogue_stamp())


@lru_cache(maxsize=512)
def _restored_chain(key: str, stamp: object) -> Chain | None:
    try:
        return Chain(tuple(LevelScheme.restored(part) for part in key.split("/")))
    except CatalogError:
        return None


@lru_cache(maxsize=128)
def nested_program(levels: tuple[LevelScheme, ...]) -> Program:
    """Return the nested program of schemes by level: one object for equal levels, for memoization by identity."""
    *outer, program = (level.program for level in levels)
    for one in reversed(outer):
        program = one.nested({ProductKind.FULL: program})
    return program


@dataclass(frozen=True)
class LevelCosts:
    """Costs of one level of every scheme that depend on neither sizes nor machine: arrays with an entry per scheme.

    `grid` (3, schemes) divides m, k and n. Per element of a block of A, B and C, each (3, schemes): `flops` and `bytes`
    of Combine A, B and H; `streamed` bytes that sums one at a time read and write; `stored` bytes of all sums and
    products at once. `item` are the bytes of an element.
    """

    item: int
    grid: Array
    rank: Array
    flops: Array
    bytes: Array
    streamed: Array
    stored: Array

    def at(self, chosen: list[int] | slice) -> LevelCosts:
        """Return the costs of some schemes, by index."""
        tables = (self.grid, self.rank, self.flops, self.bytes, self.streamed, self.stored)
        return LevelCosts(self.item, *(table[..., chosen] for table in tables))


@memoize_on_instance
def level_costs(costs: SchemeCosts, dtype: str) -> LevelCosts:
    """Return the costs of a level of these schemes in a dtype. Memoized: they are the same for all requests."""
    (nu, nv, nw), rank, item = costs.nnz, costs.rank, dtype_of(dtype).numpy.itemsize
    flops, moved = zip(*costs.combines(dtype), strict=True)
    # Sums one at a time read every term again; a product is read for, and added to, every block that it contributes to.
    streamed = item * np.array([nu + rank, nv + rank, rank + 2 * nw])
    stored = item * np.array([*costs.made, rank])
    grid = np.array([costs.m, costs.k, costs.n])
    return LevelCosts(item, grid, rank, np.array(flops), np.array(moved), streamed, stored)


@dataclass(frozen=True)
class ChainCosts:
    """Costs of chains of one depth as arrays: the accumulated costs of their levels, and the blocks at the bottom.

    Chain i extends `heads[:, h]`, the indices in the pool of its outer levels, by scheme s of `schemes`:
    `pairs[i]` is h * schemes + s. `sizes` (3, chains) are m, k and n of a block; `outer` is the rank of the first
    level, `below` seconds of sums below it. By method, `spent` are seconds without the products (those of TASKS are
    those of BATCHED), and `workspace` bytes, if they are limited.
    """

    heads: Array
    schemes: int
    pairs: Array
    sizes: Array
    outer: Array
    count: Array
    below: Array
    spent: dict[str, Array]
    workspace: dict[str, Array]

    @property
    def depth(self) -> int:
        """Number of levels."""
        return len(self.heads) + (self.schemes > 0)

    @property
    def levels(self) -> Array:
        """Indices in the pool (depth, chains), outermost first."""
        if not self.schemes:
            return self.heads
        heads, schemes = np.divmod(self.pairs, self.schemes)
        return np.vstack([self.heads[:, heads], schemes])

    def chain(self, i: int) -> tuple[int, ...]:
        """Return the indices in the pool of chain i, outermost first."""
        head, scheme = divmod(int(self.pairs[i]), self.schemes)
        return (*self.heads[:, head].tolist(), scheme)

    @cached_property
    def fit(self) -> Array:
        """For every chain whether its blocks are large enough to be proposed, at this depth or a greater one."""
        bm, bk, bn = self.sizes
        return np.minimum(np.minimum(bm, bk), bn) >= LEAST_BLOCK

    def at(self, chosen: Array) -> ChainCosts:
        """Return some of the chains, by index."""
        outer, count, below = (x[chosen] for x in (self.outer, self.count, self.below))
        spent, workspace = ({name: x[chosen] for name, x in table.items()} for table in (self.spent, self.workspace))
        pairs, sizes = self.pairs[chosen], self.sizes[:, chosen]
        return ChainCosts(self.heads, self.schemes, pairs, sizes, outer, count, below, spent, workspace)


@dataclass(frozen=True)
class DepthCosts:
    """The chains of one depth, and for every method seconds and, if it is limited, bytes of workspace."""

    chains: ChainCosts
    methods: tuple[tuple[str, Array, Array | None], ...]


def cost_table(request: Request, model: CpuCostModel, pool: SchemeCosts) -> Iterator[DepthCosts]:
    """Yield the costs of chains of 1 to 3 levels on one matrix of a request; NaN if a rate was not measured.

    These are all chains of one level, and those of the best chains extended. The method with little memory is
    included if the workspace is limited. At the last depth, chains of small blocks are left out: they are not proposed.
    """
    methods = (BATCHED, TASKS) if request.max_workspace is None else METHODS
    costs, chains = level_costs(pool, request.dtype), start(request, methods)
    for depth in range(1, MAX_DEPTH + 1):
        chains = extended(chains, costs, request, model)
        if depth == MAX_DEPTH:
            chains = chains.at(np.flatnonzero(chains.fit))
        found = DepthCosts(chains, seconds_by_method(chains, request.dtype, model))
        if depth < MAX_DEPTH:
            seconds = found.methods[1 if model.threads > 1 else 0][1]
            best = promising(chains, seconds - model.spin * (model.threads > 1))
            chains = chains.at(best[chains.fit[best]])
        yield found


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
        places = smallest(values, 6 * BEAM)
        for index, count in zip(places.tolist(), chains.count[places].tolist(), strict=True):
            if len(found) == most:
                break
            if alike[count] < most_alike:
                alike[count] += 1
                found.append(index)
    return np.array(found, np.int64)


def seconds_by_method(
    chains: ChainCosts, dtype: str, model: CpuCostModel
) -> tuple[tuple[str, Array, Array | None], ...]:
    """Return (method, seconds, workspace) of every method available to such chains."""
    bm, bk, bn = chains.sizes
    whole, tasks = model.gemm_modes(dtype, bm, bk, bn, chains.count)
    found = {}
    for method, spent in chains.spent.items():
        if method == BATCHED:
            shared = whole + model.overlap(chains.below, "whole")
            found[BATCHED] = spent + shared
            if model.threads > 1:
                # Products beyond a multiple of the threads are executed by all of them together.
                rest = chains.outer % model.threads / chains.outer
                found[TASKS] = spent + (1 - rest) * tasks + rest * shared + model.spin
        else:
            found[method] = spent + whole
    return tuple((method, seconds, chains.workspace.get(method)) for method, seconds in found.items())


def smallest(values: Array, count: int) -> Array:
    """Return the indices of the least values, in increasing order, ties by position; NaN counts as the largest."""
    if len(values) > count:
        limit = np.partition(values, count - 1)[count - 1]
        places = np.flatnonzero(~(values > limit))
    else:
        places = np.arange(len(values))
    return places[np.argsort(values[places], kind="stable")[:count]]


def start(request: Request, methods: Sequence[str]) -> ChainCosts:
    """Return the chain without levels."""
    one, none = np.ones(1), np.zeros(1)
    sizes = np.array([request.shape], dtype=float).T
    spent = {method: none for method in methods if method != TASKS}
    workspace = {} if request.max_workspace is None else dict.fromkeys(methods, none)
    return ChainCosts(np.empty((0, 1), np.int64), 0, np.zeros(1, np.int64), sizes, one, one, none, spent, workspace)


def extended(chains: ChainCosts, costs: LevelCosts, request: Request, model: CpuCostModel) -> ChainCosts:
    """Return every chain extended by every scheme."""
    depth, heads, schemes = chains.depth, len(chains.pairs), len(costs.rank)
    # Exact: a quotient of integers this small never rounds to an integer. Faster than `//`.
    sizes = chains.sizes[:, :, None] / costs.grid[:, None, :]
    bm, bk, bn = np.ceil(sizes, out=sizes)
    count = chains.count[:, None]

    def total(per_element: Array) -> Array:
        """Return the sum over a block of A, of B and of C."""
        a, b, c = per_element
        return bk * (a * bm + b * bn) + c * (bm * bn)

    combine = count * total(combine_seconds(costs, request, model))
    level = combine + count * model.overhead(costs.rank, 1)
    spent, workspace = {}, {}
    for method, seconds in chains.spent.items():
        looped = one_at_a_time(method, depth)
        more = count * total(model.copy(costs.streamed)) if looped else level
        spent[method] = (seconds[:, None] + more).ravel()
    for method, nbytes in chains.workspace.items():
        threads = model.threads if method == TASKS and depth else 1
        own = total(np.full(3, costs.item)) if one_at_a_time(method, depth) else threads * total(costs.stored)
        workspace[method] = (nbytes[:, None] + own).ravel()
    outer = np.repeat(chains.outer, schemes) if depth else costs.rank
    below = chains.below[:, None] + combine if depth else 0 * combine
    columns = sizes.reshape(3, -1), outer, (count * costs.rank).ravel(), below.ravel()
    return ChainCosts(chains.levels, schemes, np.arange(heads * schemes), *columns, spent, workspace)


def one_at_a_time(method: str, depth: int) -> bool:
    """Return whether a level below so many others computes one product at a time."""
    return method == LOOP and not depth


def combine_seconds(costs: LevelCosts, request: Request, model: CpuCostModel) -> Array:
    """Return the seconds of Combine A, B and H per element of a block (3, schemes); a static B is combined once."""
    seconds = model.combine(costs.bytes, costs.flops)
    if request.static == "B":
        seconds[1] = 0.0
    return seconds


def chain_stages(
    costs: LevelCosts, labels: Sequence[str], request: Request, model: CpuCostModel, method: str
) -> list[Stage]:
    """Return the stages of a chain of levels; their seconds add up to those of `cost_table`, times the items."""
    items = math.prod(request.batch)
    chains = [start(request, [BATCHED if method == TASKS else method])]
    for depth in range(len(labels)):
        chains.append(extended(chains[-1], costs.at(slice(depth, depth + 1)), request, model))
    times = items * np.array([one.count[0] for one in chains[:-1]])
    bm, bk, bn = np.concatenate([one.sizes for one in chains[1:]], axis=1)
    elements = times * np.array([bm * bk, bk * bn, bm * bn])
    work = [elements * costs.flops, elements * costs.bytes, elements * combine_seconds(costs, request, model)]
    by_level: list[list[list[float]]] = np.array(work).T.tolist()
    calls = (times * model.overhead(costs.rank, 1)).tolist()
    stages: list[Stage] = []
    for depth, label in enumerate(labels):
        rows = zip(STAGES, by_level[depth], strict=True)
        if one_at_a_time(method, depth):
            before, after = (float(one.spent[method][0]) for one in chains[depth : depth + 2])
            share = items * (after - before) / len(STAGES)
            stages += [Stage(name, flops, moved, share, level=label) for name, (flops, moved, _) in rows]
        else:
            found = [Stage(name, flops, moved, seconds, level=label) for name, (flops, moved, seconds) in rows]
            if request.static == "B":
                del found[STAGES.index("Combine B")]
            stages += [*found, Stage("calls", 0.0, 0.0, calls[depth], level=label)]
    *_, last = chains
    whole = next(seconds for name, seconds, _ in seconds_by_method(last, request.dtype, model) if name == method)
    products = _products(request, last.sizes[:, 0].astype(int).tolist(), items * float(last.count[0]))
    rest = items * float(whole[0]) - sum(stage.seconds or 0.0 for stage in stages)
    return [*stages, replace(products, seconds=rest)]


def _products(request: Request, sizes: Sequence[int], count: float) -> Stage:
    m, k, n = sizes
    kind = dtype_of(request.dtype)
    flops = 2.0 * kind.parts**2 * count * m * k * n
    moved = count * (m * k + k * n + m * n) * kind.numpy.itemsize
    return Stage(f"{count:.0f} products {m}x{k}x{n}", flops, moved, product=(m, k, n))
