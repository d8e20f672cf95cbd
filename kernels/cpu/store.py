"""The interface of stores: the sums and products of a level in memory. The methods of a level differ in the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...schemes_db.program import ProductKind
from ..arrays import Matrix
from ..planning.strategy import Stage
from .mapping import BoundMap
from .workspace import Arena

Form = tuple[ProductKind, int]
"""The kind of a product, and its length in inner blocks."""

SUMS = ("sums of A", "sums of B", "blocks of C")
"""The stages of a level besides its products."""


@dataclass(frozen=True)
class Batch:
    """Products that may run in any order, by number, with their operands and result matrices."""

    products: Sequence[int]
    lefts: Sequence[Matrix]
    rights: Sequence[Matrix]
    results: Sequence[Matrix]


class LevelStore(Protocol):
    """The matrices of one level of known sizes: it computes the sums and merges the products."""

    @property
    def forms(self) -> Sequence[Form]:
        """The form of every product."""

    @property
    def maps(self) -> Sequence[BoundMap]:
        """All generated code that the store runs."""

    @property
    def workspace(self) -> int:
        """Number of bytes that `batches` takes from the arena."""

    def stages(self) -> list[Stage]:
        """Return the cost of one run, without seconds: the sums of A, those of B if computed separately, and C."""

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """Yield the products to run, with their operands computed; merge them into `out` when resumed.

        With `rights`, precomputed right operands, B is not read. Memory is allocated before the first batch.
        """
