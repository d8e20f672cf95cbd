"""Recipes: short texts that specify what a torch operator runs, which a compiled graph can store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ...errors import PlanError
from ...schemes_db.algebra import permute
from ...schemes_db.scheme import Scheme

AUTO = "auto"
_LIMITS = {"max_error": float, "max_workspace": int, "max_abs": int, "precision": str}

_schemes: dict[str, Scheme] = {}


@dataclass(frozen=True)
class ProductRecipe:
    """The schemes by level (names of the catalogue, or digests), outermost first; () is the planner's choice.

    `where_faster`: run them if they are predicted to gain, else the vendor's product.
    As text: "auto", "strassen", "laderman/strassen?@scheme:batched;max_workspace=1000000".
    """

    levels: tuple[str, ...] = ()
    where_faster: bool = False
    strategy: str | None = None
    max_error: float | None = None
    max_workspace: int | None = None
    max_abs: int | None = None
    precision: str | None = None

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> ProductRecipe:
        """Parse a recipe; equal texts return the same object.

        Raises:
            PlanError: the text is no recipe.
        """
        schemes, *limits = text.split(";")
        names, at, strategy = schemes.partition("@")
        where_faster = names.rstrip().endswith("?")
        levels = tuple(name.strip() for name in names.rstrip().removesuffix("?").split("/"))
        if not all(levels) or (at and not strategy.strip()):
            raise PlanError(f"recipe {text!r} names no scheme; write auto, or scheme/scheme@strategy;max_error=1e-3")
        values = {}
        for limit in limits:
            name, _, value = limit.partition("=")
            try:
                values[name.strip()] = _LIMITS[name.strip()](value)
            except (KeyError, ValueError):
                mend = "write max_error=X or max_workspace=N"
                raise PlanError(f"recipe {text!r} has a limit {limit!r}; {mend}") from None
        return ProductRecipe(() if levels == (AUTO,) else levels, where_faster, strategy.strip() or None, **values)

    @cached_property
    def _hash(self) -> int:
        limits = self.max_error, self.max_workspace, self.max_abs, self.precision
        return hash((self.levels, self.where_faster, self.strategy, limits))

    def __hash__(self) -> int:
        """Return the precomputed hash: every product looks its recipe up."""
        return self._hash

    def __str__(self) -> str:
        text = ("/".join(self.levels) or AUTO) + ("?" if self.where_faster else "")
        text += f"@{self.strategy}" if self.strategy else ""
        limits = ((name, getattr(self, name)) for name in _LIMITS)
        return text + "".join(f";{name}={value}" for name, value in limits if value is not None)

    def schemes(self) -> list[Scheme]:
        """Return the scheme of every level, each proven once.

        Raises:
            CatalogError: a name is unknown.
            PlanError, VerificationError: a scheme cannot be run.
        """
        from ..codegen.certified import certified

        return [_schemes.get(name) or certified(name) for name in self.levels]

    @cached_property
    def is_general(self) -> bool:
        """True if the schemes are for full matrices, so that matrices which share an operand may be joined to one."""
        return all(scheme.target.is_general for scheme in self.schemes())

    def require_general(self, what: str) -> None:
        """Raise PlanError unless the schemes are for full matrices, which `what` multiplies."""
        for scheme in self.schemes():
            if not scheme.target.is_general:
                name = scheme.name or scheme.digest[:12]
                raise PlanError(f"{name} is a scheme for {scheme.target}; {what} general matrices")

    def permuted(self, order: str) -> ProductRecipe:
        """Return the recipe for the product with its three sizes in another order, such as "mnk".

        A scheme of a cubic grid is used unchanged for all orders.
        """
        return replace(self, levels=tuple(_permuted(name, order) for name in self.levels))


def named(scheme: str | Scheme) -> str:
    """Return the name of a scheme in recipes; a scheme object is proven and registered by its digest.

    Raises:
        PlanError, VerificationError: the scheme cannot be run.
    """
    if isinstance(scheme, str):
        return scheme
    from ..codegen.certified import certified

    _schemes[scheme.digest] = certified(scheme)
    return scheme.digest


def _permuted(name: str, order: str) -> str:
    scheme = ProductRecipe((name,)).schemes()[0]
    return name if len(set(scheme.target.shape)) == 1 and scheme.target.is_general else named(permute(scheme, order))
