"""Registry of walkers by name, and their interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...errors import PlanError, unknown_name
from ...schemes_db import Provenance, Scheme, Target
from ..basis.shears import half_masks
from ..terms.involution import Swaps, parse_swaps
from ..terms.orbits import OrbitTerms, PairTerms, ReversibleTerms, SymmetricTerms
from ..terms.packed import PackedTerms
from ..terms.ternary import TermsModulo3, TernaryTerms
from .policy import Policy


class WalkTerms(Protocol):
    """Interface of the terms that a walk starts from and returns, in the walk's packed form."""

    @property
    def target(self) -> Target: ...

    @property
    def rank(self) -> int: ...

    def to_scheme(self, provenance: Provenance | None = None) -> Scheme:
        """Return the scheme with these terms, over the ring of the walk."""


class Walker(Protocol):
    """A walk that can be continued; it depends on its seed, index and steps only."""

    @property
    def rank(self) -> int:
        """Lowest rank since the start or the last `rewind`."""

    @property
    def lowest(self) -> int:
        """Lowest rank ever."""

    @property
    def flips(self) -> int: ...

    @property
    def steps(self) -> int: ...

    def advance(self, goal: int, steps: int) -> None:
        """Walk `steps` steps, or until the rank is at most `goal`. Releases the GIL."""

    def terms(self) -> WalkTerms:
        """Return the terms at `rank`."""

    def rewind(self) -> None:
        """Return to the start and reset `rank`; the random state continues."""


@dataclass(frozen=True, eq=False)
class Walks:
    """The walks `first` to `first + walkers - 1` of a seed.

    Attributes:
        starts: terms that walks may be sent to; walks start from these in rotation, or all from the highest rank.
        walkers: 0 for the most that fit on the device.
    """

    walk: str
    starts: Sequence[WalkTerms]
    policy: Policy
    seed: int
    first: int
    walkers: int


MakeWalker = Callable[[Any, int, int, Policy], Walker]
Pack = Callable[[Target, Scheme | None], WalkTerms]


class _Walk(NamedTuple):
    make: MakeWalker
    pack: Pack
    policy: Policy


_WALKS: dict[str, _Walk] = {}

PAIRS = "flip-z2"
"""The walk on schemes that are invariant under an involution; with the numbers of its swaps after a colon."""


def packs(kind: Any, naive: Callable[[Target], WalkTerms] | None = None, **of: Any) -> Pack:
    """Return the function that converts a scheme to terms of a kind, or a target to naive ones."""
    return lambda target, scheme: (
        (naive or kind.naive)(target, **of) if scheme is None else kind.from_scheme(scheme, **of)
    )


def register_walk(name: str, make: MakeWalker, pack: Pack | None = None, policy: Policy | None = None) -> None:
    """Register a kind of walk: `make(start, seed, index, policy)` creates walk `index` of a run.

    `pack(target, scheme or None for the naive one)` converts a start to the terms that `make` accepts, by default
    those modulo 2; `policy` is the default policy.

    Raises:
        PlanError: the name is registered already.
    """
    if name in _WALKS:
        raise PlanError(f"a walk named {name!r} is registered already")
    _WALKS[name] = _Walk(make, pack or packs(PackedTerms), policy or Policy())


def walk_names() -> tuple[str, ...]:
    """Return the names that `make_walker` accepts."""
    return tuple(sorted(_WALKS))


def pack_start(name: str, target: Target, scheme: Scheme | None = None) -> WalkTerms:
    """Return a start for the walk of this name: the scheme's terms, or the naive ones.

    Raises:
        PlanError: the walk is unknown, or the scheme does not fit it.
    """
    return _walk(name).pack(target, scheme)


def walk_policy(name: str) -> Policy:
    """Return the default policy of a walk, for any target.

    Raises:
        PlanError: the walk is unknown.
    """
    return _walk(name).policy


def make_walker(name: str, start: WalkTerms, seed: int, index: int, policy: Policy) -> Walker:
    """Create walk `index` of a run.

    Raises:
        PlanError: the walk is unknown, or the start does not fit it.
    """
    return _walk(name).make(start, seed, index, policy)


def walk_kind(name: str) -> tuple[str, Swaps | None]:
    """Return the registered name of a walk and its swaps: flip-z2:1,0,3 is flip-z2 with another involution.

    Raises:
        PlanError: the name has swaps that are not understood, or is of a walk without them.
    """
    kind, colon, text = name.partition(":")
    if not colon:
        return kind, None
    if kind != PAIRS:
        raise PlanError(f"walk {name!r} is not known: only {PAIRS} has swaps, such as {PAIRS}:1,0,3")
    return kind, parse_swaps(text)


def _walk(name: str) -> _Walk:
    kind, swaps = walk_kind(name)
    if kind not in _WALKS:
        raise unknown_name("walk", name, walk_names())
    walk = _WALKS[kind]
    if swaps is None:
        return walk
    return walk._replace(make=_symmetric_walk(PairTerms, swaps), pack=packs(PairTerms, swaps=swaps))


def _flip_walk(start: Any, seed: int, index: int, policy: Policy) -> Walker:
    from .arena import FlipWalker

    return FlipWalker(start, seed, index, policy)


def _half_walk(start: Any, seed: int, index: int, policy: Policy) -> Walker:
    if not half_masks(start.target).any():
        raise PlanError(f"{start.target} has no half blocks, so all products are full: take the walk flip")
    return _flip_walk(start, seed, index, policy)


def _symmetric_walk(kind: type[SymmetricTerms], swaps: Swaps | None = None) -> MakeWalker:
    """Return the function that creates a walk on terms of a kind, to which others of the symmetry are converted."""

    def make(start: Any, seed: int, index: int, policy: Policy) -> Walker:
        from .arena import OrbitWalker

        if not isinstance(start, kind):
            start = kind.from_packed(start, swaps)
        return OrbitWalker(start, seed, index, policy)

    return make


_SHIFTED = Policy(plus_after=2_000, margin=7, restart_after=20_000_000)

register_walk("flip", _flip_walk)
register_walk("flip-c3", _symmetric_walk(OrbitTerms), packs(OrbitTerms), _SHIFTED)
register_walk(
    "flip-c3z2",
    _symmetric_walk(ReversibleTerms),
    packs(OrbitTerms, partial(OrbitTerms.naive, reversible=True)),
    _SHIFTED,
)
register_walk("flip-half", _half_walk, policy=Policy(plus_after=20_000, margin=3, chance=0.15))
register_walk(PAIRS, _symmetric_walk(PairTerms), packs(PairTerms), Policy(plus_after=50_000, margin=4))
register_walk("flip-z3", _flip_walk, packs(TermsModulo3), Policy(plus_after=20_000))
register_walk("flip-zt", _flip_walk, packs(TernaryTerms), Policy(plus_after=30_000))
