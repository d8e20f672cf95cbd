"""Products as triples of matrices, which Mathematica and Maple files have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .candidates import reading_of_terms
from .nodes import Node, described, is_number
from .reading import C_TRANSPOSED, Reading, Term


def reading_of_triads(
    format: str, triads: Sequence[Node], target: Target | None = None, ring: Ring | None = None
) -> Reading:
    """The reading of products {A, B, C^T}, each of three matrices of the same sizes throughout.

    Raises:
        SchemeFormatError: a product is not three matrices, or sizes change.
    """
    if len(triads) > MAX_RANK:
        raise SchemeFormatError(f"more than {MAX_RANK} products")
    factors: tuple[list[list[Term]], ...] = ([], [], [])
    sizes: tuple[tuple[int, int], ...] = ()
    for r, triad in enumerate(triads):
        matrices = [matrix(node) for node in triad] if isinstance(triad, list) else []
        grids = [rows for rows in matrices if rows is not None]
        if len(matrices) != 3 or len(grids) != 3:
            raise SchemeFormatError(f"product {r + 1} must be three matrices of numbers")
        found = tuple((len(rows), len(rows[0])) for rows in grids)
        if sizes and found != sizes:
            raise SchemeFormatError(f"product {r + 1} has matrices of other sizes than the ones before")
        sizes = found
        for factor, rows in zip(factors, grids, strict=True):
            factor.append([(i, j, value) for i, row in enumerate(rows) for j, value in enumerate(row) if value])
    if not sizes:
        raise SchemeFormatError("no products here")
    a, b, c = factors
    return reading_of_terms(format, a, b, c, C_TRANSPOSED, target, ring, sizes)


def matrix(node: Node) -> list[list[Coefficient]] | None:
    """The rows of a node that is a matrix of numbers with equal rows, else None.

    Raises:
        SchemeFormatError: an entry is no number.
    """
    if not isinstance(node, list) or not node or not all(isinstance(row, list) and row for row in node):
        return None
    for row in node:
        if not set(map(type, row)) <= {int} and (other := next((x for x in row if not is_number(x)), None)) is not None:
            raise SchemeFormatError(f"a number belongs here, not {described(other)}")
    return list(node) if len({len(row) for row in node}) == 1 else None
