"""Fewer additions: straight-line programs of the three linear maps of a scheme, by randomised sharing.

Every map is also worked on its transpose: a program of M^T read backwards is a program of M, and
takes as many additions more as M has columns more than rows (Tellegen's principle).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..errors import PlanError, VerificationError
from ..schemes_db import Program, Scheme
from ..schemes_db.costs import additions as plain_additions
from ..schemes_db.costs import product_kinds
from ..schemes_db.program import Lin, Load, Op, Product, Store
from ..schemes_db.straightline import program_of
from ..verify.outcome import Outcome
from ..verify.program import check_program, scheme_of
from .seeds import splitmix

IntArray = npt.NDArray[np.int64]

LARGEST = 8
"""The largest coefficient that sharing handles."""

BATCH = 20
"""Runs between two looks at the clock."""


@dataclass(frozen=True)
class Additions:
    """A program with few additions for a scheme, and the exact check that it computes the same."""

    scheme: Scheme
    program: Program
    outcome: Outcome
    before: int
    runs: int

    @property
    def count(self) -> int:
        return self.program.additions


@dataclass(frozen=True)
class _Lines:
    """A linear map as lines: line k is a sum over inputs and earlier lines; `outputs` say which multiple of
    which value every row is (value -1: zero). Values are the inputs, then the lines."""

    inputs: int
    lines: tuple[tuple[tuple[int, int], ...], ...]
    """(coefficient, value) pairs."""
    outputs: tuple[tuple[int, int], ...]

    @property
    def additions(self) -> int:
        return sum(len(line) - 1 for line in self.lines if line)


class LinearMap:
    """One linear map on the way to fewer additions."""

    def __init__(self, matrix: IntArray, seed: int, index: int) -> None:
        self._matrix, self._columns = matrix, matrix.shape[1]
        self._capacity = self._columns + int(np.count_nonzero(matrix))
        self._capacity = min(self._capacity, self._columns + 4 * max(matrix.shape) + 16)
        self._start = np.zeros((len(matrix), self._capacity), dtype=np.int8)
        self._start[:, : self._columns] = matrix
        largest = max(1, int(np.abs(matrix).max(initial=0)))
        self._table, self._pairs = _ratios(largest)
        self._best = np.zeros((self._capacity, 3), dtype=np.int32)
        self._steps, self.additions = 0, -1
        self._rng = np.array([splitmix(seed, index)], dtype=np.uint64)

    def improve(self, runs: int) -> None:
        from .sharing import shared_often

        self._steps, self.additions = shared_often(
            self._start,
            self._columns,
            self._table,
            self._pairs,
            self._best,
            self._steps,
            self.additions,
            runs,
            self._rng,
        )

    def lines(self) -> _Lines:
        """The best program so far."""
        m = self._start.astype(np.int64)
        lines: list[tuple[tuple[int, int], ...]] = []
        for new, (i, j, ratio) in enumerate(self._best[: self._steps].tolist(), self._columns):
            p, q = self._pairs[ratio].tolist()
            lines.append(((p, i), (q, j)))
            content = m[:, i] // p
            rows = (m[:, i] != 0) & (content * p == m[:, i]) & (content * q == m[:, j])
            m[rows, new] = content[rows]
            m[rows, i] = m[rows, j] = 0
        outputs = []
        for row in m:
            terms = tuple((int(row[c]), int(c)) for c in np.flatnonzero(row))
            if len(terms) > 1:
                lines.append(terms)
                outputs.append((1, self._columns + len(lines) - 1))
            else:
                outputs.append(terms[0] if terms else (0, -1))
        return _Lines(self._columns, tuple(lines), tuple(outputs))


@lru_cache(maxsize=16)
def _ratios(largest: int) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int32]]:
    """The ratio of every two coefficients by number, and the coprime pair p > 0, q of every number."""
    pairs: dict[tuple[int, int], int] = {}
    table = np.zeros((2 * largest + 1, 2 * largest + 1), dtype=np.int16)
    for x in range(-largest, largest + 1):
        for y in range(-largest, largest + 1):
            if x and y:
                content = math.gcd(x, y) * (1 if x > 0 else -1)
                pair = x // content, y // content
                table[x + largest, y + largest] = pairs.setdefault(pair, len(pairs))
    return table, np.array(list(pairs), dtype=np.int32)


def _transposed(lines: _Lines) -> _Lines:
    """The program read backwards: inputs and outputs change places, and every use becomes a term."""
    values = lines.inputs + len(lines.lines)
    uses: list[list[tuple[int, int]]] = [[] for _ in range(values)]
    for row, (coefficient, value) in enumerate(lines.outputs):
        if value >= 0:
            uses[value].append((coefficient, row))
    made: list[tuple[tuple[int, int], ...]] = []
    place: dict[int, tuple[int, int]] = {}
    rows = len(lines.outputs)
    for value in reversed(range(values)):
        terms = tuple(uses[value])
        if len(terms) == 1 or not terms:
            place[value] = terms[0] if terms else (0, -1)
        else:
            made.append(terms)
            place[value] = (1, rows + len(made) - 1)
        coefficient, source = place[value]
        if value >= lines.inputs and source >= 0:
            for factor, used in lines.lines[value - lines.inputs]:
                uses[used].append((factor * coefficient, source))
    return _Lines(rows, tuple(made), tuple(place[value] for value in range(lines.inputs)))


def fewer_additions(
    scheme: Scheme, *, seconds: float | None = None, runs: int | None = None, seed: int = 0
) -> Additions:
    """A program of the scheme with as few additions as randomised restarts find, proven to compute the scheme.

    Limits are `seconds`, or `runs` for each of the three maps and their transposes, which makes the
    result depend on the seed only; without either 200 runs.

    Raises:
        PlanError: a coefficient is not real, or its numerator is above 8.
        VerificationError: the program is not the scheme (a fault of ours).
    """
    if scheme.gaussian:
        raise PlanError(f"{scheme!r} has coefficients that are not real: no program is made of it")
    if any(int(np.abs(factor.values).max(initial=0)) > LARGEST for factor in scheme.factors):
        raise PlanError(f"{scheme!r} has a coefficient above {LARGEST}: sharing needs smaller ones; see `lcma show`")
    limit = runs if runs is not None or seconds is not None else 200
    matrices = [factor.dense.reshape(scheme.rank, -1) for factor in scheme.factors]
    matrices[2] = matrices[2].T
    maps = [(LinearMap(matrix, seed, 2 * f), LinearMap(matrix.T, seed, 2 * f + 1)) for f, matrix in enumerate(matrices)]
    begin, done = time.perf_counter(), 0
    while limit is None or done < limit:
        batch = BATCH if limit is None else min(BATCH, limit - done)
        for pair in maps:
            for one in pair:
                one.improve(batch)
        done += batch
        if seconds is not None and time.perf_counter() - begin >= seconds:
            break
    best = []
    for forth, back in maps:
        choices = (forth.lines(), _transposed(back.lines()))
        best.append(min(choices, key=lambda lines: lines.additions))
    program = _program(scheme, best)
    simple = program_of(scheme)
    if simple.additions < program.additions:
        program = simple
    outcome = check_program(program)
    if not outcome.ok or scheme_of(program).digest != scheme.digest:
        raise VerificationError(f"the program is not {scheme!r}: {outcome.explain()}")
    return Additions(scheme, program, outcome, plain_additions(scheme), done)


def _program(scheme: Scheme, maps: list[_Lines]) -> Program:
    """The ops of three maps; denominators become coefficients of the stores."""
    _, k, n = scheme.target.shape
    ops: list[Op] = []
    fresh = 0
    sides: list[list[int]] = []
    for operand, cols, lines in (("A", k, maps[0]), ("B", n, maps[1])):
        used = sorted(
            {value for line in lines.lines for _, value in line if value < lines.inputs}
            | {value for _, value in lines.outputs if 0 <= value < lines.inputs}
        )
        ids = {}
        for block in used:
            ops.append(Load(fresh, operand, divmod(block, cols)))
            ids[block] = fresh
            fresh += 1
        fresh = _append(ops, lines, ids, fresh)
        side, signed = [], {}
        for coefficient, value in lines.outputs:
            if coefficient != 1 and (coefficient, value) not in signed:
                ops.append(Lin(fresh, ((coefficient, ids[value]),)))
                signed[coefficient, value] = fresh
                fresh += 1
            side.append(ids[value] if coefficient == 1 else signed[coefficient, value])
        sides.append(side)
    ids = {}
    for r, kind in enumerate(product_kinds(scheme)):
        ops.append(Product(fresh, sides[0][r], sides[1][r], kind))
        ids[r] = fresh
        fresh += 1
    denominator = math.prod(scheme.denominators)
    lines = maps[2]
    fresh = _append(ops, lines, ids, fresh)
    for block, (coefficient, value) in enumerate(lines.outputs):
        if value >= 0:
            scaled = Fraction(coefficient, denominator)
            ops.append(Store(divmod(block, n), ((int(scaled) if scaled.denominator == 1 else scaled, ids[value]),)))
    return Program(scheme.target, scheme.ring, tuple(ops))


def _append(ops: list[Op], lines: _Lines, ids: dict[int, int], fresh: int) -> int:
    """The lines as ops; `ids` learns their values. Returns the next free id."""
    for value, line in enumerate(lines.lines, lines.inputs):
        ops.append(Lin(fresh, tuple((coefficient, ids[source]) for coefficient, source in line)))
        ids[value] = fresh
        fresh += 1
    return fresh
