"""The order in which a kernel loads, adds and stores, so that few values are alive at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .maps import LinearMap


@dataclass(frozen=True)
class Step:
    """`load` source `value`; `make` the sum with id `value`; or `store` result `value`."""

    what: str
    value: int


def schedule(linear: LinearMap, registers: int) -> list[Step]:
    """Steps that work the map: every result right after what it is made of, loads as late as can be.

    The next result is the one that needs fewest values that are not at hand. Where more than
    `registers` values would be alive, the source that is needed again last is dropped and loaded
    anew: it still is in the nearest cache. Copies of a source fall between the sums that need it.
    """
    order = _order(linear)
    plan = [_needs(linear, result) for result in order]
    uses = _uses(linear, order)
    steps: list[Step] = []
    alive: dict[int, None] = {}
    clock = 0

    def next_use(value: int) -> int:
        return next((when for when in uses[value] if when >= clock), 1 << 60)

    def fetch(value: int, kept: set[int]) -> None:
        if value in alive:
            return
        if value >= linear.sources:
            terms = linear.lins[value - linear.sources]
            needed = {src for _, src in terms}
            for _, src in terms:
                fetch(src, kept | needed)
            steps.append(Step("make", value))
        else:
            steps.append(Step("load", value))
        alive[value] = None
        while len(alive) > registers:
            loose = [held for held in alive if held < linear.sources and held not in kept and held != value]
            if not loose:
                break
            del alive[max(loose, key=next_use)]

    for result, needed in zip(order, plan, strict=True):
        for value in needed:
            fetch(value, set(needed))
        steps.append(Step("store", result))
        clock += 1
        for value in [held for held in alive if next_use(held) >= 1 << 60]:
            del alive[value]
    return steps


def _needs(linear: LinearMap, result: int) -> tuple[int, ...]:
    return tuple(src for _, src in linear.results[result])


def _order(linear: LinearMap) -> list[int]:
    """The results, next the one with the fewest direct terms that were not met yet."""
    left = {i: set(_needs(linear, i)) for i in range(len(linear.results))}
    holders: dict[int, list[int]] = {}
    for i, needed in left.items():
        for value in needed:
            holders.setdefault(value, []).append(i)
    order: list[int] = []
    while left:
        best = min(left, key=lambda i: (len(left[i]), i))
        order.append(best)
        for value in left.pop(best):
            for i in holders[value]:
                if i in left:
                    left[i].discard(value)
    return order


def _uses(linear: LinearMap, order: list[int]) -> dict[int, list[int]]:
    """For every value the positions in `order` of the results that it goes into, directly or through sums."""
    uses: dict[int, list[int]] = {value: [] for value in range(linear.sources + len(linear.lins))}
    made: set[int] = set()
    for clock, result in enumerate(order):
        for value in _closure(linear, result, made):
            uses[value].append(clock)
    return uses


def _closure(linear: LinearMap, result: int, made: set[int]) -> Iterator[int]:
    """The nodes that computing a result touches, without sums that are computed already."""
    pending = list(_needs(linear, result))
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        yield value
        if value >= linear.sources and value not in made:
            made.add(value)
            pending += [src for _, src in linear.lins[value - linear.sources]]
