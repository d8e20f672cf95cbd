"""Schedules that compute the products of a scheme in the blocks of its output, without further memory.

The cells are the wanted blocks of C. A schedule computes every product once, by one GEMM that adds it
to a cell, and may add multiples of cells to each other. A factor that is a sum of blocks has to be
stored while it is multiplied: in a cell that is free then, or in a block beyond C.

The number of free cells is determined by ranks. After the products D, their contribution to
C is W_D, the columns of W that belong to them, times D; at least rank(W_D) cells are needed to store it, and
so many suffice: a column w = W_r becomes a single cell after row operations, which are additions of
cells, and after the product has been added there they are undone,

    C_i -= (w_i / w_j) C_j,    C_j += w_j L_r R_r,    C_i += (w_i / w_j) C_j    for all i != j.

A half product may be computed as such: the rest counts as zero, and the sums of the wanted
elements are the same.

Source of the trick: J.-G. Dumas and B. Grenet, In-place accumulation of fast multiplication
formulae, arXiv 2307.12712; ECA, section 3.3, claims it for stage I after Shitov (2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.scheme import Scheme

IntArray = npt.NDArray[np.int64]

BEAM = 64
"""Beam width: schedules that the search follows at once."""

MOST_TERMS = 6
"""Maximum length of a linear dependence between cells by which one of them is freed."""


@dataclass(frozen=True)
class CellSum:
    """Cell `goal` += factor times cell `source`."""

    goal: int
    source: int
    factor: int


@dataclass(frozen=True)
class Work:
    """Cell `goal` += factor times product `product`; the factors that are sums are stored in the cells `sums`.

    Cells from the number of wanted blocks on are blocks beyond C. The previous content of `sums` is lost.
    """

    goal: int
    product: int
    factor: int
    sums: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """Steps that compute the wanted blocks of C, row by row, in the first cells, whatever their initial content."""

    cells: int
    beyond: int
    steps: tuple[CellSum | Work, ...]

    @property
    def additions(self) -> int:
        """Number of additions of cells."""
        return sum(isinstance(step, CellSum) for step in self.steps)

    def run(self, products: Sequence[Any]) -> list[Any]:
        """Compute the blocks of C from the products, each read once; cells that store sums of operands are None."""
        cells: list[Any] = [None] * (self.cells + self.beyond)
        for step in self.steps:
            if isinstance(step, Work):
                for place in step.sums:
                    cells[place] = None
            term = step.factor * (products[step.product] if isinstance(step, Work) else cells[step.source])
            cells[step.goal] = term if cells[step.goal] is None else cells[step.goal] + term
        return cells[: self.cells]


def weights(scheme: Scheme) -> IntArray:
    """Return W of a scheme over the integers, (wanted blocks of C, R).

    Raises:
        PlanError: the scheme has fractions.
    """
    factor = scheme.factors[2]
    if scheme.ring.name != "Z" or factor.denominator != 1:
        raise PlanError(f"in-place schedules are of schemes over Z, not over {scheme.ring}")
    wanted = scheme.target.kind_arrays[2].ravel() != Kind.ABSENT
    return factor.dense.reshape(scheme.rank, -1)[:, wanted].T.astype(np.int64)


def sums_of(scheme: Scheme) -> IntArray:
    """Return by product how many of its two factors are sums, not single blocks: 0, 1 or 2."""
    proper = [(np.abs(factor.dense).reshape(scheme.rank, -1).sum(axis=1) != 1) for factor in scheme.factors[:2]]
    return proper[0].astype(np.int64) + proper[1]


def blocks_beyond(scheme: Scheme) -> int:
    """Return the minimum number of blocks beyond the wanted ones of C with which some schedule computes the scheme.

    An order of the products needs rank(W_D) + s cells when a product with s sums is computed, D being
    the products computed so far, including it. Ranks only grow, so the best order computes the products
    with two sums first, then those with one: this evaluates the maximum over that order.
    """
    columns, sums = weights(scheme), sums_of(scheme)
    need = max(_rank(columns[:, sums >= least]) + least for least in (0, 1, 2) if (sums >= least).any())
    return max(0, need - len(columns))


def in_place(scheme: Scheme, beam: int = BEAM) -> Schedule:
    """Return a schedule with `blocks_beyond` blocks beyond C, and the fewest additions found.

    The search runs backwards from the end, where the cells are C, through row operations. Products that are
    a single cell are scheduled at once; else additions that reduce another one to a single cell, or that free a
    cell for sums. The `beam` cheapest schedules are followed.

    Raises:
        PlanError: the scheme has fractions, or row operations need some.
    """
    columns, beyond = weights(scheme), blocks_beyond(scheme)
    sums = tuple(sums_of(scheme).tolist())
    states = [_End(columns, frozenset(range(scheme.rank)), (), sums, beyond)]
    while any(state.left for state in states):
        found: dict[bytes, _End] = {}
        for state in states:
            for before in state.earlier():
                key = before.columns.tobytes() + bytes(sorted(before.left))
                if key not in found or before.cost < found[key].cost:
                    found[key] = before
        if not found:
            raise PlanError(f"no schedule of integer additions was found for {scheme.name or scheme.target}")
        states = sorted(found.values(), key=lambda state: (state.cost, state.weight))[:beam]
    schedules = [Schedule(len(columns), beyond, _needed(state.steps)) for state in states]
    return min(schedules, key=lambda schedule: schedule.additions)


@dataclass(frozen=True)
class _End:
    """The end of a schedule: the cells before it as rows of W, and the products `left` to schedule before it."""

    columns: IntArray
    left: frozenset[int]
    steps: tuple[CellSum | Work, ...]
    sums: tuple[int, ...]
    beyond: int

    @property
    def cost(self) -> int:
        return sum(isinstance(step, CellSum) for step in self.steps)

    @property
    def weight(self) -> int:
        """Number of remaining terms: the fewer, the fewer additions will follow."""
        return int(np.count_nonzero(self.columns[:, sorted(self.left)]))

    @property
    def free(self) -> list[int]:
        """Cells without a contribution of the remaining products, those beyond C first."""
        cells = len(self.columns)
        empty = np.flatnonzero(~self.columns[:, sorted(self.left)].any(axis=1)).tolist()
        return [*range(cells, cells + self.beyond), *empty]

    def earlier(self) -> list[_End]:
        """Return the ends extended at the front by a product or by additions."""
        free = self.free
        allowed = [r for r in sorted(self.left) if self.sums[r] <= len(free)]
        counts = np.count_nonzero(self.columns, axis=0)
        if single := [r for r in allowed if counts[r] == 1]:
            # Sequentially: scheduling one never reduces the free cells of the next.
            return [self._with(single[0], free)]
        if not allowed:
            return self._freed()
        least = min(counts[r] for r in allowed)
        return [end for r in allowed if counts[r] <= least + 1 for end in self._reduced(r)]

    def _with(self, r: int, free: list[int]) -> _End:
        """Return this end preceded by product r, which is a single cell."""
        cell = int(np.flatnonzero(self.columns[:, r])[0])
        step = Work(cell, r, int(self.columns[cell, r]), tuple(free[: self.sums[r]]))
        return self._before((step,), self.columns, self.left - {r})

    def _before(self, steps: tuple[CellSum | Work, ...], columns: IntArray, left: frozenset[int]) -> _End:
        return _End(columns, left, (*steps, *self.steps), self.sums, self.beyond)

    def _added(self, sums: list[CellSum]) -> _End:
        """Return this end preceded by additions of cells; the cells before them are obtained by undoing them."""
        columns = self.columns.copy()
        for one in sums:
            columns[one.goal] -= one.factor * columns[one.source]
        return self._before(tuple(sums), columns, self.left)

    def _reduced(self, r: int) -> list[_End]:
        """Return the ends preceded by additions that leave one term of column r, for every term dividing the others."""
        column = self.columns[:, r]
        terms = np.flatnonzero(column).tolist()
        return [
            self._added([CellSum(i, pivot, int(column[i] // column[pivot])) for i in terms if i != pivot])
            for pivot in terms
            if not (column[terms] % column[pivot]).any()
        ]

    def _freed(self) -> list[_End]:
        """Return the ends preceded by additions that empty a cell, for every shortest dependence between cells."""
        columns = self.columns[:, sorted(self.left)]
        rows = np.flatnonzero(columns.any(axis=1)).tolist()
        for length in range(2, MOST_TERMS + 1):
            found = []
            for terms in combinations(rows, length):
                for signs in product((1, -1), repeat=length - 1):
                    if not (columns[terms[0]] - np.array(signs) @ columns[list(terms[1:])]).any():
                        found.append(
                            self._added([CellSum(terms[0], i, sign) for i, sign in zip(terms[1:], signs, strict=True)])
                        )
            if found:
                return found
        return []


def _needed(steps: tuple[CellSum | Work, ...]) -> tuple[CellSum | Work, ...]:
    """Return the steps without additions of cells that are still empty."""
    filled: set[int] = set()
    kept = []
    for step in steps:
        if isinstance(step, Work):
            filled -= set(step.sums)
        if isinstance(step, Work) or step.source in filled:
            filled.add(step.goal)
            kept.append(step)
    return tuple(kept)


def _rank(matrix: IntArray) -> int:
    """Return the rank over the rationals."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix

    return int(DomainMatrix([[QQ(value) for value in row] for row in matrix.tolist()], matrix.shape, QQ).rank())
