"""One record a scheme of the catalogue: commands and pages read its figures, and parse its data once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..errors import DamagedRowError, VerificationError
from ..schemes_db import Certificate, Scheme, Target, parse_ring, parse_target
from ..schemes_db.catalog import Catalog
from ..schemes_db.pareto import CatalogueRow
from ..schemes_db.ranks import KnownRank, best_known
from ..verify import certify


@dataclass(eq=False)
class SchemeRecord:
    """A row of the catalogue with what is said of it; what the row does not hold is read once, when it is asked for.

    `best` marks the best of its target and ring among the rows that `site.listing` lists. `page` is relative to the
    site's root.
    """

    entry: CatalogueRow
    catalog: Catalog
    best: bool = False

    @cached_property
    def stored(self) -> tuple[Scheme, Certificate]:
        """The scheme and its certificate, as the catalogue holds them."""
        return self.catalog.find(self.entry.digest)

    @property
    def scheme(self) -> Scheme:
        return self.stored[0]

    @property
    def certificate(self) -> Certificate:
        return self.stored[1]

    def prove(self) -> None:
        """Prove the scheme now.

        Raises:
            DamagedRowError: the row's data are another scheme, or one that is not valid.
        """
        try:
            certify(self.scheme)
        except VerificationError as error:
            raise DamagedRowError(f"the catalogue's row {self.entry.digest[:12]} is damaged: {error}") from None

    @cached_property
    def target(self) -> Target:
        return parse_target(self.entry.target)

    @cached_property
    def known(self) -> KnownRank | None:
        """The best known rank."""
        return best_known(self.target, parse_ring(self.entry.ring))

    @property
    def cost(self) -> float:
        """F + H/2; the rank where no product is half."""
        return self.entry.products

    @property
    def known_cost(self) -> float | None:
        """F + H/2 of the best known scheme."""
        if self.known is None or self.known.full is None or self.known.half is None:
            return self.known.rank if self.known else None
        return self.known.full + self.known.half / 2

    @property
    def gap(self) -> float | None:
        """The cost above the best known one; negative where ours is lower."""
        return None if self.known_cost is None else self.cost - self.known_cost

    @property
    def level(self) -> str:
        """The heat of the gap."""
        return level(self.cost, self.known_cost)

    @property
    def label(self) -> str:
        """The target's name, without the blocks of a mask, which may be thousands."""
        name = self.entry.target
        return name if len(name) <= 32 else f"{name.partition('(')[0]}(…)"

    @property
    def ternary(self) -> bool:
        """True if the coefficients are -1, 0 and 1, where that says something."""
        return self.entry.ternary and not parse_ring(self.entry.ring).characteristic

    @property
    def stem(self) -> str:
        """The name of its files, such as 2x2x2-r7-0123456789abcdef."""
        sizes = "x".join(map(str, self.target.shape))
        suffix = self.entry.target.partition(":")[2]
        plain = suffix.replace("-", "").replace(":", "").isalpha()
        form = f"-{suffix.replace(':', '-')}" if plain else "-blocks" if suffix else ""
        return f"{sizes}{form}-r{self.entry.rank}-{self.entry.digest[:16]}"

    @property
    def page(self) -> str:
        return f"schemes/{self.stem}.html"


def level(cost: float, known: float | None) -> str:
    """The heat of a gap: `record`, g0 (equal) to g4 (more than 10% above), `none` without a figure."""
    if known is None:
        return "none"
    if cost < known:
        return "record"
    excess = (cost - known) / known
    return next((f"g{step}" for step, bound in enumerate((0, 0.02, 0.05, 0.10)) if excess <= bound), "g4")
