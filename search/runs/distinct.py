"""Pool of inequivalent schemes, for diverse starts of walks."""

from __future__ import annotations

from collections.abc import Iterable

from ...schemes_db import Scheme
from ...schemes_db.invariants import invariants


class DistinctPool:
    """Schemes with distinct invariants: no change of basis or permutation of the factors maps one to another.

    So equivalent copies of one scheme are one member. Schemes of a target that is no full product are
    distinguished by their digests only.
    """

    def __init__(self, schemes: Iterable[Scheme] = ()) -> None:
        self.schemes: list[Scheme] = []
        self._alike: dict[str, list[tuple[Scheme, str | None]]] = {}
        self._seen: set[str] = set()
        for scheme in schemes:
            self.add(scheme)

    def __len__(self) -> int:
        return len(self.schemes)

    def add(self, scheme: Scheme) -> bool:
        """Add a scheme; return False if an equivalent one is a member."""
        if scheme.digest in self._seen:
            return False
        self._seen.add(scheme.digest)
        if self._knows(scheme):
            return False
        self.schemes.append(scheme)
        return True

    def _knows(self, scheme: Scheme) -> bool:
        """Return whether an equivalent scheme is a member, else record it.

        Invariants of pairs of products are slow, and are compared only if the others agree.
        """
        if not scheme.target.is_general:
            return False
        quick = invariants(scheme, pairs_limit=0).digest
        alike = self._alike.setdefault(quick, [])
        if not alike:
            alike.append((scheme, None))
            return False
        kinds = [kind or invariants(one).digest for one, kind in alike]
        mine = invariants(scheme).digest
        self._alike[quick] = [(one, kind) for (one, _), kind in zip(alike, kinds, strict=True)]
        if mine in kinds:
            return True
        self._alike[quick].append((scheme, mine))
        return False
