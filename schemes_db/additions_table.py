"""The fewest additions at hand of every format at its best known rank, beside those of the tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .algebra import naive
from .program import Program
from .program_composition import sum_program, tensor_program
from .ranks import KnownAdditions, best_known, known_additions
from .ring import Z
from .shipped import kept_program, shared_additions, shipped
from .straightline import program_of
from .target import Target, parse_target

NAIVE = "naive "
"""The prefix of a format in a recipe that uses all of its products."""


@dataclass(frozen=True)
class AdditionsRecipe:
    """A program that no scheme in the catalogue has: composed of two others, or of a polished scheme.

    `do` is "tensor", the first the outer one, or "sum" along `axis`, of programs of shipped schemes, of the naive
    one, or of recipes, by name; or "polish": the program is in a file, and its scheme was found from the `first` by
    flips and changes of basis towards fewer additions, with the seed `second`, limited by time.
    """

    name: str
    rank: int
    additions: int
    do: str
    first: str
    second: str
    axis: str

    @property
    def target(self) -> Target:
        """The format, which the name begins with."""
        return parse_target(self.name.partition("-")[0])

    def __str__(self) -> str:
        """The recipe in words."""
        if self.do == "polish":
            return f"flips and changes of basis from {self.first} with seed {self.second}, limited by time"
        along = f" along {self.axis}" if self.axis else ""
        return f"{self.do} of {self.first} and {self.second}{along}"


@dataclass(frozen=True)
class FewestAdditions:
    """The program with the fewest additions for a format at its best known rank over Z.

    `name` is of a shipped scheme or of a recipe, `known` what the tables have, None where they have nothing.
    """

    target: Target
    rank: int
    name: str
    additions: int
    known: KnownAdditions | None

    @property
    def difference(self) -> int | None:
        """Our additions less those of the tables."""
        return None if self.known is None else self.additions - self.known.shared


@lru_cache(maxsize=1)
def recipes() -> dict[str, AdditionsRecipe]:
    """The programs of `AdditionsRecipe`, by name."""
    text = (resources.files("lcma.schemes_db") / "data" / "composed_programs.csv").read_text(encoding="utf-8")
    return {
        row["name"]: AdditionsRecipe(**{**row, "rank": int(row["rank"]), "additions": int(row["additions"])})  # type: ignore[arg-type]
        for row in csv.DictReader(text.splitlines())
    }


@lru_cache(maxsize=64)
def program_named(name: str) -> Program:
    """The program of a recipe, of a shipped scheme, or of a naive scheme.

    Raises:
        KeyError: there is none of that name.
    """
    if name.startswith(NAIVE):
        return program_of(naive(parse_target(name.removeprefix(NAIVE))))
    if name not in recipes():
        return kept_program(name) or program_of(shipped(name).scheme)
    recipe = recipes()[name]
    if recipe.do == "polish":
        kept = kept_program(name)
        if kept is None:
            raise KeyError(name)
        return kept
    parts = program_named(recipe.first), program_named(recipe.second)
    return tensor_program(*parts) if recipe.do == "tensor" else sum_program(*parts, recipe.axis)


def fewest_additions() -> list[FewestAdditions]:
    """One row for every format with a shipped scheme or a recipe at its best known rank, by size."""
    rows = [(shipped(name).scheme, name, count) for name, count in shared_additions().items()]
    found = [
        (one.target, one.rank, name, count) for one, name, count in rows if one.ring == Z and one.target.is_general
    ]
    found += [(recipe.target, recipe.rank, recipe.name, recipe.additions) for recipe in recipes().values()]
    best: dict[tuple[int, ...], FewestAdditions] = {}
    for target, rank, name, count in found:
        lowest, key = best_known(target, Z), tuple(sorted(target.shape))
        if lowest is None or rank > lowest.rank or min(key) < 2:
            continue
        if key not in best or count < best[key].additions:
            best[key] = FewestAdditions(target, rank, name, count, known_additions(target))
    return [best[key] for key in sorted(best)]
