"""Programs passed by a caller, as sources of candidates; the sources of a strategy that runs schemes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import matmul

from ...schemes_db.program import ProductKind, Program
from ...schemes_db.scheme import Scheme
from ..planning.strategy import Source
from ..request import Request
from .arrangements import arrangements, levels_of
from .chains import Chain, restored_chain
from .scheme_costs import SchemeCosts, costs_of_program


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
