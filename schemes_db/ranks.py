"""The best ranks that are known, as a table of plain figures with their sources."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .ring import Ring
from .target import Target, parse_target

FORMATS = {
    "gt": "gram",
    "ug": "tri-left",
    "ul": "tri-left:upper+tri-right",
    "uu": "tri-left:upper+tri-right:upper+tri-out:upper",
}
"""The structured formats of the table whose blocks may be matrices, by the form of one target of their tensor."""

SAME = {"gt": "ug", "ut": "uu"}
"""Formats of the table that are the same tensor: A A^T with independent copies of A, of a general and an upper A."""


@dataclass(frozen=True)
class KnownRank:
    """The lowest rank that anybody has shown for a target over a ring; `full` and `half` for triangular ones.

    `date` is that of the table of general formats, ISO 8601.
    """

    rank: int
    source: str
    full: int | None = None
    half: int | None = None
    date: str = ""


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("lcma.schemes_db") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@lru_cache(maxsize=1)
def _general() -> dict[tuple[int, ...], dict[str, str]]:
    return {tuple(sorted(int(row[key]) for key in "mkn")): row for row in _rows("ranks_general.csv")}


@lru_cache(maxsize=2)
def _structured(format: str) -> dict[int, KnownRank]:
    """One structured format by grid size: the entry with the fewest products, then the most halves."""
    best: dict[int, KnownRank] = {}
    for row in _rows("ranks_structured.csv"):
        if row["format"] != format or row["field"] == "C / F_p":
            continue
        rank, full = int(row["best_rank"]), int(row["general_products"])
        entry = KnownRank(rank, row["source"], full, rank - full)
        size = int(row["n"])
        if size not in best or (entry.rank, entry.full or 0) < (best[size].rank, best[size].full or 0):
            best[size] = entry
    return best


def board() -> tuple[tuple[int, int, int], ...]:
    """The formats of the table of general ones: 2 <= m <= k <= n <= 16, by size."""
    return tuple(sorted((key[0], key[1], key[2]) for key in _general()))


def format_of(target: Target) -> str | None:
    """The structured format on a square grid whose tensor a target has, in any role and orientation."""
    n = target.m
    if not target.is_product or target.is_general or {*target.shape} != {n}:
        return None
    orbit = target.orbit()
    return next((format for format, form in FORMATS.items() if parse_target(f"{n}x{n}x{n}:{form}") in orbit), None)


def best_known(target: Target, ring: Ring, ternary: bool = False) -> KnownRank | None:
    """The best known rank of a general or square triangular target, or None where the tables have none.

    Formats up to 16x16x16 are in the table of general ones: over Z2, up to 8x8x8, its Z2 column is used, over Q the
    best rank over Q, over Z and other rings that of integer coefficients, or, where `ternary` is true, of coefficients
    -1, 0 and 1.
    """
    if target.is_general:
        row = _general().get(tuple(sorted(target.shape)))
        if row is None:
            return KnownRank(target.m * target.k * target.n, "a vector factor") if 1 in target.shape else None
        column = {"Z2": "rank_Z2", "Q": "rank_any"}.get(ring.name, "rank_ZT" if ternary else "rank_Z")
        return KnownRank(int(row[column]), row["source"], date=row["date"]) if row[column] else None
    format = format_of(target)
    return _structured(format).get(target.m) if format else None


@dataclass(frozen=True)
class KnownAdditions:
    """The fewest additions in the tables for a format: every sum on its own, and with shared sums.

    `rank` is the best known one over the integers: the tables do not say at which rank they counted.
    """

    rank: int
    plain: int
    shared: int
    source: str


def known_additions(target: Target) -> KnownAdditions | None:
    """The fewest additions that the tables have for a general target, or None where they have none."""
    row = _general().get(tuple(sorted(target.shape))) if target.is_general else None
    if row is None or not (row["additions_naive"] and row["additions_cse"]):
        return None
    return KnownAdditions(int(row["rank_Z"]), int(row["additions_naive"]), int(row["additions_cse"]), row["source"])
