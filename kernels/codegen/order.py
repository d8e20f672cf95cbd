"""The order in which kernels load, add and store, with few values alive at once: on a processor, and in Triton."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...schemes_db.program import Coefficient, Terms
from .maps import LinearMap


@dataclass(frozen=True)
class Fetch:
    """Start loading source `value` of the map."""

    value: int


@dataclass(frozen=True)
class Take:
    """Define value `value` as the loaded source; on a processor it is loaded now."""

    value: int


@dataclass(frozen=True)
class ValueSum:
    """Set value `value` to the sum of the terms."""

    value: int
    terms: Terms


@dataclass(frozen=True)
class Accumulate:
    """Add coefficient * value `term` to value `value`, or set it if `first`."""

    value: int
    coefficient: Coefficient
    term: int
    first: bool


@dataclass(frozen=True)
class Keep:
    """Write value `value` to result `result` of the map."""

    result: int
    value: int


Step = Fetch | Take | ValueSum | Accumulate | Keep


def schedule(linear: LinearMap, registers: int) -> list[Take | ValueSum | Keep]:
    """Return the steps that execute the map on a processor: results right after their terms, loads as late as possible.

    The next result is the one that needs the fewest values not yet used. If more than
    `registers` values would be alive, the source whose next use is latest is dropped and loaded
    again from the nearest cache. Value ids past those of the map are results.
    """
    order = _order(linear)
    plan = [_needs(linear, result) for result in order]
    uses = _use_positions(linear, order)
    steps: list[Take | ValueSum | Keep] = []
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
            steps.append(ValueSum(value, terms))
        else:
            steps.append(Take(value))
        alive[value] = None
        while len(alive) > registers:
            loose = [held for held in alive if held < linear.sources and held not in kept and held != value]
            if not loose:
                break
            del alive[max(loose, key=next_use)]

    for result, needed in zip(order, plan, strict=True):
        for value in needed:
            fetch(value, set(needed))
        made = linear.sources + len(linear.lins) + result
        steps += ValueSum(made, linear.results[result]), Keep(result, made)
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


def _use_positions(linear: LinearMap, order: list[int]) -> dict[int, list[int]]:
    """Return for every value the positions in `order` of the results that use it, directly or through sums."""
    uses: dict[int, list[int]] = {value: [] for value in range(linear.sources + len(linear.lins))}
    for clock, result in enumerate(order):
        pending = list(_needs(linear, result))
        while pending:
            value = pending.pop()
            if not uses[value] and value >= linear.sources:  # a sum is computed once
                pending += [src for _, src in linear.lins[value - linear.sources]]
            if uses[value][-1:] != [clock]:
                uses[value].append(clock)
    return uses


MAX_ALIVE = 220
"""Maximum number of 32-bit values of one element alive at once: more do not fit in 255 registers."""


def steps(linear: LinearMap, ahead: int = 0) -> list[Step]:
    """Return the steps of a map; value ids past those of the map are results.

    Every source is loaded `ahead` others before it is used. The compiler moves no load over a
    store, which could be to the same address: a load at its use would wait for memory
    every time, with no other load in flight.

    A map from few sources to many results is executed result by result: a sum is computed when
    the first result needs it. One from many sources to few results is executed source by
    source, and each is added to all sums that use it. The transpose of a map is executed in the
    transposed order, so that both need equally few values alive.
    """
    order = list(_by_results(linear) if linear.sources <= len(linear.results) else _by_sources(linear))
    takes = [step.value for step in order if isinstance(step, Take)]
    early: list[Step] = [Fetch(value) for value in takes[:ahead]]
    begun = len(early)
    for step in order:
        if isinstance(step, Take) and begun < len(takes):
            early.append(Fetch(takes[begun]))
            begun += 1
        early.append(step)
    return early


def _by_results(linear: LinearMap) -> Iterator[Step]:
    known: set[int] = set()

    def made(value: int) -> Iterator[Step]:
        if value in known:
            return
        known.add(value)
        if value < linear.sources:
            yield Take(value)
        else:
            yield from _sum(value, linear.lins[value - linear.sources])

    def _sum(value: int, terms: Terms) -> Iterator[Step]:
        for _, src in terms:
            yield from made(src)
        yield ValueSum(value, terms)

    first = linear.sources + len(linear.lins)
    for i, terms in enumerate(linear.results):
        yield from _sum(first + i, terms)
        yield Keep(i, first + i)


def _by_sources(linear: LinearMap) -> Iterator[Step]:
    first = linear.sources + len(linear.lins)
    sums = {linear.sources + i: terms for i, terms in enumerate((*linear.lins, *linear.results))}
    waiting = {value: len(terms) for value, terms in sums.items()}
    begun: set[int] = set()
    takers: dict[int, list[tuple[int, Coefficient]]] = {}
    for value, terms in sums.items():
        for coefficient, src in terms:
            takers.setdefault(src, []).append((value, coefficient))

    def given(value: int) -> Iterator[Step]:
        complete = []
        for taker, coefficient in takers.get(value, ()):
            yield Accumulate(taker, coefficient, value, taker not in begun)
            begun.add(taker)
            waiting[taker] -= 1
            if not waiting[taker]:
                complete.append(taker)
        for taker in complete:
            if taker >= first:
                yield Keep(taker - first, taker)
            else:
                yield from given(taker)

    for value, terms in sums.items():
        if value >= first and not terms:
            yield ValueSum(value, terms)
            yield Keep(value - first, value)
    for source in range(linear.sources):
        yield Take(source)
        yield from given(source)


def peak_alive(linear: LinearMap) -> int:
    """Return the maximum number of values alive at once when the steps are executed in order, with `ahead` of 0."""
    order = steps(linear)
    last: dict[int, int] = {}
    for position, step in enumerate(order):
        last.update(dict.fromkeys(_uses(step), position))
    alive: set[int] = set()
    peak = 0
    for position, step in enumerate(order):
        alive.add(step.value)
        peak = max(peak, len(alive))
        alive -= {value for value in (*_uses(step), step.value) if last.get(value, -1) <= position}
    return peak


def _uses(step: Step) -> list[int]:
    if isinstance(step, ValueSum):
        return [src for _, src in step.terms]
    if isinstance(step, Accumulate):
        return [step.value, step.term]
    return [step.value] if isinstance(step, Keep) else []
