"""The schemes that `auto` chooses from: what the catalogue holds, less what others are better than in everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from ...schemes_db import costs
from ...schemes_db.algebra import permute, tensor
from ...schemes_db.catalog import Catalog
from ...schemes_db.factor import Factor
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ..codegen.flatten import flatten
from ..codegen.programs import key_of, program_for, stored_program
from .arrangements import MAX_FLAT_RANK
from .model import Figures
from .pool_table import Table, catalogue_stamp, read_table, write_table

MAX_RANK = 128
"""Most products of a level: past it the kernels for its sums take long to compile and gain nothing (measured)."""


@dataclass(frozen=True)
class Turn:
    """A certified scheme of the catalogue, its sizes in some order.

    `source` is the digest in the catalogue; `digest` and `key` are those of the turned scheme. The
    scheme itself is read when it is asked for: a plan needs the program only.
    """

    source: str
    order: str
    digest: str
    key: str
    held: Scheme | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, scheme: Scheme, order: str) -> Turn:
        turned = permute(scheme, order)
        return cls(scheme.digest, order, turned.digest, key_of(turned), turned)

    @cached_property
    def scheme(self) -> Scheme:
        if self.held is not None:
            return self.held
        with Catalog.open() as catalog:
            return permute(catalog.find(self.source)[0], self.order)

    @property
    def program(self) -> Program:
        stored = stored_program(self.key, self.digest)
        return program_for(self.scheme) if stored is None else stored


@dataclass(frozen=True)
class Choice:
    """What may work one level: a scheme, or two of them written as one level. `label` is its grid and rank."""

    label: str
    turns: tuple[Turn, ...]

    @property
    def parts(self) -> tuple[Turn, ...]:
        """The two levels that are written as this one, or none."""
        return self.turns if len(self.turns) > 1 else ()

    @cached_property
    def scheme(self) -> Scheme:
        first, *others = (turn.scheme for turn in self.turns)
        return tensor(first, others[0]) if others else first

    @cached_property
    def program(self) -> Program:
        first, *others = (turn.program for turn in self.turns)
        return flatten(first, others[0]) if others else first


@dataclass(frozen=True)
class Choices:
    """All of them, and their figures as arrays; `dominated` says how many more the catalogue holds."""

    entries: tuple[Choice, ...]
    figures: Figures
    dominated: int

    @classmethod
    def of(cls, schemes: Sequence[Scheme], dominated: int = 0) -> Choices:
        """These schemes in all orientations, and the two-level ones of at most 64 products."""
        turns: dict[str, Turn] = {}
        for scheme in schemes:
            for order in permutations("mkn"):
                turn = Turn.of(scheme, "".join(order))
                # Of a cube every orientation is the same size: one is enough.
                known = {other.scheme.target.name for other in turns.values()}
                if turn.scheme is scheme or turn.scheme.target.name not in known:
                    turns.setdefault(turn.digest, turn)
        base = [Choice(f"{turn.scheme.target}:{turn.scheme.rank}", (turn,)) for turn in turns.values()]
        columns = [_figures(choice.scheme) for choice in base]
        entries = list(base)
        for outer, first in zip(base, columns[: len(base)], strict=True):
            for inner, second in zip(base, columns[: len(base)], strict=True):
                if first.rank * second.rank <= MAX_FLAT_RANK:
                    entries.append(Choice(f"({outer.label} {inner.label})", (*outer.turns, *inner.turns)))
                    columns.append(_of_both(first, second))
        return cls(tuple(entries), Figures.stacked([column.figures for column in columns]), dominated)


@dataclass(frozen=True)
class _Column:
    """The figures of one scheme; `sums`: how many different left and right sums it has, `plain` of them one block."""

    figures: Figures
    sums: tuple[int, int]
    plain: tuple[int, int]

    @property
    def rank(self) -> int:
        return int(self.figures.rank)


def _figures(scheme: Scheme) -> _Column:
    m, k, n = scheme.target.shape
    counts = [_sums(scheme.factors[side]) for side in range(2)]
    sums, plain = ((counts[0][i], counts[1][i]) for i in range(2))
    return _column((m, k, n, scheme.rank), costs.nonzeros(scheme), sums, plain, costs.growth_factor(scheme))


def _of_both(outer: _Column, inner: _Column) -> _Column:
    """The figures of a tensor product: all of them multiply."""

    def times(x: Sequence[Any], y: Sequence[Any]) -> Any:
        return tuple(a * b for a, b in zip(x, y, strict=True))

    first, second = outer.figures, inner.figures
    sizes = times((first.m, first.k, first.n, first.rank), (second.m, second.k, second.n, second.rank))
    growth = first.growth * second.growth
    sums, plain = times(outer.sums, inner.sums), times(outer.plain, inner.plain)
    return _column(sizes, times(first.nnz, second.nnz), sums, plain, growth)


def _column(sizes: Any, nonzeros: Any, sums: Any, plain: Any, growth: float) -> _Column:
    made = sums[0] - plain[0], sums[1] - plain[1]
    m, k, n, rank = sizes
    return _Column(Figures(m, k, n, rank, nonzeros, made, growth), sums, plain)


def _sums(factor: Factor) -> tuple[int, int]:
    """How many different sums there are, and how many of them are one block as it stands."""
    sums = {tuple(factor.terms(r)) for r in range(factor.rank)}
    plain = sum(len(terms) == 1 and terms[0][1] == 1 and factor.denominator == 1 for terms in sums)
    return len(sums), plain


def choices() -> Choices:
    """The choices of the user's catalogue; worked out once, and again when it has changed."""
    stamp = catalogue_stamp()
    if stamp is None:
        _from_catalogue.cache_clear()
        found = _from_catalogue("")  # the first use makes the catalogue, or there is no place for one
        stamp = catalogue_stamp()
        return found if stamp is None else _kept(stamp)
    return _kept(stamp)


@lru_cache(maxsize=4)
def _kept(stamp: str) -> Choices:
    """The choices as they were worked out before, by this or another process, or now."""
    if (table := read_table(stamp)) is not None:
        entries = tuple(Choice(label, tuple(Turn(*turn) for turn in turns)) for label, turns in table.entries)
        return Choices(entries, Figures.unpacked(np.array(table.figures, dtype=float)), table.dominated)
    found = _from_catalogue(stamp)
    turns = [
        (choice.label, tuple((turn.source, turn.order, turn.digest, turn.key) for turn in choice.turns))
        for choice in found.entries
    ]
    write_table(stamp, Table(tuple(turns), found.figures.packed().tolist(), found.dominated))
    return found


@lru_cache(maxsize=1)
def _from_catalogue(stamp: str) -> Choices:
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
