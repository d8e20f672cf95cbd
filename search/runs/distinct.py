"""Schemes that are truly different, so that walks start from many places."""

from __future__ import annotations

from collections.abc import Iterable

from ...schemes_db import Scheme
from ...schemes_db.invariants import invariants


class DistinctPool:
    """Schemes with invariants of their own: no change of basis or of roles makes one another.

    Copies of one scheme that a selection has spread are one member. Schemes of a target that is no full
    product are told apart by their digests alone.
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
        """Take a scheme in; False where one like it is there."""
        if scheme.digest in self._seen:
            return False
        self._seen.add(scheme.digest)
        if self._knows(scheme):
            return False
        self.schemes.append(scheme)
        return True

    def _knows(self, scheme: Scheme) -> bool:
        """Whether one like it is there; pairs of products, which take long, are compared only where the rest agrees."""
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
