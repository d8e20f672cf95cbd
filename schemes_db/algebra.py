"""New schemes from old: the symmetries of the matrix product, and composition."""

from __future__ import annotations

import numpy as np

from ..errors import TargetError
from .factor import COEFFICIENT_LIMIT, Factor
from .provenance import Provenance, Step, constructed
from .ring import QI, Q, Ring, Z
from .scheme import MAX_RANK, Scheme
from .target import Target


def naive(target: Target, ring: Ring = Z) -> Scheme:
    """The classical algorithm: one product a term of the target."""
    m, k, n = target.shape
    terms = target.terms
    rank = len(terms)
    if not 1 <= rank <= MAX_RANK:
        raise TargetError(f"the naive scheme of {target} has rank {rank}, beyond {MAX_RANK}")
    ones, products = np.ones(rank, dtype=np.int64), np.arange(rank, dtype=np.int64)
    u, v, w = (
        Factor.from_triplets(rank, rows, cols, products, terms[:, i], target.term_values if i == 2 else ones)
        for i, (rows, cols) in enumerate(((m, k), (k, n), (m, n)))
    )
    origin = Provenance(
        "textbook",
        source=f"the definition of the {'matrix product' if target.is_product else 'map'}",
        steps=(Step("naive", (), (("target", target.name), ("ring", ring.name))),),
    )
    return Scheme(target, u, v, w, ring, f"naive:{target}", origin)


def rotate(scheme: Scheme) -> Scheme:
    """One cyclic step of the roles: <m,k,n> to <k,n,m>, same rank and same product kinds up to the roles.

    In the trilinear form tr(A B D), D dual to C, the roles (A, B, D) become (B, D, A).
    """
    return _derived(
        scheme, scheme.target.rotated(), (scheme.v, scheme.w.transposed(), scheme.u.transposed()), "rotation"
    )


def transpose(scheme: Scheme) -> Scheme:
    """The scheme of C^T = B^T A^T: <m,k,n> to <n,k,m>."""
    factors = (scheme.v.transposed(), scheme.u.transposed(), scheme.w.transposed())
    return _derived(scheme, scheme.target.transposed(), factors, "transposition")


def reverse(scheme: Scheme) -> Scheme:
    """The scheme with every block index order reversed: lower triangular targets become upper ones."""
    factors = (scheme.u.reversed(), scheme.v.reversed(), scheme.w.reversed())
    return _derived(scheme, scheme.target.reversed(), factors, "reversal")


def permute(scheme: Scheme, order: str) -> Scheme:
    """The scheme with its three sizes in another order, such as "knm" for <k,n,m>.

    Raises:
        TargetError: `order` is not an arrangement of the letters m, k, n.
    """
    if sorted(order) != sorted("mkn"):
        raise TargetError(f"order {order!r} must be an arrangement of m, k and n")
    names = "mkn"
    for _ in range(3):
        if names == order:
            return scheme
        scheme, names = rotate(scheme), names[1:] + names[:1]
    scheme, names = transpose(scheme), names[::-1]
    while names != order:
        scheme, names = rotate(scheme), names[1:] + names[:1]
    return scheme


def tensor(outer: Scheme, inner: Scheme) -> Scheme:
    """The composition: every block product of `outer` computed by `inner`; rank is the product of the ranks.

    Raises:
        TargetError: different characteristics, an outer target with half blocks, or too large a result.
    """
    if outer.ring.characteristic != inner.ring.characteristic:
        raise TargetError(f"schemes over {outer.ring} and {inner.ring} have no tensor product")
    target = outer.target.tensor(inner.target)
    if outer.rank * inner.rank > MAX_RANK:
        raise TargetError(f"the tensor product would have rank {outer.rank * inner.rank}, beyond {MAX_RANK}")
    factors = []
    for x, y in zip(outer.factors, inner.factors, strict=True):
        refuse_large(x, y)
        factors.append(x.tensor(y))
    ring = next((ring for ring in (QI, Q) if ring in (outer.ring, inner.ring)), outer.ring)
    name = f"{outer.name}*{inner.name}" if outer.name and inner.name else ""
    origin = constructed("tensor", "tensor product", *((one.digest, one.provenance) for one in (outer, inner)))
    u, v, w = factors
    return Scheme(target, u, v, w, ring, name, origin)


def refuse_large(outer: Factor, inner: Factor) -> None:
    """Refuse two factors whose tensor product int64 may not hold.

    Raises:
        TargetError: coefficients beyond 2^62.
    """
    if 2 * _peak(outer) * _peak(inner) >= COEFFICIENT_LIMIT:
        raise TargetError("the tensor product has coefficients beyond 2^62")


def _peak(factor: Factor) -> int:
    return max(factor.peak, factor.denominator)


def _derived(scheme: Scheme, target: Target, factors: tuple[Factor, Factor, Factor], relation: str) -> Scheme:
    verb = {"rotation": "rotate", "transposition": "transpose", "reversal": "reverse"}[relation]
    origin = constructed(verb, relation, (scheme.digest, scheme.provenance))
    u, v, w = factors
    return Scheme(target, u, v, w, scheme.ring, "", origin)
