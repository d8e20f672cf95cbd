"""Coq: a file of its own whose theorem states the scheme's bilinear identity over the integers, proven by vm_compute.

Written, not read. Only Coq's kernel and its library of integers and lists are trusted: the file
proves that expanding and collecting terms is sound, and the virtual machine does it. Statement and proof are the
template `data/scheme.v`.
"""

from __future__ import annotations

import math
from importlib import resources

from ...errors import SchemeFormatError
from ..factor import Factor
from ..grids import Kind
from ..scheme import Scheme


def render(scheme: Scheme) -> str:
    """The theorem and its proof.

    Raises:
        SchemeFormatError: the scheme is not over Z or Q, or its target is no product of matrices.
    """
    if scheme.ring.characteristic or scheme.gaussian:
        raise SchemeFormatError(f"coq states identities over the integers, not {scheme!r}; lift it first")
    if not scheme.target.is_product:
        raise SchemeFormatError(f"coq states products of matrices, not {scheme.target}")
    target = scheme.target
    products = ";\n".join(
        f"  ({', '.join(_places(factor, r) for factor in scheme.factors)})" for r in range(scheme.rank)
    )
    one = math.prod(scheme.denominators)
    template = resources.files("lcma.schemes_db") / "data" / "scheme.v"
    return template.read_text(encoding="utf-8").format(
        title=f"{target}, {scheme.rank} products, over {scheme.ring}; digest {scheme.digest}",
        denominator="" if one == 1 else f"{one} ",
        structure="" if target.is_general else " where entries are present and wanted",
        products=products,
        inner="; ".join(str(l + 1) for l in range(target.k)),
        outputs=_listed(target.c, absent=False),
        absent_a=_listed(target.a, absent=True),
        absent_b=_listed(target.b, absent=True),
        one=one,
    )


def _places(factor: Factor, r: int) -> str:
    parts = [f"({index // factor.cols + 1}, {index % factor.cols + 1}, {value})" for index, value in factor.terms(r)]
    return f"[{'; '.join(parts)}]"


def _listed(grid: tuple[tuple[Kind, ...], ...], *, absent: bool) -> str:
    """The places of the entries of a grid that are absent, or of those that are not."""
    places = ((i, j, kind) for i, row in enumerate(grid, 1) for j, kind in enumerate(row, 1))
    return "; ".join(f"({i}, {j})" for i, j, kind in places if (kind is Kind.ABSENT) == absent)
