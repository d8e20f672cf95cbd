"""The order in which a kernel loads, adds and stores, with few values alive at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .maps import LinearMap


@dataclass(frozen=True)
class ScheduleStep:
    """`load` source `value`; `make` (compute) the sum with id `value`; or `store` result `value`."""

    what: str
    value: int


def schedule(linear: LinearMap, registers: int) -> list[ScheduleStep]:
    """Return the steps that execute the map: every result right after its terms, loads as late as possible.

    The next result is the one that needs the fewest values not yet used. If more than
    `registers` values would be alive, the source whose next use is latest is dropped and loaded
    again from the nearest cache.
    """
    order = _order(linear)
    plan = [_needs(linear, result) for result in order]
    uses = _uses(linear, order)
    steps: list[ScheduleStep] = []
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
            steps.append(ScheduleStep("make", value))
        else:
            steps.append(ScheduleStep("load", value))
        alive[value] = None
        while len(alive) > registers:
            loose = [held for held in alive if held < linear.sources and held not in kept and held != value]
            if not loose:
                break
            del alive[max(loose, key=next_use)]

    for result, needed in zip(order, plan, strict=True):
        for value in needed:
            fetch(value, set(needed))
        steps.append(ScheduleStep("store", result))
        clock += 1
        for value in [held for held in alive if next_use(held) >= 1 << 60]:
            del alive[value]
    return steps


def _needs(linear: LinearMap, result: int) -> tuple[int, ...]:
    return tuple(src for _, src in linear.results[result])


def _order(linear: LinearMap) -> list[int]:
    """Return the order of the results: next is the one with the fewest direct terms not used before."""
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
    """Return for every value the positions in `order` of the results that use it, directly or through sums."""
    uses: dict[int, list[int]] = {value: [] for value in range(linear.sources + len(linear.lins))}
    made: set[int] = set()
    for clock, result in enumerate(order):
        for value in _closure(linear, result, made):
            uses[value].append(clock)
    return uses


def _closure(linear: LinearMap, result: int, made: set[int]) -> Iterator[int]:
    """Yield the nodes that computing a result touches, excluding sums computed already."""
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
