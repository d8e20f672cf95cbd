"""How the sums and products of a level are stored: that in which the methods of running a level differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from ...schemes_db.program import ProductKind
from ..planning.strategy import Stage
from .mapping import BoundMap
from .workspace import Arena

Matrix = npt.NDArray[Any]

Form = tuple[ProductKind, int]
"""The kind of a product, and how many inner blocks long it is."""


@dataclass(frozen=True)
class Batch:
    """Products that may run in any order, by number, with their operands and the places of their results."""

    products: Sequence[int]
    lefts: Sequence[Matrix]
    rights: Sequence[Matrix]
    results: Sequence[Matrix]


class Store(Protocol):
    """The matrices of one level of known sizes: it computes the sums and merges the products."""

    @property
    def forms(self) -> Sequence[Form]:
        """Of every product."""

    @property
    def maps(self) -> Sequence[BoundMap]:
        """All generated code that it runs."""

    @property
    def workspace(self) -> int:
        """Bytes that `batches` takes from the arena."""

    def stages(self) -> list[Stage]:
        """What one run costs, without seconds: the sums of A, those of B where they are computed apart, and C."""

    def batches(
        self, a: Matrix, b: Matrix, out: Matrix, arena: Arena, threads: int, rights: Sequence[Matrix] | None = None
    ) -> Iterator[Batch]:
        """Yield the products to run, with their operands computed; merge them into `out` when resumed.

        `rights` are right operands computed before: then B is not read. Memory is cut before the first batch.
        """
