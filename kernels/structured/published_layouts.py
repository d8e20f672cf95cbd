"""Conversion of factors between the canonical layout and those of the papers and of their published code.

Papers write X W with W (inputs x outputs), the transpose of this package's W:
- low-rank: V (i, r) and U (r, o).
- Monarch: V (b1, r' b2, p), whose rows have b2 innermost, and U (b2, q, b1 r'), with r' innermost.
- BLAST: V (b1, p, r), S (b1, b2, r) and U (b2, r, q). Published code also stores V and U transposed, as (b1, r, p) and
  (b2, q, r), and S as (b2, b1, r) or (r, b2, b1): the layout of S is named by its axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import need
from ...errors import PlanError
from .block_low_rank import Blast, BlockLowRank
from .blocks import Matrix
from .layouts import rearranged, shape_of
from .matrix import FactoredMatrix

SCALES = ("b1,b2,r", "b2,b1,r", "r,b2,b1")
"""The layouts of S, by the order of its axes; the last is the canonical one."""

PUBLISHED = {
    "low-rank": {"V": "p r", "U": "r q"},
    "monarch": {"V": "l rk p", "U": "k q lr"},
    "blast": {"V": "l p r", "U": "k r q"},
}
"""The axes of the papers' factors but S, in the letters of `BlockLowRank.axes`."""


def from_layout(
    structure: BlockLowRank, v: Matrix, u: Matrix, s: Matrix | None = None, scales: str = SCALES[0]
) -> FactoredMatrix:
    """Convert factors in the layout of the papers to a matrix; BLAST's V and U may be transposed, as in published code.

    If a BLAST factor's shape fits both (p = r, or q = r), the papers' layout is assumed.

    Raises:
        PlanError: shapes do not match the structure, or S is missing, superfluous or of an unknown layout.
    """
    need(BlockLowRank, structure=structure)
    need(np.ndarray, v=v, u=u)
    need(np.ndarray | None, s=s)
    need(str, scales=scales)
    if (s is None) == isinstance(structure, Blast):
        raise PlanError("BLAST needs V, U and S; low-rank and Monarch matrices need V and U")
    known, given, factors = _papers(structure, scales), {"U": u, "S": s, "V": v}, []
    for name, own in structure.axes.items():
        weights: Any = given[name]
        papers, shape, other = known[name], *(shape_of(axes, structure.extents) for axes in (known[name], own))
        if isinstance(structure, Blast) and name != "S" and weights.shape == other != shape:
            papers = own
        elif weights.shape != shape:
            raise PlanError(f"{name} has shape {weights.shape}; {shape} is needed")
        factors.append(rearranged(weights, papers, own, structure.extents))
    return FactoredMatrix.of(structure, factors)


def to_layout(matrix: FactoredMatrix, scales: str = SCALES[0]) -> dict[str, Matrix]:
    """Return the factors "V", "U" and, for BLAST, "S" in the layout of the papers; the inverse of `from_layout`.

    Raises:
        PlanError: the layout of S is unknown.
    """
    need(FactoredMatrix, matrix=matrix)
    need(str, scales=scales)
    structure: Any = matrix.structure
    need(BlockLowRank, structure=structure)
    factors = dict(zip(structure.axes, matrix.factors, strict=True))
    return {
        name: rearranged(factors[name], structure.axes[name], papers, structure.extents)
        for name, papers in _papers(structure, scales).items()
    }


def _papers(structure: BlockLowRank, scales: str) -> dict[str, str]:
    """Return the papers' axes of every factor."""
    if not isinstance(structure, Blast):
        return PUBLISHED[structure.kind]
    if scales not in SCALES:
        raise PlanError(f"layout {scales!r} of S is not known; choose one of {'; '.join(SCALES)}")
    return PUBLISHED["blast"] | {"S": scales.replace("b1", "l").replace("b2", "k").replace(",", " ")}
