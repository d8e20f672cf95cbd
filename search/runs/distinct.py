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
        self._known: set[str] = set()
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
        kind = invariants(scheme).digest if scheme.target.is_general else scheme.digest
        if kind in self._known:
            return False
        self._known.add(kind)
        self.schemes.append(scheme)
        return True
