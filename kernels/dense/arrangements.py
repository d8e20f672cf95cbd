"""Arrangements of the levels of a recursion: nested programs, with neighbouring levels flattened or not.

And the programs that callers pass, as sources of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import matmul

from ...errors import PlanError
from ...schemes_db.flatten import flatten
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.scheme import Scheme
from ..codegen.programs import program_for
from ..identity import IdentityKey
from ..planning.strategy import Source
from ..request import Request
from .chains import Chain, restored_chain
from .pool import MAX_FLAT_RANK
from .scheme_costs import SchemeCosts, costs_of_program

MAX_LEVELS = 8
"""Maximum levels of recursion: more have thousands of arrangements, and no product gains."""

Level = tuple[Program, ...]
"""The programs for one level; each kind of product is computed by the first that supports it."""


def levels_of(schemes: Scheme | Sequence[Scheme | Sequence[Scheme]], levels: int) -> tuple[Level, ...]:
    """Return the programs of every level: one scheme used `levels` times, or a sequence with one entry per level.

    An entry may be several schemes, for example one for the half products and one for the full ones.

    Raises:
        PlanError: `levels` is negative, or is not the length of the sequence.
    """
    if isinstance(schemes, Scheme):
        if levels < 0:
            raise PlanError(f"levels must be at least 0, not {levels}")
        return ((program_for(schemes),),) * min(levels, MAX_LEVELS + 1)
    entries = [(entry,) if isinstance(entry, Scheme) else tuple(entry) for entry in schemes]
    if levels not in (1, len(entries)):
        raise PlanError(f"levels is {levels}, but {len(entries)} schemes are given; leave levels out")
    if not all(entries):
        raise PlanError("a level has no scheme")
    if len(entries) and len(entries[0]) != 1:
        raise PlanError("the first level must have one scheme")
    return tuple(tuple(program_for(scheme) for scheme in entry) for entry in entries)


def is_classical(program: Program) -> bool:
    """Return whether a program is one product, the classical 1x1x1."""
    return program.target.shape == (1, 1, 1) and program.target.is_general and program.rank == 1


def computes(program: Program, head: Program, kind: ProductKind) -> bool:
    """Return whether the program is one for products of this kind of a head: half ones by triangular schemes only."""
    target = program.target
    return target.is_general is not kind.half and kind.reason_against(head.target, target) is None


def arrangements(levels: Sequence[Level]) -> list[tuple[str, Program]]:
    """Return all arrangements of the levels with labels: "2x2x2:7 * 2x2x2:7" nested, "(2x2x2:7 2x2x2:7)" flattened.

    Raises:
        PlanError: there are no levels or too many, the first is for A A^T alone, or no program of a level computes any
            product of the one above.
    """
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise PlanError(f"levels must be 1 to {MAX_LEVELS}, not {len(levels)}")
    if (target := levels[0][0].target).shared:
        raise PlanError(f"{target} is of a matrix and its own transpose; call lcma.syrk")
    return _cuts(list(levels), levels[0][0], 0)


def _cuts(levels: list[Level], head: Program, depth: int) -> list[tuple[str, Program]]:
    """Return the arrangements of levels[depth:] whose first level is `head`."""
    label = f"{head.target}:{head.rank}"
    if depth + 1 == len(levels):
        return [(label, head)]
    kinds = sorted({op.kind for op in head.products})
    below = {kind: next((p for p in levels[depth + 1] if computes(p, head, kind)), None) for kind in kinds}
    found = {kind: program for kind, program in below.items() if program is not None}
    if not found:
        raise PlanError(f"level {depth + 2} has no scheme for the {' and '.join(kinds)} products of {head.target}")
    found_cuts: list[tuple[str, Program]] = []
    inner: dict[ProductKind, list[tuple[str, Program]]] = {}
    ended: dict[ProductKind, PlanError] = {}
    for kind, program in found.items():
        try:
            inner[kind] = _cuts(levels, program, depth + 1)
        except PlanError as error:  # one branch of a mixed level may end before another
            ended[kind], inner[kind] = error, [(f"{program.target}:{program.rank}", program)]
    if len(ended) == len(inner):
        raise next(iter(ended.values()))  # a scheme that the caller names would compute nothing
    for i in range(max(map(len, inner.values()))):
        chosen = {kind: options[min(i, len(options) - 1)] for kind, options in inner.items()}
        names = " | ".join(dict.fromkeys(name for name, _ in chosen.values()))
        found_cuts.append((f"{label} * {names}", head.nested({kind: program for kind, (_, program) in chosen.items()})))
    full = found.get(ProductKind.FULL)
    # If blocks are absent, the caller's sizes determine the outer division, so it must not be flattened.
    if (
        full is not None
        and kinds == [ProductKind.FULL]
        and head.target.is_general
        and not full.inner
        and head.rank * full.rank <= MAX_FLAT_RANK
    ):
        flat = _flattened(IdentityKey(head), IdentityKey(full))
        found_cuts += [
            (name.replace(f"{flat.target}:{flat.rank}", f"({label} {full.target}:{full.rank})", 1), program)
            for name, program in _cuts(levels, flat, depth + 1)
        ]
    return found_cuts


@lru_cache(maxsize=64)
def _flattened(outer: IdentityKey, inner: IdentityKey) -> Program:
    return flatten(outer.held, inner.held)


@dataclass(frozen=True)
class GivenProgram:
    """A program with its label; a `Source`."""

    label: str
    program: Program = field(compare=False, repr=False)

    @property
    def key(self) -> str:
        return f"program:{self.program.digest}"

    @property
    def costs(self) -> tuple[SchemeCosts, ...] | None:
        """The costs of every level, outermost first; None if not all products are full, or blocks are absent."""
        levels: list[SchemeCosts] = []
        program: Program | None = self.program
        while program is not None:
            inner = dict(program.inner)
            if not program.target.is_general or not set(inner) <= {ProductKind.FULL}:
                return None
            levels.append(costs_of_program(program))
            program = inner.get(ProductKind.FULL)
        return tuple(levels)

    @property
    def flat_costs(self) -> SchemeCosts | None:
        """The costs of all levels as one level, if every level has costs."""
        return None if (levels := self.costs) is None else reduce(matmul, levels)


def given(scheme: Scheme | Sequence[Scheme | Sequence[Scheme]], levels: int = 1) -> list[GivenProgram]:
    """Return every arrangement of proven schemes in levels: nested, and neighbouring levels flattened.

    Raises:
        PlanError: the levels are invalid, or a level has no scheme for the products above it.
    """
    return [GivenProgram(label, program) for label, program in arrangements(levels_of(scheme, levels))]


class SchemeStrategy:
    """Mixin of the strategies that run chains of schemes and given programs."""

    source_kinds = Chain, GivenProgram

    def source_of(self, key: str, request: Request) -> Source | None:
        return restored_chain(key)
