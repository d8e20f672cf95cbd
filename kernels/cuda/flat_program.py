"""The GPU's form of a program: all levels flattened to one, the maps around its products, and these as two levels."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ...errors import PlanError
from ...schemes_db.flatten import flatten
from ...schemes_db.program import Coefficient, Product, ProductKind, Program, Terms
from ..codegen.maps import Block, LinearMap, ProgramMaps, expanded, maps_of
from ..codegen.order import MAX_ALIVE, peak_alive
from ..codegen.triton_text import MOST_TURNS, Nest

Made = TypeVar("Made")

MAX_RANK = 512
"""Maximum number of products of a program executed in one pass; three levels of Strassen have 343."""


class FlatProgram:
    """A program with its levels flattened: a level's sums are values of one kernel, not passes over memory.

    `products` are ordered by kind, full ones first; `left` and `right` have a result for each, in that order, and
    they are the sources of `merge`. `maps` are those of the program, in its own order, which is the same if all
    products are full.

    Raises:
        PlanError: inner levels do not fit each other: see `flatten`.
    """

    def __init__(self, program: Program) -> None:
        self.program = _flat(program)
        self.maps: ProgramMaps = maps_of(self.program)
        maps = self.maps
        order = sorted(range(len(maps.products)), key=lambda r: (maps.products[r].kind.half, maps.products[r].kind))
        self.products: tuple[Product, ...] = tuple(maps.products[r] for r in order)
        self.left = _repeated(maps.left, tuple(maps.left_of[r] for r in order))
        self.right = _repeated(maps.right, tuple(maps.right_of[r] for r in order))
        self.merge = _renumbered(maps.merge, {r: i for i, r in enumerate(order)})
        self.rank = self.program.rank

    @property
    def sides(self) -> tuple[tuple[LinearMap, tuple[Block, ...]], ...]:
        """The maps of A, B and C, each with the blocks that it reads, or of C writes, in order."""
        maps = self.maps
        return (self.left, maps.left_blocks), (self.right, maps.right_blocks), (self.merge, maps.stored)

    def coefficients(self, side: int) -> list[list[Coefficient]]:
        """Return the coefficient of every block of A, B or C (`side`) in every product, in the order of `sides`."""
        linear, blocks = self.sides[side]
        dense: list[list[Coefficient]] = [[0] * len(blocks) for _ in range(self.rank)]
        for result in range(len(linear.results)):
            for source, coefficient in expanded(linear, result):
                product, block = (source, result) if side == 2 else (result, source)
                dense[product][block] = coefficient
        return dense

    @cached_property
    def alive(self) -> int:
        """Maximum number of values of a kernel alive at once."""
        return max(peak_alive(side) for side in (self.left, self.right, self.merge))


_kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.RLock()

KEPT = 256
"""Maximum number of cached results computed from programs."""


def per_program(make: Callable[..., Made]) -> Callable[..., Made]:
    """Return make(program, *others), cached by the digest of the program and the others; the last KEPT are stored."""

    def kept(program: Program, *others: object) -> Made:
        key = make, program.digest, others
        with _lock:  # flattening three levels takes a while: a second thread would repeat it
            if key not in _kept:
                _kept[key] = make(program, *others)
            _kept.move_to_end(key)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
            return _kept[key]

    return kept


flat_program = per_program(FlatProgram)
"""The flat form of a program, cached."""


def reason_against(program: Program, dtype: str) -> str | None:
    """Return the reason why this program is not run on a GPU in this dtype, or None."""
    if program.rank == 1:
        return "a single product is the vendor's"
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    if rank_of(program) > MAX_RANK:
        return f"the program has {rank_of(program)} products on all levels together, more than {MAX_RANK}"
    if any(op.kind is not ProductKind.FULL for op in program.products):
        return "the program has half products, which the causal strategies work"
    try:
        values = flat_program(program).alive * (2 if dtype == "float64" else 1)
    except PlanError as error:
        return str(error)
    if values > MAX_ALIVE:
        return f"its sums keep {values} values alive at once, more than the {MAX_ALIVE} that registers hold"
    return None


def rank_of(program: Program) -> int:
    """Return the number of products on all levels together."""
    inner = dict(program.inner)
    return sum(rank_of(inner[op.kind]) if op.kind in inner else 1 for op in program.products)


def _flat(program: Program) -> Program:
    inner = {kind: _flat(below) for kind, below in program.inner}
    if not inner:
        return program
    if ProductKind.FULL not in inner:
        raise PlanError(f"the full products of {program.target} have no program on the level below")
    outer = Program(program.target, program.ring, program.ops)
    return flatten(outer, inner.pop(ProductKind.FULL), inner)


def _repeated(linear: LinearMap, order: tuple[int, ...]) -> LinearMap:
    return LinearMap(linear.sources, linear.lins, tuple(linear.results[i] for i in order))


def _renumbered(linear: LinearMap, place: dict[int, int]) -> LinearMap:
    """Return the map with its sources in another order."""

    def renamed(several: tuple[Terms, ...]) -> tuple[Terms, ...]:
        return tuple(tuple((c, place.get(src, src)) for c, src in terms) for terms in several)

    return LinearMap(linear.sources, renamed(linear.lins), renamed(linear.results))


LARGE = 200
"""Sources and results of a map from which a loop is used: with fewer, straight-line code compiles within a second."""


def nests_of(program: Program) -> tuple[Nest | None, Nest | None, Nest | None]:
    """Return the maps of A, B and C of a program as two levels; None for one that is to be straight-line code.

    The results of `FlatProgram.left` and `right` are its slabs, all blocks of C in row-major order its results. The
    coefficients of the level of the loop must be -1 and 1. Its sums share no parts: where those of the program do,
    they are rounded in another order.
    """
    flat = flat_program(program)
    rows, cols = flat.program.target.m, flat.program.target.n
    whole = tuple((i, j) for i in range(rows) for j in range(cols))
    blocks = (*(some for _, some in flat.sides[:2]), whole)
    left, right, merge = (_nest(program, side, some) for side, some in enumerate(blocks))
    return left, right, merge


def _nest(program: Program, side: int, blocks: tuple[Block, ...]) -> Nest | None:
    """Return the map of A, B or C (`side`) with a loop over the level of fewer products, the outer one if equal."""
    inner = dict(program.inner)
    if list(inner) != [ProductKind.FULL]:
        return None
    levels = flat_program(Program(program.target, program.ring, program.ops)), flat_program(inner[ProductKind.FULL])
    outer, below = levels
    halves = any(op.kind.half for level in levels for op in level.products)
    if halves or outer.rank * below.rank + len(blocks) < LARGE:
        return None
    m, k, n = below.program.target.shape
    (rows, cols), index = ((m, k), (k, n), (m, n))[side], {block: number for number, block in enumerate(blocks)}
    outside, inside = (level.sides[side][1] for level in levels)
    whole = [[index.get((i * rows + p, j * cols + q), -1) for p, q in inside] for i, j in outside]
    if any(-1 in line for line in whole):
        return None
    looped = min((level for level in levels if _signs(level, side)), key=lambda level: level.rank, default=None)
    if looped is None or (table := _signs(looped, side)) is None:
        return None
    if looped is outer:
        return Nest(table, below.sides[side][0], tuple(map(tuple, whole)), 1, below.rank)
    return Nest(table, outer.sides[side][0], tuple(zip(*whole, strict=True)), below.rank, 1)


def _signs(level: FlatProgram, side: int) -> tuple[tuple[int, ...], ...] | None:
    """Return the coefficient of every block in every product; None if they are too many, or not -1, 0 or 1."""
    if level.rank > MOST_TURNS:
        return None
    table = level.coefficients(side)
    if any(value not in (-1, 0, 1) for row in table for value in row):
        return None
    return tuple(tuple(map(int, row)) for row in table)
