"""A priori bounds on the error of a product."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemes_db.program import Lin, Load, Product, Program, Terms
from ..identity import memoize_on_instance
from ..request import Request


@dataclass(frozen=True)
class _Size:
    """Size of a value: the sum of |coefficients| over its terms, and the number of roundings on its longest path."""

    norm: float
    roundings: int


def error_bound(program: Program | None, request: Request) -> float:
    """Return a bound on |error| of an element of C relative to k max|A| max|B|; 0 for integers.

    The classical product's own bound is k times the unit roundoff. Bounds are worst cases: measured
    errors are far smaller for every scheme.

    Source: the recursion f = E (f_inner + (k / grid) q), with E the growth factor and q the
    roundings in sums, of Ballard, Benson, Druinsky, Lipshitz, Schwartz (2016), section 3.
    """
    if request.exact or request.k == 0:
        return 0.0
    return request.unit * _factor(program, request.k) / request.k


def _factor(program: Program | None, inner_size: int) -> float:
    """Return f with |error| <= f * unit roundoff * max|A| max|B| for a product of this inner size."""
    if program is None:
        return float(inner_size) ** 2
    block = -(-inner_size // program.target.k)
    growth, roundings = _growth(program)
    below = dict(program.inner)
    kinds = {op.kind for op in program.products}
    return growth * (max(_factor(below.get(kind), block) for kind in kinds) + block * roundings)


@memoize_on_instance
def _growth(program: Program) -> tuple[float, int]:
    """Return the largest norm and number of roundings of a stored block; a product's are from its operands' sizes."""
    sizes: dict[int, _Size] = {}
    growth, roundings = 0.0, 0

    def total(terms: Terms) -> _Size:
        norm = sum(abs(float(coefficient)) * sizes[src].norm for coefficient, src in terms)
        return _Size(norm, len(terms) + max(sizes[src].roundings for _, src in terms))

    for op in program.ops:
        if isinstance(op, Load):
            sizes[op.dst] = _Size(1.0, 0)
        elif isinstance(op, Product):
            left, right = sizes[op.left], sizes[op.right]
            sizes[op.dst] = _Size(left.norm * right.norm, left.roundings + right.roundings)
        else:
            result = total(op.terms)
            if isinstance(op, Lin):
                sizes[op.dst] = result
            else:
                growth, roundings = max(growth, result.norm), max(roundings, result.roundings)
    return growth, roundings
