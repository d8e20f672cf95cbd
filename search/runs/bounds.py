"""Constraints on finds besides their rank: full products, nonzeros of a factor.

A walk satisfies the bounds itself (`flipgraph.constraints`); this module rejects bounds that do not apply,
and checks finds again, as a lift may add coefficients.
"""

from __future__ import annotations

import numpy as np

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.costs import full_and_half
from ..basis.shears import half_masks
from ..flipgraph.policy import ANY_NONZEROS, Policy
from ..flipgraph.walkers import PAIRS, WalkTerms, walk_kind
from ..terms.orbits import WHOLE_REFUSED, OrbitTerms
from ..terms.pairs import PairTerms

BOUNDS = frozenset({"chance", "full", "nonzeros"})
"""The fields of a policy that bound the flips."""

HALF_BOUNDS = frozenset({"chance", "full"})
"""The bounds on full and half products."""


def has_halves(target: Target) -> bool:
    """Return whether some products of a target can be half products."""
    return len(half_masks(target)) > 0


def refuse_bounds(policy: Policy, walk: str, start: WalkTerms) -> None:
    """Raise a PlanError if the bounds of a policy do not apply to the run, or cannot be satisfied."""
    if not 0 <= policy.chance <= 1 or policy.nonzeros < 1:
        raise PlanError("a chance is 0 to 1, and nonzeros are at least 1")
    if policy.orbits == "whole" and walk_kind(walk)[0] not in ("flip-c3z2", PAIRS):
        raise PlanError(WHOLE_REFUSED)
    if not policy.guarded:
        return
    if isinstance(start, OrbitTerms | PairTerms):
        raise PlanError(f"walk {walk!r} knows no bounds: leave full, chance and nonzeros out, or take walk flip")
    if (policy.full >= 0 or policy.chance < 1) and not has_halves(start.target):
        raise PlanError(f"{start.target} has no half blocks, so all products are full: leave full and chance out")


def broken(found: Scheme | WalkTerms, policy: Policy) -> str:
    """Return the reason why a scheme violates a bound, or an empty string."""
    if policy.full < 0 and policy.nonzeros >= ANY_NONZEROS:
        return ""
    scheme = found if isinstance(found, Scheme) else found.to_scheme()
    if policy.full >= 0 and (full := full_and_half(scheme)[0]) > policy.full:
        return f"{full} products are full, more than {policy.full}"
    most = max(int(np.diff(factor.indptr).max()) for factor in scheme.factors)
    return f"a factor has {most} nonzeros, more than {policy.nonzeros}" if most > policy.nonzeros else ""
