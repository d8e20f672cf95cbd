"""Conversion of a walk's terms to a find: a sparse basis, a certificate, and a lift if one is wanted."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from ...schemes_db import Z2, Provenance, Scheme, Z
from ...verify import certify
from ...version import __version__
from ..basis.shears import sparsified
from ..flipgraph.policy import ANY_NONZEROS, Policy
from ..flipgraph.walkers import WalkTerms
from ..lifting.lift import lift
from ..lifting.ternary import ternary_lift
from ..terms.packed import PackedTerms
from .bounds import broken
from .config import RunConfig
from .result import Find, Unlifted

NEIGHBOURS = 8
"""Number of neighbours of a find that are tried for a ternary lift."""

TERNARY_EQUATIONS = 2304
"""Maximum number of Brent equations of a target whose neighbours are tried (3x4x4): a lift takes some milliseconds."""


class Ancestry(NamedTuple):
    """Origin of the walks of a stage: the digests of the parents, and the operation on them before the walk."""

    parents: tuple[str, ...] = ()
    relation: str = ""


def sparse(terms: WalkTerms, policy: Policy) -> WalkTerms:
    """Return a walk's terms, over GF(2) in a sparse basis if that violates no bound of the policy."""
    if isinstance(terms, PackedTerms) and not policy.keep:
        sparser = sparsified(terms)
        if not broken(sparser, policy):
            return sparser
    return terms


def provenance_of(
    config: RunConfig, scheme: Scheme, ancestry: Ancestry, remark: str, seconds: float, relation: str = ""
) -> Provenance:
    """Return the provenance of a find of a run, by default by a walk.

    The find itself is none of its parents: a ladder may pass on a given scheme unchanged.
    """
    parents = tuple(parent for parent in ancestry.parents if parent != scheme.digest)
    walked = f"{ancestry.relation}, flip walk" if ancestry.relation else f"flip walk{'' if parents else ' from naive'}"
    return Provenance(
        kind="search",
        command=config.call,
        seed=config.seed,
        version=__version__,
        parents=parents,
        relation=relation or walked,
        remark=remark,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
    )


def certified(config: RunConfig, origin: Scheme) -> Find | Unlifted:
    """Certify and lift a scheme; return the find, or the certified origin if it has no lift to the ring and bounds.

    Small targets over Z also try the ternary lifts of its neighbours.
    """
    certificate = certify(origin)
    if not origin.ring.characteristic or config.output_ring.characteristic:
        return Find(origin, certificate, origin, certificate)
    small = config.final_target.equations <= TERNARY_EQUATIONS and config.target_policy.nonzeros == ANY_NONZEROS
    if config.output_ring is Z and origin.ring is Z2 and small:
        lifted = ternary_lift(origin, walks=NEIGHBOURS, seed=config.seed)
    else:
        lifted = lift(origin, ring=config.output_ring, seed=config.seed)
    if lifted.scheme is None or lifted.certificate is None:
        return Unlifted(origin, lifted.reason)
    if reason := broken(lifted.scheme, config.target_policy):
        return Unlifted(origin, f"in its lift {reason}")
    return Find(lifted.scheme, lifted.certificate, origin, certificate)
