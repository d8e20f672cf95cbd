"""How much memory beyond C the products of a scheme need when they are computed in the blocks of C.

The cells are the wanted blocks of C. A schedule computes every product once, by one GEMM that adds it
to a cell, and may add multiples of cells to each other. A factor that is a sum of blocks has to be
stored while it is multiplied: in a cell that is free then, or in a block beyond C.

The number of free cells is determined by ranks. After the products D, their contribution to
C is W_D, the columns of W that belong to them, times D; at least rank(W_D) cells are needed to store it, and
so many suffice: a column w = W_r becomes a single cell after row operations, which are additions of
cells, and after the product has been added there they are undone,

    C_i -= (w_i / w_j) C_j,    C_j += w_j L_r R_r,    C_i += (w_i / w_j) C_j    for all i != j.

Source of the trick: J.-G. Dumas and B. Grenet, In-place accumulation of fast multiplication
formulae, arXiv 2307.12712; ECA, section 3.3, claims it for stage I after Shitov (2025).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db.grids import Kind
from ...schemes_db.scheme import Scheme

IntArray = npt.NDArray[np.int64]


def weights(scheme: Scheme) -> IntArray:
    """Return W of a scheme over the integers, (wanted blocks of C, R).

    Raises:
        PlanError: the scheme has fractions.
    """
    factor = scheme.factors[2]
    if scheme.ring.name != "Z" or factor.denominator != 1:
        raise PlanError(f"ranks of the cells are of schemes over Z, not over {scheme.ring}")
    wanted = scheme.target.kind_arrays[2].ravel() != Kind.ABSENT
    return factor.dense.reshape(scheme.rank, -1)[:, wanted].T.astype(np.int64)


def sums_of(scheme: Scheme) -> IntArray:
    """Return by product how many of its two factors are sums, not single blocks: 0, 1 or 2."""
    proper = [(np.abs(factor.dense).reshape(scheme.rank, -1).sum(axis=1) != 1) for factor in scheme.factors[:2]]
    return proper[0].astype(np.int64) + proper[1]


def blocks_beyond(scheme: Scheme) -> int:
    """Return the minimum number of blocks beyond the wanted ones of C with which some schedule computes the scheme.

    An order of the products needs rank(W_D) + s cells when a product with s sums is computed, D being
    the products computed so far, including it. Ranks only grow, so the best order computes the products
    with two sums first, then those with one: this evaluates the maximum over that order.
    """
    columns, sums = weights(scheme), sums_of(scheme)
    need = max(_rank(columns[:, sums >= least]) + least for least in (0, 1, 2) if (sums >= least).any())
    return max(0, need - len(columns))


def _rank(matrix: IntArray) -> int:
    """Return the rank over the rationals."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix

    return int(DomainMatrix([[QQ(value) for value in row] for row in matrix.tolist()], matrix.shape, QQ).rank())
