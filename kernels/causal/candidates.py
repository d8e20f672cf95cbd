"""Programs for triangular products: levels of triangular schemes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from ...errors import CatalogError, PlanError
from ...schemes_db.costs import growth_factor
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.resolve import resolve
from ...schemes_db.scheme import Scheme
from ...schemes_db.shipped import shipped, shipped_names
from ...schemes_db.straightline import program_of
from ...schemes_db.symmetry import Triangle, derive, triangle_of
from ..codegen.certified import certified
from ..planning.machine import Machine
from ..planning.strategy import Proposal, Source, Strategy
from ..request import Request

FAMILY = "causal"

MOST_GROWTH = 100.0
"""Schemes with a larger growth factor are used only by name, and never proposed.

Measured, float32: 22+12 has 2.4 times the error of the classical product in the output of attention, ECA 1.2 times.
"""

HALVES = "2x2x2-tri-left-r6"
"""The scheme of half products where a scheme on a grid of two computes the full ones."""


@dataclass(frozen=True)
class TriangularSource:
    """The program of a triangular product by a name, or by a scheme that a caller passes; a `Source`.

    Names: SCHEME, and SCHEME/DENSE for two levels: full products by the dense scheme, half products by two full and
    four half ones.
    """

    name: str
    triangle: Triangle
    given: Scheme | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        return self.name if self.given is None else f"scheme:{self.given.digest}"

    @property
    def label(self) -> str:
        return self.name

    @cached_property
    def program(self) -> Program:
        """The program of the product.

        Raises:
            PlanError: the scheme is not for triangular products, or is exact for scalars only.
            CatalogError: there is no such scheme.
        """
        if self.given is not None:
            return scheme_program(certified(self.given), self.triangle)
        return _program(self.name, self.triangle)


@lru_cache(maxsize=256)
def _program(name: str, triangle: Triangle) -> Program:
    outer, _, dense = name.partition("/")
    program = scheme_program(resolve(outer)[0], triangle)
    if not dense:
        return program
    kinds = {op.kind for op in program.products if op.kind.half}
    halves = {kind: scheme_program(resolve(HALVES)[0], Triangle(kind.side, kind.of_upper)) for kind in kinds}
    return program.nested({ProductKind.FULL: program_of(certified(resolve(dense))), **halves})


@lru_cache(maxsize=64)
def scheme_program(scheme: Scheme, triangle: Triangle) -> Program:
    """Return the program of a triangular product by a scheme for any triangular product, proven for this one.

    Raises:
        PlanError: the scheme is not for triangular products, or its grid does not suit this one.
    """
    if triangle_of(scheme.target) is None:
        raise PlanError(f"{scheme.name or scheme.target} is not for triangular products")
    if triangle.shared:
        if scheme.target == triangle.target(*scheme.target.shape):
            return program_of(certified(scheme))
        program = scheme_program(scheme, replace(triangle, shared=False))
        return replace(program, target=replace(program.target, shared=True))
    m, k, n = scheme.target.shape
    for grid in sorted({(m, k, n), (k, n, m), (n, m, k), (n, k, m), (k, m, n), (m, n, k)}):
        square = {"left": grid[0] == grid[1], "right": grid[1] == grid[2], "out": grid[0] == grid[2]}
        if square[triangle.side]:
            try:
                return program_of(certified(derive(scheme, triangle.target(*grid))))
            except PlanError as error:
                reason = error
    raise reason


@lru_cache(maxsize=1)
def scheme_names() -> tuple[str, ...]:
    """Return the shipped schemes for triangular products with square grids."""
    found = []
    for name in shipped_names():
        scheme = shipped(name).scheme
        if triangle_of(scheme.target) and len(set(scheme.target.shape)) == 1 and not scheme.ring.characteristic:
            found.append(name)
    return tuple(found)


@lru_cache(maxsize=1)
def stable_scheme_names() -> tuple[str, ...]:
    """Return the shipped schemes for triangular products with growth factors up to MOST_GROWTH."""
    return tuple(name for name in scheme_names() if growth_factor(shipped(name).scheme) <= MOST_GROWTH)


def named_sources(scheme: object, triangle: Triangle) -> list[TriangularSource]:
    """Return the sources of a scheme that a caller passes for a triangular product: a name, NAME/DENSE, or a scheme.

    Raises:
        PlanError: the argument is none of these, or not for triangular products.
        CatalogError: there is no such scheme.
    """
    if isinstance(scheme, str):
        source = TriangularSource(scheme, triangle)
        _ = source.program
        return [source]
    if isinstance(scheme, tuple) and scheme and isinstance(scheme[0], Scheme):
        scheme = scheme[0]
    if isinstance(scheme, Scheme):
        return [TriangularSource(scheme.name or f"{scheme.target}:{scheme.rank}", triangle, scheme)]
    raise PlanError(f"a triangular product takes one scheme or its name, not {scheme!r}")


@dataclass(frozen=True)
class TriangularStrategy(Strategy):
    """A strategy for triangular products: "scheme" runs triangular schemes, any other name has no program."""

    family: str = FAMILY

    @abstractmethod
    def schemes(self, request: Request, machine: Machine) -> Sequence[str]:
        """Return the names of the schemes that may be worth running."""

    def propose(self, request: Request, machine: Machine) -> Sequence[Proposal] | str:
        """See `Strategy.propose`; what cannot run is proposed first, to be refused with a reason."""
        found = [self.candidate()]
        if self.name == "scheme":
            sources = (TriangularSource(name, request.its_triangle) for name in self.schemes(request, machine))
            found = [self.candidate(source, self.methods[0]) for source in sources]
        refused = [one for one in found if self.can_run(one, request, machine)]
        return [Proposal(0.0, one) if one in refused else self.proposal(one, request, machine) for one in found]

    @property
    def source_kinds(self) -> tuple[type[Any], ...]:
        return (TriangularSource,) if self.name == "scheme" else ()

    def source_of(self, key: str, request: Request) -> Source | None:
        source = TriangularSource(key, request.its_triangle)
        try:
            _ = source.program
        except (CatalogError, PlanError):
            return None
        return source
