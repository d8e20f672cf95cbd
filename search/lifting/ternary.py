"""Ternary lifts of a scheme over Z2 or of its neighbours, with other signs, another basis, a few flips; lifts of pools.

The existence of a ternary lift depends on the basis of a scheme and changes with flips, its rank does not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ...errors import PlanError
from ...schemes_db import Z2, Ring, Scheme, Z, parse_ring
from ...schemes_db.costs import full_and_half
from ..basis.shears import sparsified, symmetries
from ..cpsat.brent import ternary_signs
from ..flipgraph.graph import random_flip
from ..flipgraph.policy import Policy
from ..terms.packed import PackedTerms
from .lift import Lift, certified_lift, lift

SHEARS, FLIPS = 2, 12
"""Maximum number of changes of basis and flips between a scheme and its neighbour."""

LOOKS = 32
"""Number of parts of a walk between neighbours; it ends at the scheme after a part, the last one of no higher rank."""


def ternary_lift(scheme: Scheme, *, walks: int = 16, signs: float = 0.0, seed: int = 0) -> Lift:
    """Return the first ternary lift among a scheme over Z2 and up to `walks` neighbours of its rank, certified.

    With `signs`, CP-SAT searches signs for schemes whose Hensel lift is not ternary, for that many
    seconds of deterministic time each. The neighbours form a walk of shears and flips, each in a sparse
    basis; none has more full products. If none has a ternary lift, the result is the scheme's own lift
    or failure.
    """
    rng = np.random.default_rng(seed)
    first = lift(scheme, seed=seed)
    here, full = scheme, full_and_half(scheme)[0]
    for walk in range(walks + 1):
        found = first if walk == 0 else lift(here, seed=seed)
        if signs > 0 and (found.scheme is None or not found.scheme.ternary):
            signed, reason = ternary_signs(here, seconds=signs, seed=seed)
            found = Lift(reason=reason) if signed is None else certified_lift(here, signed, "signs by CP-SAT")
        if found.scheme is not None and found.scheme.ternary:
            if walk == 0:
                return found
            # The neighbour itself is not stored: the scheme is the parent.
            relation = f"flips and changes of basis, {found.scheme.provenance.relation}"
            origin = replace(found.scheme.provenance, parents=(scheme.digest,), relation=relation, steps=())
            return replace(found, scheme=found.scheme.replace(provenance=origin))
        near = _neighbour(PackedTerms.from_scheme(here), rng).to_scheme(scheme.provenance)
        if near.rank == scheme.rank and full_and_half(near)[0] <= full:
            here = near
    return first


def after_flips(scheme: Scheme, steps: int, seed: int) -> Scheme:
    """Return the scheme over Z2, of the same rank or a lower one, that a walk of so many steps reaches from a scheme.

    Whether a scheme has a lift changes with flips, too: of the 173 products of 5x6x8 that one walker found none of
    nine has one, and one of eleven that walks of 300,000 steps reached from them.
    """
    from ..flipgraph.arena import make_arena, terms_in
    from ..flipgraph.walk import advance

    start = last = PackedTerms.from_scheme(scheme)
    arena = make_arena(start, seed)
    for _ in range(LOOKS):  # a walk that is trapped makes a plus, and loses the product again later
        advance(arena, Policy(plus_after=steps + 1).numbers, 0, steps // LOOKS)
        here = terms_in(arena.x, arena, start)
        if here.rank <= last.rank:
            last = here
    if last is start:
        return scheme
    # A walk that no command repeats: the steps that made the scheme do not make this one.
    return last.to_scheme(replace(scheme.provenance, parents=(scheme.digest,), relation="flips", steps=()))


def _neighbour(terms: PackedTerms, rng: np.random.Generator) -> PackedTerms:
    """Apply a few random shears and flips, then transform to a sparse basis."""
    words, shears = terms.words, symmetries(terms.target)
    for _ in range(int(rng.integers(SHEARS + 1)) if shears else 0):
        words = shears[int(rng.integers(len(shears)))].apply_mod2(words, terms.target)
    for _ in range(int(rng.integers(1, FLIPS + 1))):
        words = random_flip(words, rng)
    return sparsified(PackedTerms(terms.target, np.ascontiguousarray(words)))


@dataclass(frozen=True)
class PoolLift:
    """The lifts of a pool, in its order; `seconds` is their total wall time."""

    origins: tuple[Scheme, ...]
    lifts: tuple[Lift, ...]
    seconds: float

    @property
    def shares(self) -> dict[str, int]:
        """Number of lifts by outcome: ternary, integer, fractional, not lifted."""
        return dict(Counter(_outcome(one) for one in self.lifts))

    @property
    def reasons(self) -> dict[str, int]:
        """Number of failed lifts by reason, most frequent first."""
        return dict(Counter(one.reason for one in self.lifts if one.scheme is None).most_common())


def lift_pool(
    schemes: Sequence[Scheme],
    *,
    ring: Ring | str = Z,
    seed: int = 0,
    jobs: int = 1,
    sparse: bool = False,
    walks: int = 0,
    signs: float = 0.0,
) -> PoolLift:
    """Lift every scheme of a pool; the lifts depend on the seed only, not on `jobs`.

    With `sparse` each is transformed to a sparse basis first, where ternary lifts are likelier, and
    `origins` are those schemes; the finds of a search are sparse already. For schemes over Z2 whose lift
    is not ternary, up to `walks` neighbours, and `signs` seconds of CP-SAT for each, are tried: see
    `ternary_lift`.

    Raises:
        PlanError: there are no schemes, one is not over Z2 or Z3, or `jobs` is below 1.
    """
    if not schemes or jobs < 1:
        raise PlanError("a pool needs a scheme over Z2 or Z3, and at least 1 job to lift it")
    over = parse_ring(ring) if isinstance(ring, str) else ring

    def work(scheme: Scheme) -> tuple[Scheme, Lift]:
        if sparse and scheme.ring is Z2:
            moved = sparsified(PackedTerms.from_scheme(scheme)).to_scheme(scheme.provenance)
            scheme = scheme if moved.digest == scheme.digest else moved
        found = lift(scheme, ring=over, seed=seed)
        short = found.scheme is None or not found.scheme.ternary
        if short and scheme.ring is Z2 and (walks > 0 or signs > 0):
            nearer = ternary_lift(scheme, walks=walks, signs=signs, seed=seed)
            found = nearer if nearer.scheme is not None and nearer.scheme.ternary else found
        return scheme, found

    begin = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(work, schemes))
    origins, lifts = zip(*done, strict=True)
    return PoolLift(origins, lifts, time.perf_counter() - begin)


def _outcome(one: Lift) -> str:
    if one.scheme is None:
        return "not lifted"
    if one.scheme.ternary:
        return "ternary"
    return "integer" if max(one.scheme.denominators) == 1 else "fractional"
