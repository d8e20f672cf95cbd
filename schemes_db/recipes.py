"""Products of blocks by shipped schemes that give low ranks in formats up to 16 x 16 x 16, as data."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources

from .scheme import Scheme
from .shared_factors import Group, parse_groups
from .uneven import Shape, Sizes, inner_products

FILE = "recipes.csv"
COLUMNS = ("format", "ring", "outer", "rank", "m", "k", "n", "groups", "parts")


@dataclass(frozen=True)
class Recipe:
    """How the products of a shipped scheme are put together to those of a larger format.

    `ring` is the smallest in which it holds: "ZT" (of ternary schemes it makes ternary ones; in every other ring, too),
    "Z", "Q" or "Z2"; `rank` and `blocks` are the scheme's; `parts` are the formats of the inner products, sides in
    increasing order, and how many there are.
    """

    outer: str
    ring: str
    rank: int
    sizes: Sizes
    groups: tuple[Group, ...]
    parts: tuple[tuple[Shape, int], ...]

    @classmethod
    def of(cls, name: str, outer: Scheme, sizes: Sizes, groups: tuple[Group, ...]) -> Recipe:
        """The recipe with the parts that these blocks and groups need."""
        # Sums over a group add coefficients of the inner schemes, so they need not stay between -1 and 1.
        ternary = outer.ternary and not outer.ring.characteristic and not groups
        counts = Counter(in_order(one.shape) for one in inner_products(outer, sizes, groups))
        return cls(
            name,
            "ZT" if ternary else outer.ring.name,
            outer.rank,
            sizes,
            groups,
            tuple(sorted(counts.items(), reverse=True)),
        )

    @cached_property
    def blocks(self) -> Shape:
        """Numbers of blocks along m, k and n: the format of the outer scheme."""
        m, k, n = map(len, self.sizes)
        return m, k, n

    @cached_property
    def shape(self) -> Shape:
        """The format that it makes, sides in increasing order."""
        return in_order(tuple(map(sum, self.sizes)))

    def holds_over(self, ring: str) -> bool:
        """Whether the outer scheme is one over a ring, "ZT" for ternary ones over Z."""
        wider = {"ZT": (ring,), "Z": ("Z", "Q", "Q(i)"), "Q": ("Q", "Q(i)")}
        return ring in wider.get(self.ring, (self.ring,))


def in_order(shape: Iterable[int]) -> Shape:
    """Return the three sides in increasing order."""
    m, k, n = sorted(shape)
    return m, k, n


def shape_text(shape: Shape) -> str:
    """A format as text, such as 2x3x4."""
    return "x".join(map(str, shape))


def render(recipes: Iterable[Recipe]) -> str:
    """The table of recipes as CSV, by format."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in sorted(recipes, key=lambda one: (one.shape, one.ring, one.outer, one.sizes, one.groups)):
        parts = " ".join(f"{shape_text(shape)}*{count}" for shape, count in one.parts)
        sizes = ["+".join(map(str, axis)) for axis in one.sizes]
        writer.writerow(
            (shape_text(one.shape), one.ring, one.outer, one.rank, *sizes, ";".join(map(str, one.groups)), parts)
        )
    return out.getvalue()


@lru_cache(maxsize=1)
def shipped_recipes() -> tuple[Recipe, ...]:
    """The recipes of the shipped table."""
    text = (resources.files("lcma.schemes_db") / "data" / FILE).read_text(encoding="utf-8")
    return tuple(map(_recipe, csv.DictReader(text.splitlines())))


def _recipe(row: dict[str, str]) -> Recipe:
    m, k, n = (tuple(map(int, row[axis].split("+"))) for axis in "mkn")
    parts = []
    for part in row["parts"].split():
        name, _, count = part.partition("*")
        parts.append((in_order(map(int, name.split("x"))), int(count)))
    return Recipe(row["outer"], row["ring"], int(row["rank"]), (m, k, n), parse_groups(row["groups"]), tuple(parts))
