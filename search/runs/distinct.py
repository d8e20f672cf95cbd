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
        """Add a scheme; return False if an equivalent one is a member.

        Invariants of pairs of products are slow, and are compared only if the others agree.
        """
        if scheme.digest in self._seen:
            return False
        self._seen.add(scheme.digest)
        if scheme.target.is_general:
            alike = self._alike.setdefault(invariants(scheme, pairs_limit=0).digest, [])
            mine = invariants(scheme).digest if alike else None
            alike[:] = [(one, kind or invariants(one).digest) for one, kind in alike]
            if any(kind == mine for _, kind in alike):
                return False
            alike.append((scheme, mine))
        self.schemes.append(scheme)
        return True
