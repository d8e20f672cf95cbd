"""Products of a program with proportional coefficients in C, grouped: one product with a longer inner dimension.

If W_r and W_s are multiples of each other, H_r and H_s are only ever used as one sum
c_r L_r R_r + c_s L_s R_s = [c_r L_r, c_s L_s] [R_r; R_s]. Then BLAS adds them up in its registers:
no buffer and no pass over memory for the second. Products that contribute to one block alone
are thus accumulated in place.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from ...schemes_db.program import Coefficient, ProductKind, Terms
from .maps import Block, LinearMap, ProgramMaps

Sums = tuple[Terms, ...]
"""Adjacent sums of one operand, each over the sources and shared values of its map."""


@dataclass(frozen=True)
class ProductGroup:
    """Products computed as one: their left sums side by side times their right sums stacked vertically."""

    kind: ProductKind
    left: Sums
    right: Sums

    @property
    def form(self) -> tuple[ProductKind, int]:
        """The kind of the product, and its length in inner blocks."""
        return self.kind, len(self.left)


@dataclass(frozen=True)
class GroupedProgram:
    """A program with grouped products: the groups' sums, and the map from groups to the blocks of C.

    The sources of `merge` are the groups, its results the blocks `stored`.
    """

    maps: ProgramMaps
    groups: tuple[ProductGroup, ...]
    merge: LinearMap

    @property
    def alone(self) -> dict[int, Block]:
        """Group -> the block of C that equals it."""
        return {group: self.maps.stored[i] for i, group in self.merge.copies.items()}

    @property
    def once(self) -> dict[int, Block]:
        """Group -> the only block of C that it is a term of, for groups in no shared sum."""
        users, shared = _users(self.merge), len(self.merge.lins)
        only = {i: some[0][0] - shared for i, some in enumerate(users) if len(some) == 1}
        return {i: self.maps.stored[place] for i, place in only.items() if place >= 0}


_GROUPABLE = {ProductKind.FULL, ProductKind.HALF_OUT, ProductKind.HALF_OUT_UPPER}
# Adjacent triangular operands of other kinds would not form a triangle.


def group_products(maps: ProgramMaps) -> GroupedProgram:
    """Return the program with all products of proportional coefficients in C in one group."""
    users = _users(maps.merge)
    alike: dict[object, list[int]] = defaultdict(list)
    for r, op in enumerate(maps.products):
        lead = _lead(users[r])
        shape = tuple((place, _ratio(coefficient, lead)) for place, coefficient in users[r])
        alike[(op.kind, shape) if op.kind in _GROUPABLE else r].append(r)
    groups = []
    for members in alike.values():
        # Sums that equal blocks should stay so: the first product is scaled by a sign at most, unless the group is all
        # of a block, which then needs no merging.
        unit = 1 if _fills_a_block(maps.merge, users[members[0]], len(members)) else _lead(users[members[0]])
        factors = [_ratio(_lead(users[r]), unit) for r in members]
        left = (_scaled(maps.left.results[maps.left_of[r]], f) for r, f in zip(members, factors, strict=True))
        right = tuple(maps.right.results[maps.right_of[r]] for r in members)
        groups.append((ProductGroup(maps.products[members[0]].kind, tuple(left), right), members[0], factors[0]))
    place = {r: (i, factor) for i, (_, r, factor) in enumerate(groups)}
    return GroupedProgram(maps, tuple(group for group, _, _ in groups), _merged(maps.merge, place))


def _users(merge: LinearMap) -> list[list[tuple[int, Coefficient]]]:
    """Return for every product the sums that use it, in order, with its coefficients."""
    users: list[list[tuple[int, Coefficient]]] = [[] for _ in range(merge.sources)]
    for place, terms in enumerate(merge.lins + merge.results):
        for coefficient, src in terms:
            if src < merge.sources:
                users[src].append((place, coefficient))
    return users


def _lead(users: list[tuple[int, Coefficient]]) -> Coefficient:
    """Return the factor that normalizes a product: its coefficient if it has only one, else the sign of the first."""
    if len(users) == 1:
        return users[0][1]
    return -1 if users and users[0][1] < 0 else 1


def _fills_a_block(merge: LinearMap, users: list[tuple[int, Coefficient]], members: int) -> bool:
    """Return whether so many products with the same users are all terms of one block."""
    whole = (merge.lins + merge.results)[users[0][0]] if len(users) == 1 else ()
    return len(whole) == members and users[0][0] >= len(merge.lins)


def _ratio(coefficient: Coefficient, lead: Coefficient) -> Coefficient:
    ratio = Fraction(coefficient) / Fraction(lead)
    return int(ratio) if ratio.denominator == 1 else ratio


def _scaled(terms: Terms, factor: Coefficient) -> Terms:
    return tuple((coefficient * factor, src) for coefficient, src in terms)


def _merged(merge: LinearMap, place: dict[int, tuple[int, Coefficient]]) -> LinearMap:
    """Return the merge over groups. `place`: a group's first product -> the group and the factor of its left sum."""

    def renamed(terms: Terms) -> Terms:
        kept: list[tuple[Coefficient, int]] = []
        for coefficient, src in terms:
            if src >= merge.sources:
                kept.append((coefficient, src - merge.sources + len(place)))
            elif src in place:
                group, factor = place[src]
                kept.append((_ratio(coefficient, factor), group))
        return tuple(kept)

    return LinearMap(len(place), tuple(map(renamed, merge.lins)), tuple(map(renamed, merge.results)))
