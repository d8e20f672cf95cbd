"""Costs of one level of a scheme on given sizes, and the roofline inequality that a product must meet for any to gain.

Source: FalconGEMM (arXiv:2605.06057), Table II for operations and traffic of combinations, Eq. 8 for the inequality.
Beyond the paper: blocks are those of the padded sizes, and a sum that equals a block is neither read nor written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...schemes_db import costs
from ...schemes_db.factor import Factor
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ..codegen.maps import MAX_TARGETS
from ..dtypes import dtype_of
from ..identity import memoize_on_instance
from ..planning.profile import Profile

STAGES = ("Combine A", "Combine B", "Combine H")


@dataclass(frozen=True)
class SchemeCosts:
    """Costs of a level of a scheme <m,k,n;R>; numbers, or arrays with an entry per scheme.

    `nnz` are the nonzeros of U, V and W; `made` the numbers of distinct left and right sums that are not a
    block, `distinct` those of all distinct sums; `growth` is the stability factor.
    """

    m: Any
    k: Any
    n: Any
    rank: Any
    nnz: tuple[Any, Any, Any]
    made: tuple[Any, Any]
    distinct: tuple[Any, Any]
    growth: Any

    def packed(self) -> np.ndarray:
        """Return all fields as rows of one array (12, schemes), in their order."""
        return np.array(
            [self.m, self.k, self.n, self.rank, *self.nnz, *self.made, *self.distinct, self.growth], dtype=float
        )

    @classmethod
    def unpacked(cls, rows: np.ndarray) -> SchemeCosts:
        """Return the costs from the output of `packed`."""
        m, k, n, rank, nu, nv, nw, made_a, made_b, distinct_a, distinct_b, growth = rows
        return cls(m, k, n, rank, (nu, nv, nw), (made_a, made_b), (distinct_a, distinct_b), growth)

    @classmethod
    def stacked(cls, several: Sequence[SchemeCosts]) -> SchemeCosts:
        """Return the costs of several schemes as arrays."""
        return cls.unpacked(np.stack([one.packed() for one in several], axis=1))

    def __getitem__(self, place: Any) -> SchemeCosts:
        return SchemeCosts.unpacked(self.packed()[:, place])

    def __matmul__(self, inner: SchemeCosts) -> SchemeCosts:
        """Return the costs of the tensor product, whose counts are products of counts."""
        outer_plain, inner_plain = (
            [x - y for x, y in zip(one.distinct, one.made, strict=True)] for one in (self, inner)
        )
        distinct = [x * y for x, y in zip(self.distinct, inner.distinct, strict=True)]
        made = [whole - mine * theirs for whole, mine, theirs in zip(distinct, outer_plain, inner_plain, strict=True)]
        nu, nv, nw = (x * y for x, y in zip(self.nnz, inner.nnz, strict=True))
        sizes = self.m * inner.m, self.k * inner.k, self.n * inner.n, self.rank * inner.rank
        sums = (made[0], made[1]), (distinct[0], distinct[1])
        return SchemeCosts(*sizes, (nu, nv, nw), *sums, self.growth * inner.growth)

    def combines(self, dtype: str) -> tuple[tuple[Any, Any], ...]:
        """Return (operations, bytes) of Combine A, Combine B and Combine H of one level by element of a block."""
        kind = dtype_of(dtype)
        item = float(kind.numpy.itemsize)

        def work(additions: Any, reads: Any, writes: Any) -> tuple[Any, Any]:
            # A kernel has at most MAX_TARGETS results: a larger map reads its sources once per kernel.
            return 1.0 * kind.parts * additions, item * (reads * np.ceil(writes / MAX_TARGETS) + writes)

        (nu, nv, nw), (made_a, made_b) = self.nnz, self.made
        return (
            work(nu - self.rank, self.m * self.k, made_a),
            work(nv - self.rank, self.k * self.n, made_b),
            work(nw - self.m * self.n, self.rank, self.m * self.n),
        )


def costs_of(scheme: Scheme) -> SchemeCosts:
    """Return the costs of one level of a scheme."""
    (m, k, n), (left, right) = scheme.target.shape, (_sums(scheme.factors[side]) for side in range(2))
    growth = costs.growth_factor(scheme)
    made = left[0] - left[1], right[0] - right[1]
    return SchemeCosts(m, k, n, scheme.rank, costs.nonzeros(scheme), made, (left[0], right[0]), growth)


@memoize_on_instance
def costs_of_program(program: Program) -> SchemeCosts:
    """Return the costs of the outer level of a program: those of the scheme that it expands to."""
    from ...verify.program import scheme_of

    return costs_of(scheme_of(Program(program.target, program.ring, program.ops)))


def _sums(factor: Factor) -> tuple[int, int]:
    """Return the number of distinct sums, and of those that equal one block."""
    sums = {tuple(factor.terms(r)) for r in range(factor.rank)}
    plain = sum(len(terms) == 1 and terms[0][1] == 1 and factor.denominator == 1 for terms in sums)
    return len(sums), plain


@dataclass(frozen=True)
class RooflineCheck:
    """An inequality with its two sides: arithmetic intensity, and the machine's operations per element moved."""

    name: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left > self.right

    def __str__(self) -> str:
        return f"{self.name}: {self.left:.1f} {'>' if self.holds else '<='} {self.right:.1f} flop/element"


def machine_balance(profile: Profile, dtype: str, m: int, k: int, n: int) -> float | None:
    """Return FLOPS_x / beta, with beta in elements per second."""
    rate, bandwidth = profile.gemm_rate(dtype, m, k, n), profile.bandwidth or profile.combine_rate
    if rate is None or bandwidth is None:
        return None
    return rate / (bandwidth / dtype_of(dtype).numpy.itemsize)


def compute_bound(profile: Profile, dtype: str, m: int, k: int, n: int) -> RooflineCheck | None:
    """Eq. 8: if it does not hold the classical product is memory-bound, and no scheme can gain."""
    most = machine_balance(profile, dtype, m, k, n)
    if most is None:
        return None
    return RooflineCheck("Eq. 8", 2.0 * m * n * k / max(m * k + n * k + m * n, 1), most)
