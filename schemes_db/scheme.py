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

from ..arguments import need
from ..errors import SchemeFormatError, TargetError
from .display import line
from .drawing import picture
from .factor import COEFFICIENT_LIMIT, Factor, IntArray, integer_array, refuse_large
from .gaussian import Gaussian, gaussian, simplest
from .grids import Kind
from .masks import mask_reason
from .provenance import Provenance, constructed
from .ring import QI, Z2, Q, Ring, Z
from .target import Target

MAX_RANK = 1 << 20
"""The largest rank of a scheme; a header that claims more is refused before memory is allocated."""

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
        need(Target, target=self.target)
        need(Factor, u=self.u, v=self.v, w=self.w)
        need(Ring, ring=self.ring)
        need(str, name=self.name)
        need(Provenance, provenance=self.provenance)
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
            if factor.gaussian and not self.ring.gaussian:
                raise SchemeFormatError(f"{label} has an imaginary part, which ring {self.ring} has not")
            if not factor.large and factor.peak >= COEFFICIENT_LIMIT:
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
        """The scheme of dense integer numerators U (R, m, k), V (R, k, n) and W (R, m, n).

        Over Q(i) they may have a trailing axis of length 2.
        """
        for label, array in zip(FACTORS, (u, v, w), strict=True):
            if reason := mask_reason(label, array):
                raise SchemeFormatError(reason)
            dense = np.asarray(array)
            complex_parts = ring.gaussian and dense.ndim == 4 and dense.shape[3] == 2
            if not (dense.ndim == 3 or complex_parts) or not np.issubdtype(dense.dtype, np.integer):
                raise SchemeFormatError(f"{label} must be a 3-d integer array, not {dense.ndim}-d {dense.dtype}")
        if not all(isinstance(d, int | np.integer) and 1 <= d < COEFFICIENT_LIMIT for d in denominators):
            raise SchemeFormatError(f"denominators must be whole numbers from 1 to 2^62, not {denominators}")
        factors = [Factor.from_dense(array, int(d)) for array, d in zip((u, v, w), denominators, strict=True)]
        return cls(target, factors[0], factors[1], factors[2], ring, name, provenance or Provenance())

    def replace(self, **changes: object) -> Scheme:
        """The scheme with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # of the fields' types

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
    def coefficients(self) -> tuple[Fraction | Gaussian, ...]:
        """The distinct nonzero coefficients, real ones first, sorted by real and imaginary part."""
        found = {
            simplest(
                Fraction(values[0], factor.denominator)
                if len(values) == 1
                else Gaussian(Fraction(values[0], factor.denominator), Fraction(values[1], factor.denominator))
            )
            for factor in self.factors
            for values in _distinct(factor)
        }
        numbers = [value if isinstance(value, Gaussian) else Fraction(value) for value in found]
        return tuple(sorted(numbers, key=lambda value: (isinstance(value, Gaussian), *_parts(value))))

    @property
    def ternary(self) -> bool:
        """True if all coefficients are -1, 0 or 1 (the property ZT)."""
        return set(self.coefficients) <= {-1, 1}

    @cached_property
    def digest(self) -> str:
        """The sha256 (hex) of the canonical form: equal for schemes that differ by signs, scale or order only.

        In the canonical form U and V are primitive with a positive first entry, the factor taken
        out is moved to W, W is in lowest terms, and the products are sorted. Where there are units
        other than 1 and -1 (over Z/p, and where a coefficient is not real) U and V are divided by
        their first entry instead. Z, Q and Q(i) share digests; Z/p does not share with them.
        """
        if self.gaussian and (real := _real_twin(self)) is not None:
            return real.digest
        hasher = hashlib.sha256()
        field = self.gaussian or self.ring.characteristic > 2
        rows, denominator = (_monic_rows(self), 1) if field else (_canonical_rows(self), self.primitive.denominator)
        head = (
            f"lcma-1 {self.target.name} characteristic {self.ring.characteristic} rank {self.rank} over {denominator}"
        )
        hasher.update(head.encode())
        for row in rows:
            hasher.update(("\n" + " ".join(map(str, row))).encode())
        return hasher.hexdigest()

    @cached_property
    def primitive(self) -> Primitive:
        """The same products with primitive U and V and the contents moved to W: the smallest integers that say them.

        For real coefficients, and over Z2.
        """
        return _primitive_form(self)

    @property
    def gaussian(self) -> bool:
        """True if some coefficient has an imaginary part."""
        return any(factor.gaussian for factor in self.factors)

    @property
    def large(self) -> bool:
        """True if some coefficient exceeds int64: such a scheme is verified, but neither kept nor run."""
        return any(factor.large for factor in self.factors)

    def reduced_mod(self, prime: int, root: int = 0) -> tuple[Factor, Factor, Factor]:
        """The three factors modulo a prime that divides no denominator, with i at a square root of -1."""
        return self.u.reduced(prime, root), self.v.reduced(prime, root), self.w.reduced(prime, root)

    def over_z2(self) -> Scheme | None:
        """The same coefficients read modulo 2, or None where a denominator is even or a coefficient not real."""
        if self.gaussian or any(denominator % 2 == 0 for denominator in self.denominators):
            return None
        return Scheme(self.target, *self.reduced_mod(2), Z2, self.name, self.provenance)

    def __eq__(self, other: object) -> bool:
        """Equality of what is computed and how: the same canonical form."""
        return isinstance(other, Scheme) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __matmul__(self, inner: Scheme) -> Scheme:
        """The composition: every block product of this scheme computed by `inner`; rank is the product of the ranks.

        Raises:
            TargetError: different characteristics, an outer target with half blocks, or too large a result.
        """
        if not isinstance(inner, Scheme):
            return NotImplemented
        if self.ring.characteristic != inner.ring.characteristic:
            raise TargetError(f"schemes over {self.ring} and {inner.ring} have no tensor product")
        target = self.target.tensor(inner.target)
        if self.rank * inner.rank > MAX_RANK:
            raise TargetError(f"the tensor product would have rank {self.rank * inner.rank}, beyond {MAX_RANK}")
        factors = []
        for x, y in zip(self.factors, inner.factors, strict=True):
            refuse_large(x, y)
            factors.append(x.tensor(y))
        ring = next((ring for ring in (QI, Q) if ring in (self.ring, inner.ring)), self.ring)
        name = f"{self.name}*{inner.name}" if self.name and inner.name else ""
        origin = constructed("tensor", "tensor product", *((one.digest, one.provenance) for one in (self, inner)))
        u, v, w = factors
        return Scheme(target, u, v, w, ring, name, origin)

    @property
    def label(self) -> str:
        """Target, rank and ring in a few words."""
        return f"{self.target}:{self.rank} over {self.ring}"

    def __repr__(self) -> str:
        return line(self.label)

    def _repr_html_(self) -> str:
        """The products as pictures and equations, for a notebook."""
        return picture(f"{self.label} {self.name}", self.target, self.factors)


def _distinct(factor: Factor) -> list[list[int]]:
    """The distinct numerators, each as its parts; along no axis where they are real, which is much faster."""
    if factor.gaussian:
        pairs: list[list[int]] = np.unique(factor.values, axis=0).tolist()
        return pairs
    return [[value] for value in np.unique(factor.values).tolist()]


def _primitive(factor: Factor, modulus: int) -> tuple[Factor, IntArray]:
    """The factor divided, product by product, by its signed content; and that content (R,)."""
    content = np.ones(factor.rank, dtype=factor.values.dtype)
    filled = np.flatnonzero(np.diff(factor.indptr))
    if len(filled) and not modulus:
        starts = factor.indptr[filled]
        content[filled] = np.gcd.reduceat(np.abs(factor.values), starts) * np.sign(factor.values[starts])
    values = factor.values // content[factor.product]
    return Factor(factor.rows, factor.cols, factor.indptr, factor.indices, values), content


@dataclass(frozen=True, eq=False)
class Primitive:
    """U and V with content 1 and a positive first entry in every product, W as integers over one denominator.

    `w_values` are Python integers, in the order of the nonzeros of the scheme's own W; 0 for a product
    that has an empty factor.
    """

    u: Factor
    v: Factor
    w_values: list[int]
    denominator: int


def _primitive_form(scheme: Scheme) -> Primitive:
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
    return Primitive(u, v, w_values, denominator)


def _canonical_rows(scheme: Scheme) -> list[tuple[int, ...]]:
    """The products of the canonical form, sorted, each (nnz u, nnz v, index, value, ...)."""
    form = scheme.primitive
    u, v, w_values = form.u, form.v, form.w_values
    empty = np.logical_or.reduce([np.diff(factor.indptr) == 0 for factor in scheme.factors]).tolist()
    columns: list[Iterator[tuple[list[int], list[int]]]] = []
    for factor, values in ((u, u.values.tolist()), (v, v.values.tolist()), (scheme.w, w_values)):
        bounds = factor.indptr.tolist()
        indices = factor.indices.tolist()
        columns.append(iter([(indices[a:b], values[a:b]) for a, b in pairwise(bounds)]))
    rows = [
        (0, 0) if nothing else (len(ui), len(vi), *ui, *uv, *vi, *vv, *wi, *wv)
        for nothing, (ui, uv), (vi, vv), (wi, wv) in zip(empty, *columns, strict=True)
    ]
    return sorted(rows)


def _parts(value: Fraction | Gaussian) -> tuple[Fraction, Fraction]:
    return (value.real, value.imag) if isinstance(value, Gaussian) else (value, Fraction(0))


def _monic_products(scheme: Scheme) -> list[list[list[tuple[int, Gaussian]]]]:
    """For every product its three factors, U and V with first entry 1 and their scale moved to W; [] for a zero one."""
    modulus = scheme.ring.characteristic
    products: list[list[list[tuple[int, Gaussian]]]] = []
    for r in range(scheme.rank):
        parts = [[(index, gaussian(value)) for index, value in factor.coefficients(r)] for factor in scheme.factors]
        if not all(parts):
            products.append([])
            continue
        scales = [part[0][1] for part in parts[:2]]
        factors = [_inverse(scales[0], modulus), _inverse(scales[1], modulus), scales[0] * scales[1]]
        products.append(
            [[(index, value * factor) for index, value in part] for part, factor in zip(parts, factors, strict=True)]
        )
    return products


def _monic_rows(scheme: Scheme) -> list[tuple[str, ...]]:
    """The sorted products over a field with many units."""
    modulus = scheme.ring.characteristic
    rows: list[tuple[str, ...]] = []
    for parts in _monic_products(scheme):
        row = [str(len(part)) for part in parts[:2]] or ["0", "0"]
        for part in parts:
            row += [str(index) for index, _ in part] + [_text(value, modulus) for _, value in part]
        rows.append(tuple(row))
    return sorted(rows)


def _real_twin(scheme: Scheme) -> Scheme | None:
    """The scheme over Q that a Gaussian one is but for the scale of its products, if there is one."""
    products = _monic_products(scheme)
    if any(value.imag for parts in products for part in parts for _, value in part):
        return None
    factors = []
    for position, factor in enumerate(scheme.factors):
        terms = [(r, *term) for r, parts in enumerate(products) if parts for term in parts[position]]
        denominator = math.lcm(*(value.real.denominator for _, _, value in terms))
        numerators = integer_array([int(value.real * denominator) for _, _, value in terms], denominator)
        places = np.array([term[:2] for term in terms], dtype=np.int64).reshape(-1, 2)
        factors.append(
            Factor.from_triplets(
                scheme.rank, factor.rows, factor.cols, places[:, 0], places[:, 1], numerators, denominator
            )
        )
    return Scheme(scheme.target, factors[0], factors[1], factors[2], Q)


def _inverse(value: Gaussian, modulus: int) -> Gaussian:
    return gaussian(pow(int(value.real), -1, modulus)) if modulus else value.inverse()


def _text(value: Gaussian, modulus: int) -> str:
    return str(int(value.real) % modulus) if modulus else str(value)
