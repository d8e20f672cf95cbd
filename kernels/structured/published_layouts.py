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
import numpy.typing as npt

from ...arguments import need
from ...errors import PlanError
from .block_low_rank import Blast, BlockLowRank, LowRank, Monarch
from .matrix import FactoredMatrix

Matrix = npt.NDArray[Any]

SCALES = ("b1,b2,r", "b2,b1,r", "r,b2,b1")
"""The layouts of S, by the order of its axes; the last is the canonical one."""


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
    if isinstance(structure, LowRank):
        r = structure.rank
        factors = [_given("U", u, (r, structure.rows)).T, _given("V", v, (structure.cols, r)).T]
    elif isinstance(structure, Monarch):
        b1, b2, p, q, r = structure.b1, structure.b2, structure.p, structure.q, structure.rank
        left, right = _given("U", u, (b2, q, b1 * r)), _given("V", v, (b1, r * b2, p))
        factors = [left.reshape(b2, q, b1, r), right.reshape(b1, r, b2, p)]
    else:
        assert isinstance(structure, Blast)
        assert s is not None
        b1, b2, p, q, r = structure.b1, structure.b2, structure.p, structure.q, structure.rank
        axes = _axes(scales)
        sizes = {"b1": b1, "b2": b2, "r": r}
        middle = _given("S", s, tuple(sizes[axis] for axis in axes))
        left = u if u.shape == (b2, q, r) != (b2, r, q) else _given("U", u, (b2, r, q)).swapaxes(1, 2)
        right = v if v.shape == (b1, r, p) != (b1, p, r) else _given("V", v, (b1, p, r)).swapaxes(1, 2)
        factors = [left, middle.transpose([axes.index(axis) for axis in _axes(SCALES[-1])]), right]
    return FactoredMatrix.of(structure, factors)


def to_layout(matrix: FactoredMatrix, scales: str = SCALES[0]) -> dict[str, Matrix]:
    """Return the factors "V", "U" and, for BLAST, "S" in the layout of the papers; the inverse of `from_layout`.

    Raises:
        PlanError: the layout of S is unknown.
    """
    need(FactoredMatrix, matrix=matrix)
    need(str, scales=scales)
    structure, factors = matrix.structure, matrix.factors
    if isinstance(structure, LowRank):
        found = {"V": factors[1].T, "U": factors[0].T}
    elif isinstance(structure, Monarch):
        b1, b2, r = structure.b1, structure.b2, structure.rank
        found = {"V": factors[1].reshape(b1, r * b2, structure.p), "U": factors[0].reshape(b2, structure.q, b1 * r)}
    else:
        canonical = _axes(SCALES[-1])
        middle = factors[1].transpose([canonical.index(axis) for axis in _axes(scales)])
        found = {"V": factors[2].swapaxes(1, 2), "U": factors[0].swapaxes(1, 2), "S": middle}
    return {name: np.ascontiguousarray(weights) for name, weights in found.items()}


def _axes(scales: str) -> list[str]:
    if scales not in SCALES:
        raise PlanError(f"layout {scales!r} of S is not known; choose one of {'; '.join(SCALES)}")
    return scales.split(",")


def _given(name: str, weights: Matrix, shape: tuple[int, ...]) -> Matrix:
    if weights.shape != shape:
        raise PlanError(f"{name} has shape {weights.shape}; {shape} is needed")
    return weights
