"""The three linear maps of a program: left sums, right sums, and the blocks of C from the products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from ...errors import PlanError
from ...schemes_db.program import Coefficient, Lin, Load, Op, Product, Program, Store, Terms
from ..identity import IdentityKey, memoize_on_instance

Block = tuple[int, int]

MAX_TARGETS = 64
"""Maximum results of one generated kernel: a larger map is split, and each piece reads its sources once."""


@dataclass(frozen=True)
class LinearMap:
    """Sums of sources: value ids 0 ... sources-1 are given, `lins` define shared sums, `results` are the wanted sums.

    Ids are consecutive in the order of `lins`, so that equal maps compare equal whatever program they
    come from.
    """

    sources: int
    lins: tuple[Terms, ...]
    results: tuple[Terms, ...]

    @cached_property
    def additions(self) -> int:
        """Their number, counted once: counting takes a tenth of a plan's time."""
        return sum(max(len(terms) - 1, 0) for terms in self.lins + self.results)

    @property
    def copies(self) -> dict[int, int]:
        """The results that equal one source: result -> source."""
        single = ((i, terms) for i, terms in enumerate(self.results) if len(terms) == 1)
        return {i: terms[0][1] for i, terms in single if terms[0][0] == 1 and terms[0][1] < self.sources}


@dataclass(frozen=True)
class MapPiece:
    """A part of a map small enough for one kernel, with the indices of its sources and results in the whole."""

    map: LinearMap
    sources: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class ProgramMaps:
    """A program as linear maps around its products.

    `left_blocks` and `right_blocks` are the blocks that are the sources of `left` and `right`;
    `left_of[r]` and `right_of[r]` are the results that product r multiplies. The sources of `merge` are the
    products and its results the blocks `stored`.
    """

    left_blocks: tuple[Block, ...]
    right_blocks: tuple[Block, ...]
    left: LinearMap
    right: LinearMap
    left_of: tuple[int, ...]
    right_of: tuple[int, ...]
    merge: LinearMap
    stored: tuple[Block, ...]
    products: tuple[Product, ...]


def maps_of(program: Program) -> ProgramMaps:
    """Return the maps of one level of a program.

    Raises:
        PlanError: the program is not of the form sums, products, sums.
    """
    return _maps(IdentityKey(program.ops))


@lru_cache(maxsize=256)
def _maps(kept: IdentityKey) -> ProgramMaps:
    """Cached by identity: hashing the ops takes longer than computing the maps."""
    ops: tuple[Op, ...] = kept.held
    side = _sides(ops)
    products = tuple(op for op in ops if isinstance(op, Product))
    wanted = {"A": dict.fromkeys(op.left for op in products), "B": dict.fromkeys(op.right for op in products)}
    loads = {name: [op for op in ops if isinstance(op, Load) and op.operand == name] for name in "AB"}
    maps = {
        name: _map([op.dst for op in loads[name]], _lins(ops, side, name), [((1, v),) for v in wanted[name]])
        for name in "AB"
    }
    stores = {op.block: op for op in ops if isinstance(op, Store)}
    merge = _map([op.dst for op in products], _lins(ops, side, "C"), [op.terms for op in stores.values()])
    place = {name: {value: i for i, value in enumerate(wanted[name])} for name in "AB"}
    return ProgramMaps(
        tuple(op.block for op in loads["A"]),
        tuple(op.block for op in loads["B"]),
        maps["A"],
        maps["B"],
        tuple(place["A"][op.left] for op in products),
        tuple(place["B"][op.right] for op in products),
        merge,
        tuple(stores),
        products,
    )


def expanded(linear: LinearMap, result: int) -> list[tuple[int, Coefficient]]:
    """Expand a result in the sources, without intermediate sums: (source, coefficient), by source."""
    values: list[dict[int, Coefficient]] = [{i: 1} for i in range(linear.sources)]

    def total(terms: tuple[tuple[Coefficient, int], ...]) -> dict[int, Coefficient]:
        sums: dict[int, Coefficient] = {}
        for coefficient, src in terms:
            for source, inner in values[src].items():
                sums[source] = sums.get(source, 0) + coefficient * inner
        return {source: value for source, value in sums.items() if value}

    for terms in linear.lins:
        values.append(total(terms))
    return sorted(total(linear.results[result]).items())


def pieces(whole: LinearMap, results: Iterable[int] | None = None) -> tuple[MapPiece, ...]:
    """Split the map, or some results of it, into kernels of at most MAX_TARGETS results."""
    return _pieces(whole, tuple(range(len(whole.results)) if results is None else results), MAX_TARGETS)


@memoize_on_instance
def _pieces(whole: LinearMap, kept: tuple[int, ...], most: int) -> tuple[MapPiece, ...]:
    count = -(-len(kept) // most)
    parts = [kept[len(kept) * i // count : len(kept) * (i + 1) // count] for i in range(count)]
    return tuple(_piece(whole, part) for part in parts)


def _piece(whole: LinearMap, results: tuple[int, ...]) -> MapPiece:
    """Return some results of a map, with only the sources and sums they need."""
    needed = {src for i in results for _, src in whole.results[i]}
    for i in reversed(range(len(whole.lins))):
        if whole.sources + i in needed:
            needed.update(src for _, src in whole.lins[i])
    sources = sorted(value for value in needed if value < whole.sources)
    lins = [(whole.sources + i, terms) for i, terms in enumerate(whole.lins) if whole.sources + i in needed]
    return MapPiece(_map(sources, lins, [whole.results[i] for i in results]), tuple(sources), results)


def _map(sources: list[int], lins: list[tuple[int, Terms]], results: list[Terms]) -> LinearMap:
    ids = {value: i for i, value in enumerate([*sources, *(dst for dst, _ in lins)])}

    def renamed(terms: Terms) -> Terms:
        return tuple((coefficient, ids[src]) for coefficient, src in terms)

    return LinearMap(len(sources), tuple(renamed(terms) for _, terms in lins), tuple(map(renamed, results)))


def _lins(ops: Iterable[Op], side: dict[int, str], name: str) -> list[tuple[int, Terms]]:
    return [(op.dst, op.terms) for op in ops if isinstance(op, Lin) and side[op.dst] == name]


def _sides(ops: Iterable[Op]) -> dict[int, str]:
    """Return for every value whether it is a sum of blocks of A, of blocks of B, or of products (C)."""
    side: dict[int, str] = {}
    for op in ops:
        if isinstance(op, Load):
            side[op.dst] = op.operand
        elif isinstance(op, Product):
            if (side[op.left], side[op.right]) != ("A", "B"):
                raise PlanError("a product must be of a sum of A blocks and a sum of B blocks, in this order")
            side[op.dst] = "C"
        else:
            if not op.terms:
                raise PlanError("the program has a sum without terms")
            kinds = {side[src] for _, src in op.terms}
            if len(kinds) != 1 or (isinstance(op, Store) and kinds != {"C"}):
                raise PlanError("the program adds blocks of different operands, or stores what is not a product")
            if isinstance(op, Lin):
                side[op.dst] = kinds.pop()
    return side


@memoize_on_instance
def has_fractions(program: Program) -> bool:
    """Return whether a coefficient on any level is not an integer."""
    own = any(
        isinstance(coefficient, Fraction) and coefficient.denominator != 1
        for op in program.ops
        if isinstance(op, Lin | Store)
        for coefficient, _ in op.terms
    )
    return own or any(has_fractions(inner) for _, inner in program.inner)
