"""The order of products that minimizes the number of unfinished blocks of C, the accumulators of a fused kernel.

The operands of every product are given. A product is added to the blocks of C that need it as soon as
it is computed; a block is stored, and its accumulator is free, after its last product.
No product has an accumulator of its own: it is computed in the accumulator of a block that it begins, or,
if it begins none, in that of block j, by row operations before and after it,

    C_i -= (w_i / w_j) C_j,    C_j += w_j P,    C_i += (w_i / w_j) C_j    for all i != j.

So the accumulators at a product are the unfinished blocks before it and those that it begins.
Source of the row operations: J.-G. Dumas and B. Grenet, arXiv 2307.12712.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...errors import PlanError
from .maps import LinearMap, expanded

BEAM = 256
"""Beam width: orders that the search follows at once."""

Column = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Accumulation:
    """One product: (block, coefficient) for all blocks of C that need it, and the accumulator that computes it.

    It is computed in the accumulator of block `pivot`, which starts at zero if `pivot` is among the
    blocks that it `begins`. `finishes`: blocks stored afterwards; `live`: the unfinished blocks before it.
    """

    product: int
    column: Column
    pivot: int
    begins: tuple[int, ...]
    finishes: tuple[int, ...]
    live: tuple[int, ...]


@dataclass(frozen=True)
class AccumulatorOrder:
    """All products in order, and the maximum number of accumulators in use at once."""

    steps: tuple[Accumulation, ...]
    peak: int


def columns_of(merge: LinearMap) -> tuple[Column, ...]:
    """Return the column of every product: the blocks of C that need it, with coefficients; shared sums are expanded."""
    columns: list[list[tuple[int, Fraction]]] = [[] for _ in range(merge.sources)]
    for block in range(len(merge.results)):
        for source, factor in expanded(merge, block):
            columns[source].append((block, Fraction(factor)))
    return tuple(map(tuple, columns))


@lru_cache(maxsize=64)
def accumulator_order(merge: LinearMap, beam: int = BEAM) -> AccumulatorOrder:
    """Return the order with the smallest peak found; ties go to the smaller total number of unfinished blocks.

    Raises:
        PlanError: a product or a block of C is not used.
    """
    columns = columns_of(merge)
    if not all(columns) or not all(merge.results):
        raise PlanError("every product must be needed, and every block of C must need one")
    masks = [sum(1 << block for block, _ in column) for column in columns]
    users = [sum(1 << r for r, mask in enumerate(masks) if mask >> block & 1) for block in range(len(merge.results))]
    # (peak, sum of the accumulators, unfinished blocks) and the order, by the set of products done.
    states: dict[int, tuple[tuple[int, int], int, tuple[int, ...]]] = {0: ((0, 0), 0, ())}
    for _ in columns:
        found: dict[int, tuple[tuple[int, int], int, tuple[int, ...]]] = {}
        for done, ((peak, total), live, order) in states.items():
            for r, mask in enumerate(masks):
                if done >> r & 1:
                    continue
                used, after = live | mask, done | 1 << r
                count = used.bit_count()
                cost = max(peak, count), total + count
                if after not in found or cost < found[after][0]:
                    left = sum(1 << b for b, need in enumerate(users) if used >> b & 1 and need & ~after)
                    found[after] = cost, left, (*order, r)
        cheapest = sorted(found.items(), key=lambda one: (one[1][0], one[1][1].bit_count(), one[1][2]))
        states = dict(cheapest[:beam])
    (peak, _), _, order = next(iter(states.values()))
    return AccumulatorOrder(_steps(order, columns, users), peak)


def _steps(order: tuple[int, ...], columns: tuple[Column, ...], users: list[int]) -> tuple[Accumulation, ...]:
    done, live, steps = 0, set[int](), []
    for r in order:
        done |= 1 << r
        begins = tuple(block for block, _ in columns[r] if block not in live)
        allowed = [term for term in columns[r] if not begins or term[0] in begins]
        # A coefficient of 1 needs no multiplication before or after.
        pivot = min(allowed, key=lambda term: (term[1] != 1, abs(term[1]) != 1, term[0]))[0]
        used = live | {block for block, _ in columns[r]}
        finishes = tuple(sorted(block for block in used if not users[block] & ~done))
        steps.append(Accumulation(r, columns[r], pivot, begins, finishes, tuple(sorted(live))))
        live = used - set(finishes)
    return tuple(steps)
