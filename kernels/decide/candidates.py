"""The schemes that `auto` chooses from: what the catalogue holds, less what others are better than in everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations

import numpy as np

from ...home import data_folder
from ...schemes_db import costs
from ...schemes_db.algebra import permute, tensor
from ...schemes_db.catalog import Catalog
from ...schemes_db.factor import Factor
from ...schemes_db.scheme import Scheme
from .model import Figures
from .nesting import MAX_FLAT_RANK

MAX_RANK = 128
"""Most products of a level: past it the kernels for its sums take long to compile and gain nothing (measured)."""


@dataclass(frozen=True)
class Choice:
    """A certified scheme for one level. `label` is its grid and rank; `parts`: the two levels written as this one."""

    scheme: Scheme
    label: str
    parts: tuple[Scheme, ...] = ()


@dataclass(frozen=True)
class Choices:
    """All of them, and their figures as arrays; `dominated` says how many more the catalogue holds."""

    entries: tuple[Choice, ...]
    figures: Figures
    dominated: int

    @classmethod
    def of(cls, schemes: Sequence[Scheme], dominated: int = 0) -> Choices:
        """These schemes in all orientations, and the two-level ones of at most 64 products."""
        entries: dict[str, Choice] = {}
        for scheme in schemes:
            for order in permutations("mkn"):
                turned = permute(scheme, "".join(order))
                # Of a cube every orientation is the same size: one is enough.
                known = {entry.scheme.target.name for entry in entries.values()}
                if turned is scheme or turned.target.name not in known:
                    entries.setdefault(turned.digest, Choice(turned, f"{turned.target}:{turned.rank}"))
        base = list(entries.values())
        for outer in base:
            for inner in base:
                if outer.scheme.rank * inner.scheme.rank <= MAX_FLAT_RANK:
                    parts = outer.scheme, inner.scheme
                    both = tensor(*parts)
                    entries.setdefault(both.digest, Choice(both, f"({outer.label} {inner.label})", parts))
        chosen = tuple(entries.values())
        return cls(chosen, figures_of([choice.scheme for choice in chosen]), dominated)


def figures_of(schemes: Sequence[Scheme]) -> Figures:
    """The figures of schemes, as arrays."""

    def column(values: Sequence[float]) -> np.ndarray:
        return np.array(values, dtype=float)

    nonzeros = [costs.nonzeros(scheme) for scheme in schemes]
    return Figures(
        column([scheme.target.m for scheme in schemes]),
        column([scheme.target.k for scheme in schemes]),
        column([scheme.target.n for scheme in schemes]),
        column([scheme.rank for scheme in schemes]),
        tuple(column([row[side] for row in nonzeros]) for side in range(3)),  # type: ignore[arg-type]
        tuple(column([_made(scheme.factors[side]) for scheme in schemes]) for side in range(2)),  # type: ignore[arg-type]
        column([costs.growth_factor(scheme) for scheme in schemes]),
    )


def _made(factor: Factor) -> int:
    """How many different sums are not one block as it stands."""
    sums = {tuple(factor.terms(r)) for r in range(factor.rank)}
    return sum(not (len(terms) == 1 and terms[0][1] == 1 and factor.denominator == 1) for terms in sums)


def choices() -> Choices:
    """The choices of the user's catalogue; read once a process, and again when it has changed."""
    path = data_folder() / "catalog.db"
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _choices(str(path), stamp)


@lru_cache(maxsize=4)
def _choices(path: str, stamp: int) -> Choices:
    with Catalog.open() as catalog:
        kept, dominated = _frontier(catalog)
        schemes = [catalog.find(digest)[0] for digest in kept]
    return replace(Choices.of(schemes), dominated=dominated)


def _frontier(catalog: Catalog) -> tuple[list[str], int]:
    """The digests of the schemes of a grid that no other is at least as good as; and how many others there are."""
    groups: dict[tuple[int, ...], list[tuple[tuple[float, ...], str]]] = {}
    total = 0
    for entry in catalog.entries():
        if entry.ring not in ("Z", "Q") or ":" in entry.target or entry.rank > MAX_RANK:
            continue
        sizes = tuple(sorted(int(part) for part in entry.target.split("x")))
        if entry.rank >= sizes[0] * sizes[1] * sizes[2]:
            continue
        total += 1
        groups.setdefault(sizes, []).append(((entry.rank, entry.nonzeros, entry.growth), entry.digest))
    kept = [
        digest
        for rows in groups.values()
        for figures, digest in rows
        if not any(
            (theirs, other) < (figures, digest) and all(x <= y for x, y in zip(theirs, figures, strict=True))
            for theirs, other in rows
        )
    ]
    return kept, total - len(kept)
