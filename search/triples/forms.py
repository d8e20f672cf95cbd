"""The three variants of two products whose sum is an inner product, and the seventh product of Strassen's scheme.

With f1, f2, f3 = x, y, -(x + y) for the entries (x, y) of r A, variant 0 computes f1 and f2 times entries of B c, and
the other variants are its images under the rotation f1 -> f2 -> f3 -> f1, which the entries of B c follow so that the
inner product stays the same.
"""

from __future__ import annotations

from typing import NamedTuple

Form = tuple[int, int]
"""Coefficients of the two entries of r A, or of B c."""

Products = tuple[tuple[Form, Form], tuple[Form, Form]]

TWO_PRODUCTS: tuple[Products, ...] = (
    (((1, 0), (1, 0)), ((0, 1), (0, 1))),
    (((0, 1), (-1, 1)), ((-1, -1), (-1, 0))),
    (((-1, -1), (0, -1)), ((1, 0), (1, -1))),
)
"""For every variant the forms of r A and of B c of the two products whose sum is the inner product."""


class Seventh(NamedTuple):
    """The product that completes a triple, and what follows from it.

    The product is (left1(r1 A) + left2(r2 A)) (right1(B c1) + right2(B c2)). (r1 A)(B c2) is `own` times it plus
    `first` times the first product of the inner product of variant 2, `second` times the first product of that of
    variant 1, and `third` times the second product of that of variant 0.
    """

    left1: Form
    left2: Form
    right1: Form
    right2: Form
    own: int
    first: int
    second: int
    third: int


def seventh_product(s: int, u: int) -> Seventh:
    """Return the seventh product of inner products 1, 2, 3 of variants 2, 1, 0: r3 = r1 + s r2, c3 = c1 + u c2, signs
    s, u.

    With s = -1 and u = 1 it is (a11 + a22)(b11 + b22) of Strassen's scheme, where r1 A and r2 A are the rows of A, B c2
    and B c1 the columns of B.
    """
    return Seventh((1, 0), (0, -s), (0, 1), (u, 0), own=u, first=-u, second=-s, third=u)
