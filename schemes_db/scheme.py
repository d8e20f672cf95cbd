"""A bilinear scheme <m,k,n; R; U, V, W>."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..errors import SchemeFormatError
from .factor import COEFFICIENT_LIMIT, Factor, IntArray
from .provenance import Provenance
from .ring import Z2, Ring, Z
from .target import Kind, Target

MAX_RANK = 1 << 20
"""The largest rank of a scheme; a header that claims more is refused before memory is taken."""

FACTORS = ("U", "V", "W")


@dataclass(frozen=True, eq=False)
class Scheme:
    """H_r = (sum U[r,i,l] A[i,l]) (sum V[r,l,j] B[l,j]) and C[i,j] = sum_r W[r,i,j] H_r.

    U is (R, m, k), V (R, k, n) and W (R, m, n), indexed by C and not by its transpose. Whether the
    scheme computes its target is not known here: `lcma.certify` proves it.

    Raises:
        SchemeFormatError: the factors do not fit the target or the ring, or use an absent block.
    """

    target: Target
    u: Factor
    v: Factor
    w: Factor
    ring: Ring = Z
    name: str = ""
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        m, k, n = self.target.shape
        rank = self.u.rank
        if not 1 <= rank <= MAX_RANK:
            raise SchemeFormatError(f"rank must be 1 to {MAX_RANK}, not {rank}")
        for label, factor, shape in zip(FACTORS, self.factors, ((m, k), (k, n), (m, n)), strict=True):
            if (factor.rank, factor.rows, factor.cols) != (rank, *shape):
                raise SchemeFormatError(
                    f"{label} must be {rank} products of {shape[0]} x {shape[1]} blocks, "
                    f"not {factor.rank} of {factor.rows} x {factor.cols}"
                )
            if factor.denominator < 1 or (factor.denominator != 1 and not self.ring.fractions):
                raise SchemeFormatError(f"{label} has denominator {factor.denominator}, which ring {self.ring} has not")
            if factor.nnz and int(np.abs(factor.values).max()) >= COEFFICIENT_LIMIT:
                raise SchemeFormatError(f"{label} has a coefficient beyond +-2^62")
        for label, factor, kinds in zip(FACTORS, self.factors, self.target.kind_arrays, strict=True):
            stray = np.flatnonzero(kinds.ravel()[factor.indices] == Kind.ABSENT)
            if len(stray):
                row, col = divmod(int(factor.indices[stray[0]]), factor.cols)
                raise SchemeFormatError(
                    f"{label} uses block [{row + 1},{col + 1}] in product {int(factor.product[stray[0]]) + 1}, "
                    f"but {self.target} has no such block"
                )
        if self.ring.characteristic:
            for slot, factor in zip("uvw", self.factors, strict=True):
                object.__setattr__(self, slot, factor.reduced(self.ring.characteristic))

    @classmethod
    def from_arrays(
        cls,
        target: Target,
        u: npt.ArrayLike,
        v: npt.ArrayLike,
        w: npt.ArrayLike,
        ring: Ring = Z,
        *,
        denominators: tuple[int, int, int] = (1, 1, 1),
        name: str = "",
        provenance: Provenance | None = None,
    ) -> Scheme:
        """The scheme of dense integer numerators U (R, m, k), V (R, k, n) and W (R, m, n)."""
        for label, array in zip(FACTORS, (u, v, w), strict=True):
            dense = np.asarray(array)
            if dense.ndim != 3 or not np.issubdtype(dense.dtype, np.integer):
                raise SchemeFormatError(f"{label} must be a 3-d integer array, not {dense.ndim}-d {dense.dtype}")
        factors = [Factor.from_dense(array, d) for array, d in zip((u, v, w), denominators, strict=True)]
        return cls(target, factors[0], factors[1], factors[2], ring, name, provenance or Provenance())

    def replace(self, **changes: object) -> Scheme:
        """The scheme with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    @property
    def factors(self) -> tuple[Factor, Factor, Factor]:
        return self.u, self.v, self.w

    @property
    def rank(self) -> int:
        return self.u.rank

    @property
    def denominators(self) -> tuple[int, int, int]:
        return self.u.denominator, self.v.denominator, self.w.denominator

    @cached_property
    def coefficients(self) -> tuple[Fraction, ...]:
        """The distinct nonzero coefficients, sorted."""
        return tuple(
            sorted(
                {
                    Fraction(value, factor.denominator)
                    for factor in self.factors
                    for value in np.unique(factor.values).tolist()
                }
            )
        )

    @property
    def ternary(self) -> bool:
        """Whether all coefficients are -1, 0 or 1 (the property ZT)."""
        return set(self.coefficients) <= {-1, 1}

    @cached_property
    def digest(self) -> str:
        """The sha256 (hex) of the canonical form: equal for schemes that differ by signs, scale or order only.

        In the canonical form U and V are primitive with a positive first entry, the factor taken
        out is moved to W, W is in lowest terms, and the products are sorted. Z and Q share digests;
        Z2 does not share with them.
        """
        hasher = hashlib.sha256()
        rows, denominator = _canonical_rows(self)
        head = (
            f"lcma-1 {self.target.name} characteristic {self.ring.characteristic} rank {self.rank} over {denominator}"
        )
        hasher.update(head.encode())
        for row in rows:
            hasher.update(("\n" + " ".join(map(str, row))).encode())
        return hasher.hexdigest()

    def reduced_mod(self, prime: int) -> tuple[Factor, Factor, Factor]:
        """The three factors modulo a prime that divides no denominator."""
        return self.u.reduced(prime), self.v.reduced(prime), self.w.reduced(prime)

    def over_z2(self) -> Scheme | None:
        """The same coefficients read modulo 2, or None where a denominator is even."""
        if any(denominator % 2 == 0 for denominator in self.denominators):
            return None
        return Scheme(self.target, *self.reduced_mod(2), Z2, self.name, self.provenance)

    def __eq__(self, other: object) -> bool:
        """Equality of what is computed and how: the same canonical form."""
        return isinstance(other, Scheme) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{self.target}:{self.rank} over {self.ring}>"


def _primitive(factor: Factor, modulus: int) -> tuple[Factor, IntArray]:
    """The factor divided, product by product, by its signed content; and that content (R,)."""
    content = np.ones(factor.rank, dtype=np.int64)
    filled = np.flatnonzero(np.diff(factor.indptr))
    if len(filled) and not modulus:
        starts = factor.indptr[filled]
        content[filled] = np.gcd.reduceat(np.abs(factor.values), starts) * np.sign(factor.values[starts])
    values = factor.values // content[factor.product]
    return Factor(factor.rows, factor.cols, factor.indptr, factor.indices, values), content


def _canonical_rows(scheme: Scheme) -> tuple[list[tuple[int, ...]], int]:
    """The products of the canonical form, sorted, each (nnz u, nnz v, index, value, ...), and W's denominator."""
    modulus = scheme.ring.characteristic
    u, u_content = _primitive(scheme.u, modulus)
    v, v_content = _primitive(scheme.v, modulus)
    denominator = 1
    for part in scheme.denominators:
        denominator *= part
    scale = [int(a) * int(b) for a, b in zip(u_content, v_content, strict=True)]
    empty = np.logical_or.reduce([np.diff(factor.indptr) == 0 for factor in scheme.factors]).tolist()
    w_values = [
        0 if empty[r] else value * scale[r]
        for value, r in zip(scheme.w.values.tolist(), scheme.w.product.tolist(), strict=True)
    ]
    if denominator != 1:
        # W in lowest terms: only now may the common denominator be divided by the common content.
        common = math.gcd(denominator, *w_values)
        denominator //= common
        w_values = [value // common for value in w_values]
    columns: list[Iterator[tuple[list[int], list[int]]]] = []
    for factor, values in ((u, u.values.tolist()), (v, v.values.tolist()), (scheme.w, w_values)):
        bounds = factor.indptr.tolist()
        indices = factor.indices.tolist()
        columns.append(iter([(indices[a:b], values[a:b]) for a, b in pairwise(bounds)]))
    rows = [
        (0, 0) if nothing else (len(ui), len(vi), *ui, *uv, *vi, *vv, *wi, *wv)
        for nothing, (ui, uv), (vi, vv), (wi, wv) in zip(empty, *columns, strict=True)
    ]
    return sorted(rows), denominator
