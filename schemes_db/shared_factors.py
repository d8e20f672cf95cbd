"""Products of a scheme that share a factor, and the best groups of them.

In a tensor product such products stand side by side as one product of a wider format: g products with the left factor
in common are one of m x k by k x (g n), with the right factor one of (g m) x k by k x n, and with the output one of
m x (g k) by (g k) x n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ..errors import TargetError
from .scheme import Scheme

COMMON = {"n": 0, "m": 1, "k": 2}
"""The factor (of U, V, W) that the products of a group share, by the axis along which they stand side by side."""

MAX_SHARED = 9
"""Up to so many products in several classes are assigned by trying all assignments, more one after the other."""


class Group(NamedTuple):
    """Products of a scheme with a factor in common up to a scalar, side by side along an axis ("m", "k" or "n")."""

    axis: str
    products: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.axis}:{','.join(map(str, self.products))}"


def parse_groups(text: str) -> tuple[Group, ...]:
    """Parse groups as they are written in recipes and provenance, such as `n:0,3;k:5,7`.

    Raises:
        TargetError: the text is none.
    """
    try:
        parts = [part.split(":") for part in text.split(";") if part]
        return tuple(Group(axis, tuple(int(number) for number in numbers.split(","))) for axis, numbers in parts)
    except ValueError:
        raise TargetError(f"{text[:40]!r} names no groups of products: write them as n:0,3;k:5,7") from None


def scalar(scheme: Scheme, factor: int, product: int) -> int:
    """The number c so that a factor of a product is c times a primitive one with a positive first entry."""
    part = scheme.factors[factor]
    values = part.values[part.indptr[product] : part.indptr[product + 1]]
    return int(np.gcd.reduce(values)) * (1 if values[0] > 0 else -1)


def _primitive(scheme: Scheme, factor: int, product: int) -> tuple[tuple[int, int], ...]:
    number = scalar(scheme, factor, product)
    return tuple((index, value // number) for index, value in scheme.factors[factor].terms(product))


def classes(scheme: Scheme) -> tuple[Group, ...]:
    """All largest groups of two products or more; a product may be in one of each axis. None over Q(i)."""
    if scheme.gaussian:
        return ()
    found = []
    for axis, factor in COMMON.items():
        alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for number in range(scheme.rank):
            alike.setdefault(_primitive(scheme, factor, number), []).append(number)
        found += [Group(axis, tuple(numbers)) for numbers in alike.values() if len(numbers) > 1]
    return tuple(found)


def check_groups(scheme: Scheme, groups: Sequence[Group]) -> None:
    """Refuse groups that are none of the scheme.

    Raises:
        TargetError: an unknown axis or product, a product in two places, or no common factor.
    """
    used = Counter(number for group in groups for number in group.products)
    for group in groups:
        if group.axis not in COMMON or not all(0 <= number < scheme.rank for number in group.products):
            raise TargetError(f"{scheme!r} has no group of products {group}")
        if scheme.gaussian or len({_primitive(scheme, COMMON[group.axis], one) for one in group.products}) != 1:
            raise TargetError(f"the products {group} of {scheme!r} share no factor")
    if repeated := [number for number, times in used.items() if times > 1]:
        raise TargetError(f"product {repeated[0]} of {scheme!r} stands in two groups")


def best_groups(found: Sequence[Group], gain: Callable[[str, int], float]) -> tuple[Group, ...]:
    """Choose groups from `classes` of the largest total gain, each product in one group at most.

    `gain` says what a group of a size along an axis saves; a larger group must save as much as its parts do. Classes
    that share products are decided together: by all assignments of at most MAX_SHARED shared products, else of one
    product after the other.
    """
    useful = [group for group in found if gain(group.axis, len(group.products)) > 0]
    holders: dict[int, list[int]] = {}
    for place, group in enumerate(useful):
        for number in group.products:
            holders.setdefault(number, []).append(place)
    chosen: list[Group] = []
    for places in _components(len(useful), holders.values()):
        shared = [number for number, held in holders.items() if held[0] in places and len(held) > 1]
        sizes = Counter({place: sum(len(holders[one]) == 1 for one in useful[place].products) for place in places})

        def total(assigned: Sequence[int], sizes: Counter[int] = sizes) -> float:
            counts = sizes + Counter(assigned)
            return sum(gain(useful[place].axis, count) for place, count in counts.items() if count > 1)

        best: tuple[int, ...] = ()
        if len(shared) <= MAX_SHARED:
            best = max(product(*(holders[number] for number in shared)), key=total)
        else:
            for number in shared:
                best = (*best, max(holders[number], key=lambda place: total((*best, place))))
        mine = dict(zip(shared, best, strict=True))
        for place in places:
            kept = tuple(one for one in useful[place].products if mine.get(one, place) == place)
            if len(kept) > 1:
                chosen.append(Group(useful[place].axis, kept))
    return tuple(sorted(chosen))


def _components(count: int, links: Iterable[list[int]]) -> list[list[int]]:
    """The connected components of 0, 1, ..., count - 1 with the members of each link connected."""
    root = list(range(count))

    def find(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    for first, *others in links:
        for other in others:
            root[find(other)] = find(first)
    found: dict[int, list[int]] = {}
    for place in range(count):
        found.setdefault(find(place), []).append(place)
    return list(found.values())
