"""The GPU's form of a program: all levels flattened to one, and the maps around its products."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ...errors import PlanError
from ...schemes_db.program import Product, ProductKind, Program, Terms
from ..codegen.flatten import flatten
from ..codegen.maps import LinearMap, ProgramMaps, maps_of
from ..codegen.triton_order import MAX_ALIVE, peak_alive

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

    @cached_property
    def alive(self) -> int:
        """Maximum number of values of a kernel alive at once."""
        return max(peak_alive(side) for side in (self.left, self.right, self.merge))


_kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.RLock()

KEPT = 256
"""Maximum number of cached results computed from programs."""


def kept(key: tuple[object, ...], make: Callable[[], Made]) -> Made:
    """Return the result of `make`, cached by key; the last KEPT are stored. `key` contains a program's digest."""
    with _lock:  # flattening three levels takes a while: a second thread would repeat it
        if key not in _kept:
            _kept[key] = make()
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        made: Made = _kept[key]
        return made


def flat_program(program: Program) -> FlatProgram:
    """Return the flat form of a program; cached.

    Raises:
        PlanError: as `FlatProgram`.
    """
    return kept(("flat", program.digest), lambda: FlatProgram(program))


def reason_against(program: Program, dtype: str) -> str | None:
    """Return the reason why this program is not run on a GPU in this dtype, or None."""
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


def reason_against_level(program: Program, dtype: str, level_of: Callable[[Program], object]) -> str | None:
    """Return the reason why a program is not run above products that `level_of` builds a level for, or None.

    Sums are in this dtype.
    """
    if program.rank == 1:
        return "a single product needs no scheme"
    if program.ring.characteristic:
        return f"the program holds over {program.ring} only; lift its scheme to Z first"
    if reason := reason_against(program, dtype):
        return reason
    try:
        level_of(program)
    except PlanError as error:
        return str(error)
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
