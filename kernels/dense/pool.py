"""The schemes that `auto` considers: those of the catalogue that no other one dominates in every cost.

The pool of a catalogue is stored, so that a new process need not read every scheme for its first plan.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CatalogError
from ...home import cache_folder, write_atomic
from ...schemes_db.algebra import permute, tensor
from ...schemes_db.catalog import Catalog
from ...schemes_db.catalog_file import catalogue_state
from ...schemes_db.flatten import flatten
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ...schemes_db.shipped import shipped
from ...version import __version__
from ..codegen.programs import key_of, program_for, stored_program
from ..planning.cache import plan_cache
from ..planning.machine import Machine
from .scheme_costs import SchemeCosts, costs_of

COMPACT = ("strassen", "2x4x4-r26", "3x4x4-r38")
"""The shipped schemes of the compact pool."""

MAX_RANK = 128
"""Maximum products of a level: more make the kernels of its sums slow to compile, without a gain (measured)."""

MAX_FLAT_RANK = 64
"""Maximum products of a flattened program: two levels of Strassen have 49, three are slower than nested ones."""

FORMAT = 2
"""Version of the stored pool's format."""


@dataclass(frozen=True)
class OrientedScheme:
    """A scheme of the catalogue with its three sizes in some order, such as "nkm".

    `source` is the digest in the catalogue; `digest` and `key` are those of the permuted scheme. The
    scheme itself is read on first access: a plan needs only the program.
    """

    source: str
    order: str
    digest: str
    key: str
    held: Scheme | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, scheme: Scheme, order: str) -> OrientedScheme:
        permuted = permute(scheme, order)
        return cls(scheme.digest, order, permuted.digest, key_of(permuted), permuted)

    @classmethod
    def restored(cls, text: str) -> OrientedScheme:
        """Restore a scheme from its `name`.

        Raises:
            CatalogError: the catalogue no longer has such a scheme, or it is not for general products.
        """
        source, _, order = text.partition("@")
        if (scheme := _compact_schemes().get(source)) is not None:
            return cls.of(scheme, order)  # also where no catalogue has been built yet
        with Catalog.open() as catalog:
            scheme = catalog.find(source)[0]
        if not scheme.target.is_general:
            raise CatalogError(f"{text} is a scheme for {scheme.target}, not for general products")
        return cls.of(scheme, order)

    @property
    def name(self) -> str:
        """A text that identifies it permanently."""
        return f"{self.source}@{self.order}"

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
class LevelScheme:
    """A scheme, or the tensor product of two, that runs as one level. `label` is its grid and rank."""

    label: str
    factors: tuple[OrientedScheme, ...]

    @classmethod
    def restored(cls, text: str) -> LevelScheme:
        """Restore a level from its `name`.

        Raises:
            CatalogError: the catalogue no longer has such a scheme.
        """
        factors = tuple(OrientedScheme.restored(part) for part in text.split("*"))
        labels = [f"{one.scheme.target}:{one.scheme.rank}" for one in factors]
        return cls(labels[0] if len(labels) == 1 else f"({' '.join(labels)})", factors)

    @property
    def name(self) -> str:
        """A text that identifies it permanently."""
        return "*".join(one.name for one in self.factors)

    @property
    def is_flattened(self) -> bool:
        """True if it is two levels flattened to one."""
        return len(self.factors) > 1

    @cached_property
    def scheme(self) -> Scheme:
        first, *others = (one.scheme for one in self.factors)
        return tensor(first, others[0]) if others else first

    @cached_property
    def program(self) -> Program:
        first, *others = (one.program for one in self.factors)
        return flatten(first, others[0]) if others else first


CostedChain = tuple[tuple[LevelScheme, ...], SchemeCosts]


@dataclass(frozen=True)
class SchemePool:
    """All considered level schemes, and their costs as arrays; `dominated` is the number of excluded schemes."""

    entries: tuple[LevelScheme, ...]
    costs: SchemeCosts
    dominated: int

    @classmethod
    def of(cls, schemes: Sequence[Scheme], dominated: int = 0) -> SchemePool:
        """Return the pool of these schemes in all orientations, and the two-level ones of at most 64 products."""
        oriented: dict[str, OrientedScheme] = {}
        known: set[tuple[int, ...]] = set()
        for scheme in schemes:
            for order in permutations("mkn"):
                sizes = tuple(getattr(scheme.target, side) for side in order)
                # All orientations of a cube have equal sizes: one suffices.
                if order == ("m", "k", "n") or sizes not in known:
                    known.add(sizes)
                    one = OrientedScheme.of(scheme, "".join(order))
                    oriented.setdefault(one.digest, one)
        base = [LevelScheme(f"{one.scheme.target}:{one.scheme.rank}", (one,)) for one in oriented.values()]
        columns = [costs_of(level.scheme) for level in base]
        entries, every = list(base), list(columns)
        for outer, first in zip(base, columns, strict=True):
            for inner, second in zip(base, columns, strict=True):
                if first.rank * second.rank <= MAX_FLAT_RANK:
                    entries.append(LevelScheme(f"({outer.label} {inner.label})", (*outer.factors, *inner.factors)))
                    every.append(first @ second)
        return cls(tuple(entries), SchemeCosts.stacked(every), dominated)

    def to_json(self) -> dict[str, Any]:
        """Return labels with their oriented schemes (source, order, digest, key), costs by field, and `dominated`."""
        rows = [
            (level.label, [(one.source, one.order, one.digest, one.key) for one in level.factors])
            for level in self.entries
        ]
        return {"entries": rows, "costs": self.costs.packed().tolist(), "dominated": self.dominated}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> SchemePool:
        """Return the pool of what `to_json` returned.

        Raises:
            ValueError, TypeError, KeyError: the fields are no pool's.
        """
        entries = tuple(
            LevelScheme(label, tuple(OrientedScheme(source, order, digest, key) for source, order, digest, key in some))
            for label, some in fields["entries"]
            if some
        )
        costs = fields["costs"]
        if len(costs) != 12 or not all(len(line) == len(entries) > 0 for line in costs):
            raise ValueError("there is not one cost for each scheme")
        return cls(entries, SchemeCosts.unpacked(np.array(costs, dtype=float)), int(fields["dominated"]))

    @cached_property
    def chains(self) -> tuple[tuple[tuple[LevelScheme, ...], ...], SchemeCosts]:
        """The chains of one, two and (4x4x4 over 2x2x2) three levels that a GPU runs in one pass, and their costs."""
        one: list[CostedChain] = [
            ((level,), self.costs[i]) for i, level in enumerate(self.entries) if not level.is_flattened
        ]
        two = _products(one, one)
        cubes = [(chain, costs) for chain, costs in two if (costs.m, costs.k, costs.n) == (4, 4, 4)]
        strassens = [(chain, costs) for chain, costs in one if (costs.m, costs.k, costs.n) == (2, 2, 2)]
        chains, costs = zip(*one, *two, *_products(cubes, strassens), strict=True)
        return chains, SchemeCosts.stacked(costs)


def _products(outer: list[CostedChain], inner: list[CostedChain]) -> list[CostedChain]:
    """Return every chain of an outer one over an inner one with at most as many products as a GPU runs in one pass."""
    from ..cuda.flat_program import MAX_RANK as MOST

    pairs = product(outer, inner)
    return [((*a, *b), first @ other) for (a, first), (b, other) in pairs if first.rank * other.rank <= MOST]


def catalogue_stamp() -> str | None:
    """Return an identifier of the state of the user's catalogue; None if there is no catalogue yet."""
    if (state := catalogue_state()) is None:
        return None
    parts = [FORMAT, __version__, *state, _shipped()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


@lru_cache(maxsize=1)
def _shipped() -> str:
    """Return a hash of names, sizes and times of the shipped schemes, which change with the package's version."""
    folder = files("lcma.schemes_db") / "data" / "schemes"
    if not isinstance(folder, Path):
        return ""  # inside an archive, which only a new version changes
    with os.scandir(folder) as entries:
        found = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries)
    return hashlib.sha256(repr(found).encode()).hexdigest()


plan_cache.watch(catalogue_stamp)  # a changed catalogue changes plans


@lru_cache(maxsize=1)
def compact_pool() -> SchemePool:
    """Return a pool of few schemes, whose code is soon compiled and then serves all sizes; it needs no catalogue.

    The best chain of it is 1 to 2% slower than that of all schemes.
    """
    return SchemePool.of(list(_compact_schemes().values()))


@lru_cache(maxsize=1)
def _compact_schemes() -> dict[str, Scheme]:
    """Return the schemes of the compact pool by digest."""
    schemes = [shipped(name).scheme for name in COMPACT]
    return {scheme.digest: scheme for scheme in schemes}


def pool_for(machine: Machine) -> SchemePool:
    """Return the schemes that are considered on a machine."""
    pool: SchemePool = scheme_pool() if machine.schemes is None else machine.schemes
    return pool


def scheme_pool() -> SchemePool:
    """Return the pool of the user's catalogue; computed once, and again when the catalogue has changed."""
    if (stamp := catalogue_stamp()) is None:
        found = _from_catalogue()  # the first use creates the catalogue, unless it cannot be written
        if (stamp := catalogue_stamp()) is None:
            return found
    return _stored(stamp)


@lru_cache(maxsize=4)
def _stored(stamp: str) -> SchemePool:
    """Return the pool stored by this or another process, or compute and store it."""
    found = stored_pool(stamp)
    if found is None:
        found = _from_catalogue()
        _store(stamp, found)
    return found


def stored_pool(stamp: str) -> SchemePool | None:
    """Return the stored pool of a state of the catalogue; None if there is none, or it is damaged."""
    try:
        return SchemePool.from_json(json.loads(_path(stamp).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _store(stamp: str, pool: SchemePool) -> None:
    """Store a pool, and delete those of earlier states; do nothing if the folder cannot be written."""
    path = _path(stamp)
    with contextlib.suppress(OSError):
        write_atomic(path, json.dumps(pool.to_json(), separators=(",", ":")))
        for other in path.parent.glob("*.json"):
            if other != path:
                other.unlink()


def _path(stamp: str) -> Path:
    return cache_folder() / "scheme_pools" / f"{stamp}.json"


def _from_catalogue() -> SchemePool:
    with Catalog.open() as catalog:
        kept, dominated = _frontier(catalog)
    return replace(_pool_of(tuple(kept)), dominated=dominated)


@lru_cache(maxsize=1)
def _pool_of(digests: tuple[str, ...]) -> SchemePool:
    """Return the pool of some schemes; most changes of a catalogue leave its best ones as they are."""
    with Catalog.open() as catalog:
        return SchemePool.of([catalog.find(digest)[0] for digest in digests])


def _frontier(catalog: Catalog) -> tuple[list[str], int]:
    """Return the digests of the schemes that no other of the same sizes dominates, and the number of the others."""
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
