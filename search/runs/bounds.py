"""Constraints on finds besides their rank: full products, nonzeros of a factor, fixed products.

A walk satisfies the bounds itself (`flipgraph.constraints`); this module rejects bounds that do not apply,
and checks finds again, as a lift may add coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import PlanError
from ...schemes_db import Ring, Scheme, Target
from ...schemes_db.costs import full_and_half
from ...schemes_db.factor import IntArray
from ..basis.shears import half_masks
from ..flipgraph.policy import ANY_NONZEROS, WHOLE_REFUSED, Policy
from ..flipgraph.walkers import PAIRS, WalkTerms, walk_kind
from ..terms.orbits import SymmetricTerms

BOUNDS = frozenset({"chance", "full", "nonzeros", "keep"})
"""The fields of a policy that bound the flips."""

HALF_BOUNDS = frozenset({"chance", "full"})
"""The bounds on full and half products."""


def has_halves(target: Target) -> bool:
    """Return whether some products of a target can be half products."""
    return bool(half_masks(target).any())


def refuse_bounds(policy: Policy, walk: str, start: WalkTerms, over: Ring, ladder: Sequence[str]) -> None:
    """Raise a PlanError if the bounds of a policy do not apply to the run, or cannot be satisfied."""
    if not 0 <= policy.chance <= 1 or policy.nonzeros < 1 or policy.keep < 0:
        raise PlanError("a chance is 0 to 1, nonzeros are at least 1, and kept products at least 0")
    if policy.orbits == "whole" and walk_kind(walk)[0] not in ("flip-c3z2", PAIRS):
        raise PlanError(WHOLE_REFUSED)
    if not (policy.guarded or policy.keep):
        return
    if isinstance(start, SymmetricTerms):
        raise PlanError(f"walk {walk!r} knows no bounds: leave full, chance, nonzeros and keep out, or take walk flip")
    if (policy.full >= 0 or policy.chance < 1) and not has_halves(start.target):
        raise PlanError(f"{start.target} has no half blocks, so all products are full: leave full and chance out")
    if policy.keep and ladder:
        raise PlanError("products can't be kept from format to format: leave the ladder out, or keep")
    if policy.keep and start.to_scheme().ring.characteristic != over.characteristic:
        raise PlanError(f"a lift to {over} may change products that are to be kept: search over Z2 or ZT")


def broken(found: Scheme | WalkTerms, policy: Policy) -> str:
    """Return the reason why a scheme violates a bound, or an empty string."""
    if policy.full < 0 and policy.nonzeros >= ANY_NONZEROS:
        return ""
    scheme = found if isinstance(found, Scheme) else found.to_scheme()
    if policy.full >= 0 and (full := full_and_half(scheme)[0]) > policy.full:
        return f"{full} products are full, more than {policy.full}"
    most = max(int(np.diff(factor.indptr).max()) for factor in scheme.factors)
    return f"a factor has {most} nonzeros, more than {policy.nonzeros}" if most > policy.nonzeros else ""


def kept_first(start: Scheme, places: Sequence[int]) -> Scheme:
    """Return the start with the products at these indices (from 0) first, as `Policy.keep` requires.

    Raises:
        PlanError: a product does not exist, none is given, or none would be left to change.
    """
    chosen = list(dict.fromkeys(places))
    if not chosen or any(not 0 <= place < start.rank for place in chosen):
        raise PlanError(f"{start!r} has the products m1 to m{start.rank}: keep some of these")
    if len(chosen) == start.rank:
        raise PlanError(f"all {start.rank} products can't be kept: none would be left to walk on")
    order = [*chosen, *(place for place in range(start.rank) if place not in chosen)]
    u, v, w = (factor.dense[order] for factor in start.factors)
    return Scheme.from_arrays(
        start.target, u, v, w, start.ring, denominators=start.denominators, name=start.name, provenance=start.provenance
    )


def common_products(start: Scheme, other: Scheme) -> list[int]:
    """Return the indices of the products of a start that another scheme contains too, up to sign.

    Raises:
        PlanError: the schemes compute different targets.
    """
    if start.target != other.target:
        raise PlanError(f"{other!r} has no products of {start.target} to keep")
    known, own = ([row.tobytes() for row in np.concatenate(signed_factors(one), axis=1)] for one in (other, start))
    return [place for place, product in enumerate(own) if product in known]


def signed_factors(scheme: Scheme) -> tuple[IntArray, IntArray, IntArray]:
    """Return U, V and W (R, blocks), the signs of products moved so that first nonzeros of U and V are positive."""
    u, v, w = (factor.dense.reshape(scheme.rank, -1) for factor in scheme.factors)
    firsts = (np.take_along_axis(part, (part != 0).argmax(axis=1)[:, None], axis=1) for part in (u, v))
    left, right = (np.where(first < 0, -1, 1) for first in firsts)
    return u * left, v * right, w * left * right
