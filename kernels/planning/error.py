"""A priori bounds on the error of a product."""

from __future__ import annotations

from ...schemes_db.costs import growth_and_roundings
from ...schemes_db.program import Program
from ..identity import memoize_on_instance
from ..request import Request

_growth = memoize_on_instance(growth_and_roundings)


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
