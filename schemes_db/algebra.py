"""New schemes from old: the symmetries of the matrix product, and composition."""

from __future__ import annotations

import numpy as np

from ..arguments import need
from ..errors import TargetError
from .factor import Factor
from .provenance import Provenance, Step, constructed
from .ring import Ring, Z
from .scheme import MAX_RANK, Scheme
from .target import Target


def naive(target: Target, ring: Ring = Z) -> Scheme:
    """The classical algorithm: one product a term of the target."""
    need(Target, target=target)
    need(Ring, ring=ring)
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
    need(Scheme, scheme=scheme)
    return _derived(
        scheme, scheme.target.rotated(), (scheme.v, scheme.w.transposed(), scheme.u.transposed()), "rotation"
    )


def transpose(scheme: Scheme) -> Scheme:
    """The scheme of C^T = B^T A^T: <m,k,n> to <n,k,m>."""
    need(Scheme, scheme=scheme)
    factors = (scheme.v.transposed(), scheme.u.transposed(), scheme.w.transposed())
    return _derived(scheme, scheme.target.transposed(), factors, "transposition")


def reverse(scheme: Scheme) -> Scheme:
    """The scheme with every block index order reversed: lower triangular targets become upper ones."""
    need(Scheme, scheme=scheme)
    factors = (scheme.u.reversed(), scheme.v.reversed(), scheme.w.reversed())
    return _derived(scheme, scheme.target.reversed(), factors, "reversal")


def permute(scheme: Scheme, order: str) -> Scheme:
    """The scheme with its three sizes in another order, such as "knm" for <k,n,m>.

    Raises:
        TargetError: `order` is not an arrangement of the letters m, k, n.
    """
    need(Scheme, scheme=scheme)
    need(str, order=order)
    if sorted(order) != sorted("mkn"):
        raise TargetError(f"order {order!r} must be an arrangement of m, k and n")
    names = "mkn"
    if order not in ("mkn", "knm", "nmk"):  # no rotation has this order
        scheme, names = transpose(scheme), names[::-1]
    while names != order:
        scheme, names = rotate(scheme), names[1:] + names[:1]
    return scheme


def tensor(outer: Scheme, inner: Scheme) -> Scheme:
    """The composition: every block product of `outer` computed by `inner`; rank is the product of the ranks.

    Raises:
        TargetError: different characteristics, an outer target with half blocks, or too large a result.
    """
    need(Scheme, outer=outer, inner=inner)
    return outer @ inner


def _derived(scheme: Scheme, target: Target, factors: tuple[Factor, Factor, Factor], relation: str) -> Scheme:
    verb = {"rotation": "rotate", "transposition": "transpose", "reversal": "reverse"}[relation]
    origin = constructed(verb, relation, (scheme.digest, scheme.provenance))
    u, v, w = factors
    return Scheme(target, u, v, w, scheme.ring, "", origin)
