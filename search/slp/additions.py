"""Minimisation of additions: straight-line programs of the three linear maps of a scheme, by randomised sharing.

Sharing also runs on the transpose of every map: a program of M^T, transposed, is a program of M with
columns(M) - rows(M) more additions (Tellegen's principle).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from ...errors import PlanError, VerificationError
from ...schemes_db import Program, Scheme, Z
from ...schemes_db.costs import additions as plain_additions
from ...schemes_db.costs import product_kinds
from ...schemes_db.factor import IntArray
from ...schemes_db.program import Lin, Load, Op, Product, Store
from ...schemes_db.straightline import program_of
from ...verify.outcome import Outcome
from ...verify.program import check_program, scheme_of
from ..terms.words import HALF_BITS
from .anneal import polished
from .linear_maps import PairedMap, ProgramLines, TernaryMap

LARGEST = 8
"""Largest numerator that sharing handles."""

BATCH = 20
"""Runs between two checks of the time limit."""

SCREEN_RUNS = 40
"""Screening runs of every scheme of a pool, in the order of additions without sharing, for up to half the time."""

FINALISTS = 4
"""Schemes that share the rest of the time."""

WALK_SHARE = 0.8
"""Share of a finalist's time that is spent on walks, with `flips`."""


@dataclass(frozen=True)
class Additions:
    """A program with few additions for a scheme, and the exact check that it computes the target.

    `before` is the scheme's number of additions without sharing, `runs` the runs on each map.
    """

    scheme: Scheme
    program: Program
    outcome: Outcome
    before: int
    runs: int

    @property
    def count(self) -> int:
        return self.program.additions


def fewer_additions(
    scheme: Scheme, *, seconds: float | None = None, runs: int | None = None, seed: int = 0
) -> Additions:
    """Find a program of the scheme with few additions by randomised restarts, proven to compute the scheme.

    Limits are `seconds`, or `runs` for each of the three maps and their transposes, which makes the
    result depend on the seed only; the default is 200 runs.

    Raises:
        PlanError: a coefficient is not real, or its numerator is above 8.
        VerificationError: the program does not compute the scheme (an internal error).
    """
    if scheme.gaussian:
        raise PlanError(f"{scheme!r} has coefficients that are not real: no program is made of it")
    if any(int(np.abs(factor.values).max(initial=0)) > LARGEST for factor in scheme.factors):
        raise PlanError(f"{scheme!r} has a coefficient above {LARGEST}: sharing needs smaller ones; see `lcma show`")
    limit = runs if runs is not None or seconds is not None else 200
    matrices = [factor.dense.reshape(scheme.rank, -1) for factor in scheme.factors]
    matrices[2] = matrices[2].T
    maps = [_minimisers(matrix, seed, 4 * f) for f, matrix in enumerate(matrices)]
    begin, done = time.perf_counter(), 0
    while limit is None or done < limit:
        batch = BATCH if limit is None else min(BATCH, limit - done)
        for minimisers in maps:
            for one, _ in minimisers:
                one.improve(batch)
        done += batch
        if seconds is not None and time.perf_counter() - begin >= seconds:
            break
    found = [[(one.lines(), back) for one, back in of if one.additions >= 0] for of in maps]
    best = (min((one.transposed() if back else one for one, back in of), key=lambda one: one.additions) for of in found)
    program = _program(scheme, list(best))
    simple = program_of(scheme)
    if simple.additions < program.additions:
        program = simple
    outcome = check_program(program)
    if not outcome.ok or scheme_of(program).digest != scheme.digest:
        raise VerificationError(f"the program is not {scheme!r}: {outcome.explain()}")
    return Additions(scheme, program, outcome, plain_additions(scheme), done)


def fewest_additions(
    schemes: Sequence[Scheme], *, seconds: float = 10.0, seed: int = 0, jobs: int = 1, flips: bool = False
) -> Additions:
    """Return the best program of a pool of schemes: all are screened, the best few get more runs.

    With `flips` the ternary ones among these are first replaced, by flips and changes of basis that
    lower the additions: the program is then of another scheme of the same rank, certified.

    Raises:
        PlanError: there are no schemes, or one has coefficients that sharing does not handle.
    """
    if not schemes:
        raise PlanError("no schemes to work on: name some, or a run folder with finds over Z or Q")
    fewer_additions(schemes[0], runs=1)  # compiles, so that the time limit excludes it
    begin, screened = time.perf_counter(), []
    for scheme in sorted(schemes, key=plain_additions):
        screened.append(fewer_additions(scheme, runs=SCREEN_RUNS, seed=seed))
        if time.perf_counter() - begin > seconds / 2:
            break
    finalists = sorted(screened, key=lambda result: result.count)[:FINALISTS]
    rest = max(0.0, seconds - (time.perf_counter() - begin)) / len(finalists)
    longer = []
    for result in finalists:
        scheme, left = result.scheme, rest
        blocks = max(kinds.size for kinds in scheme.target.kind_arrays)
        if flips and scheme.ring is Z and scheme.ternary and blocks <= HALF_BITS:
            scheme = polished(scheme, seconds=rest * WALK_SHARE, seed=seed, jobs=jobs)
            left = rest * (1 - WALK_SHARE)
        longer.append(fewer_additions(scheme, seconds=left, seed=seed))
    return min([*longer, *screened], key=lambda result: result.count)


def _minimisers(matrix: IntArray, seed: int, index: int) -> list[tuple[PairedMap | TernaryMap, bool]]:
    """Return minimisers of the map and of its transpose (True): `PairedMap`, and `TernaryMap` where possible."""
    found: list[tuple[PairedMap | TernaryMap, bool]] = []
    for place, transposed in enumerate((False, True)):
        one = np.ascontiguousarray(matrix.T if transposed else matrix)
        found.append((PairedMap(one, seed, index + place), transposed))
        if one.shape[1] <= HALF_BITS and (np.abs(one) <= 1).all():
            found.append((TernaryMap(one, seed, index + 2 + place), transposed))
    return found


def _program(scheme: Scheme, maps: list[ProgramLines]) -> Program:
    """Build the program of three maps; denominators become coefficients of the stores."""
    _, k, n = scheme.target.shape
    ops: list[Op] = []
    fresh = count()

    def value_of(kind: type[Load | Lin | Product], *arguments: Any) -> int:
        """Append an op that makes a value; return its id."""
        ops.append(kind(value := next(fresh), *arguments))
        return value

    def append(lines: ProgramLines, ids: dict[int, int]) -> None:
        """Append the lines as ops and enter their values in `ids`."""
        for value, line in enumerate(lines.lines, lines.inputs):
            ids[value] = value_of(Lin, tuple((coefficient, ids[source]) for coefficient, source in line))

    sides: list[list[int]] = []
    for operand, cols, lines in (("A", k, maps[0]), ("B", n, maps[1])):
        uses = [*lines.outputs, *(term for line in lines.lines for term in line)]
        used = sorted({value for _, value in uses if 0 <= value < lines.inputs})
        ids = {block: value_of(Load, operand, divmod(block, cols)) for block in used}
        append(lines, ids)
        signed: dict[tuple[int, int], int] = {}
        for coefficient, value in dict.fromkeys(lines.outputs):
            same = coefficient == 1
            signed[coefficient, value] = ids[value] if same else value_of(Lin, ((coefficient, ids[value]),))
        sides.append([signed[term] for term in lines.outputs])
    ids = {r: value_of(Product, sides[0][r], sides[1][r], kind) for r, kind in enumerate(product_kinds(scheme))}
    append(maps[2], ids)
    denominator = math.prod(scheme.denominators)
    for block, (coefficient, value) in enumerate(maps[2].outputs):
        if value >= 0:
            scaled = Fraction(coefficient, denominator)
            ops.append(Store(divmod(block, n), ((int(scaled) if scaled.denominator == 1 else scaled, ids[value]),)))
    return Program(scheme.target, scheme.ring, tuple(ops))
