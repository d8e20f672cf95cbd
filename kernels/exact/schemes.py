"""Schemes as levels of exact products: their coefficients in the ring, and their lookup in the catalogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import CatalogError, PlanError
from ...schemes_db.algebra import permute
from ...schemes_db.catalog import Catalog
from ...schemes_db.factor import Factor
from ...schemes_db.program import ProductKind, Program
from ...schemes_db.scheme import Scheme
from ...schemes_db.straightline import program_of
from ..arrays import Sizes
from ..codegen.certified import SchemeLike, certified, denominator_reason
from ..ring import ExactRing

IntArray = npt.NDArray[np.int64]

MAX_RANK = 128
"""Maximum number of products of a level that `auto` considers."""


@dataclass(frozen=True)
class ExactMap:
    """Sums of multiples of sources: sum s is that of values[j] * source places[j], starts[s] <= j < starts[s + 1].

    `values` are residues of least magnitude, or integers; `norm` is the largest sum of magnitudes.
    """

    starts: IntArray
    places: IntArray
    values: IntArray

    @property
    def terms(self) -> int:
        return len(self.places)

    @cached_property
    def norm(self) -> int:
        pairs = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return max((sum(abs(int(x)) for x in self.values[a:b]) for a, b in pairs), default=0)


@dataclass(frozen=True)
class RingMaps:
    """The three maps of a scheme in a ring: of A, of B, and of the products to the blocks of C."""

    grid: tuple[int, int, int]
    rank: int
    left: ExactMap
    right: ExactMap
    merge: ExactMap


@dataclass(frozen=True)
class LevelOf:
    """A scheme as a level; `name` identifies it permanently: by its digest, and the order of its sizes if not mkn."""

    name: str
    scheme: Scheme = field(compare=False, repr=False)

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        m, k, n = self.scheme.target.shape
        return m, k, n

    @property
    def rank(self) -> int:
        return self.scheme.rank

    @property
    def nonzeros(self) -> tuple[int, int, int]:
        return self.scheme.u.nnz, self.scheme.v.nnz, self.scheme.w.nnz

    @cached_property
    def label(self) -> str:
        return f"{self.scheme.target}:{self.scheme.rank}"


def grid_of(levels: Sequence[LevelOf]) -> Sizes:
    """Return the grid of all levels together."""
    m, k, n = (math.prod(level.grid[axis] for level in levels) for axis in range(3))
    return m, k, n


@dataclass(frozen=True)
class ExactChain:
    """Levels, outermost first, in a ring; a `Source`."""

    levels: tuple[LevelOf, ...]
    ring: ExactRing

    @property
    def key(self) -> str:
        return "/".join(level.name for level in self.levels)

    @property
    def label(self) -> str:
        return " ".join(level.label for level in self.levels)

    @cached_property
    def program(self) -> Program:
        *outer, program = (_program(level.scheme) for level in self.levels)
        for one in reversed(outer):
            program = one.nested({ProductKind.FULL: program})
        return program

    @cached_property
    def maps(self) -> tuple[RingMaps, ...]:
        """Return the maps of every level; every scheme is proven first.

        Raises:
            PlanError, VerificationError: as `certified`.
        """
        return tuple(ring_maps(certified(level.scheme, self.ring), self.ring) for level in self.levels)


@lru_cache(maxsize=256)
def _program(scheme: Scheme) -> Program:
    """Return the program without shared sums, which these cores do not use and which take up to a second to find."""
    return program_of(scheme, cse=False)


def ring_maps(scheme: Scheme, ring: ExactRing) -> RingMaps:
    """Return the maps of a scheme that `certified` has accepted for this ring."""
    m, k, n = scheme.target.shape
    if not scheme.target.is_general:
        raise PlanError(f"{scheme.target} is structured; exact products are of plain matrices: name another scheme")
    left, right = (_linear_map(factor, ring) for factor in (scheme.u, scheme.v))
    return RingMaps((m, k, n), scheme.rank, left, right, _linear_map(scheme.w, ring, by_block=True))


def _values(factor: Factor, ring: ExactRing) -> list[int]:
    """Return the coefficients as integers: residues of least magnitude modulo n."""
    if ring.modulus == 0:
        return [int(value) for value in factor.values.tolist()]
    inverse = pow(factor.denominator, -1, ring.modulus)
    residues = [int(value) * inverse % ring.modulus for value in factor.values.tolist()]
    return [value - ring.modulus if 2 * value > ring.modulus else value for value in residues]


def _linear_map(factor: Factor, ring: ExactRing, by_block: bool = False) -> ExactMap:
    """Return the sums of blocks by product, or with `by_block` those of products by block."""
    products = np.repeat(np.arange(factor.rank), np.diff(factor.indptr))
    rows, places, count = products, factor.indices, factor.rank
    values = np.array(_values(factor, ring), dtype=np.int64)
    if by_block:
        order = np.argsort(factor.indices, kind="stable")
        rows, places, values, count = places[order], products[order], values[order], factor.rows * factor.cols
    held = values != 0
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows[held], minlength=count), out=starts[1:])
    return ExactMap(starts, np.ascontiguousarray(places[held], np.int64), values[held])


@lru_cache(maxsize=256)
def _restored(name: str) -> Scheme:
    source, _, order = name.partition("@")
    with Catalog.open() as catalog:
        return permute(catalog.find(source)[0], order or "mkn")


def restored_chain(key: str, ring: ExactRing) -> ExactChain | None:
    """Return the chain of a key; None if the catalogue lacks one of its schemes, or one is not for general products."""
    try:
        levels = [LevelOf(name, _restored(name)) for name in key.split("/")]
    except CatalogError:
        return None
    if not all(level.scheme.target.is_general for level in levels):
        return None
    return ExactChain(tuple(levels), ring)


def given_chain(scheme: SchemeLike | Sequence[Any], levels: int, ring: ExactRing) -> ExactChain:
    """Return the chain of a scheme that a caller passes, recursed, or of a list of schemes.

    Raises:
        PlanError, VerificationError: as `certified`; or there is no level.
    """
    one = isinstance(scheme, str | Scheme) or (isinstance(scheme, tuple) and len(scheme) == 2)
    entries: list[Any] = [scheme] * levels if one else list(scheme)  # type: ignore[arg-type]
    if not entries:
        raise PlanError("no level of a scheme is left; name a scheme, or leave it to auto")
    found = [certified(entry, ring) for entry in entries]
    return ExactChain(tuple(LevelOf(scheme.digest, scheme) for scheme in found), ring)


@lru_cache(maxsize=64)
def known_levels(ring: ExactRing, stamp: object) -> tuple[LevelOf, ...]:
    """Return the levels that `auto` considers: for every grid the scheme of least rank over the ring, in all orders.

    `stamp` is the state of the catalogue, which is read again if it changes.
    """
    best: dict[tuple[int, ...], tuple[tuple[int, int], str]] = {}
    for sizes, cost, own, digest in _catalogued(stamp):
        if own not in ("Z", "Q", f"Z{ring.modulus}") or (sizes in best and cost >= best[sizes][0]):
            continue
        if denominator_reason(_restored(digest), ring) is None:
            best[sizes] = cost, digest
    found: dict[str, LevelOf] = {}
    for _, digest in best.values():
        for level in _orientations(digest):
            found.setdefault(level.label.partition(":")[0], level)
    return tuple(found.values())


@lru_cache(maxsize=2)
def _catalogued(stamp: object) -> tuple[tuple[tuple[int, ...], tuple[int, int], str, str], ...]:
    """Return sizes in increasing order, (rank, nonzeros), ring and digest of the possible levels of `auto`."""
    found = []
    with Catalog.open() as catalog:
        for entry in catalog.entries():
            if ":" in entry.target or entry.rank > MAX_RANK:
                continue
            try:
                sizes = tuple(sorted(int(part) for part in entry.target.split("x")))
            except ValueError:
                continue
            if len(sizes) == 3 and entry.rank < math.prod(sizes) and sizes[0] >= 2 and sizes[2] <= 6:
                found.append((sizes, (entry.rank, entry.nonzeros), entry.ring, entry.digest))
    return tuple(found)


@lru_cache(maxsize=256)
def _orientations(digest: str) -> tuple[LevelOf, ...]:
    """Return the scheme of a digest with its sizes in all orders; cached, as permuting takes milliseconds."""
    scheme = _restored(digest)
    orders = map("".join, permutations("mkn"))
    return tuple(LevelOf(f"{digest}@{order}", permute(scheme, order)) for order in orders)
