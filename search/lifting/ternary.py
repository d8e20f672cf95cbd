"""Ternary lifts of a scheme over Z2 or of its neighbours: other signs, another basis, a few flips.

The existence of a ternary lift depends on the basis of a scheme and changes with flips, its rank does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...schemes_db import Scheme
from ...schemes_db.costs import full_and_half
from ..basis.shears import symmetries
from ..basis.sparsify import sparsified
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
