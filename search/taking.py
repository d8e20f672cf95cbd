"""From a walk's terms to a find: a sparse basis, a certificate, and a lift where one is wanted."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from ..schemes_db import Z2, Provenance, Scheme
from ..verify import certify
from ..version import __version__
from .config import RunConfig
from .lifting import lift
from .packed import PackedTerms
from .result import Find, Unlifted
from .sparsify import sparsified
from .walker import Terms


@dataclass(frozen=True)
class Ancestry:
    """Where walks of a stage come from: the origins' digests, and what was done to them before the walk."""

    parents: tuple[str, ...] = ()
    relation: str = ""

    def without(self, digest: str) -> Ancestry:
        """The same but for a scheme itself: a ladder may pass on what it was given."""
        return Ancestry(tuple(parent for parent in self.parents if parent != digest), self.relation)

    def walked(self) -> str:
        """The relation of a find to its parents."""
        if not self.parents:
            return "flip walk from naive"
        return f"{self.relation}, flip walk" if self.relation else "flip walk"


def origin_of(terms: Terms) -> Scheme:
    """The scheme of a walk's terms, in a sparse basis where that is known."""
    return (sparsified(terms) if isinstance(terms, PackedTerms) else terms).to_scheme()


def taken(config: RunConfig, origin: Scheme, ancestry: Ancestry, remark: str, seconds: float) -> Find | Unlifted:
    """The certified find, or the certified scheme over Z2 that does not lift to the ring of the run."""
    certificate = certify(origin)
    ancestry = ancestry.without(origin.digest)
    origin = origin.replace(
        provenance=Provenance(
            kind="search",
            command=config.call,
            seed=config.seed,
            version=__version__,
            parents=ancestry.parents,
            relation=ancestry.walked(),
            remark=remark,
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 3),
        )
    )
    if origin.ring is not Z2 or config.over is Z2:
        return Find(origin, certificate, origin, certificate)
    lifted = lift(origin, ring=config.over, seed=config.seed)
    if lifted.scheme is None or lifted.certificate is None:
        return Unlifted(origin, lifted.reason)
    return Find(lifted.scheme, lifted.certificate, origin, certificate)
