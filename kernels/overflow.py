"""Bounds on the entries of integer matrices that exclude harmful overflow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import PlanError
from ..schemes_db.program import Program
from .codegen.maps import expanded, maps_of
from .identity import memoize_on_instance
from .request import Request


@dataclass(frozen=True)
class Reach:
    """Bound of a product's operand in multiples of the largest entry; `summed`: some operand is not a plain block."""

    factor: int = 1
    summed: bool = False


def range_reason(program: Program | None, request: Request) -> str | None:
    """Return the reason why entries of the stated magnitude cannot be multiplied by this program, or None."""
    if request.max_abs is None or request.max_abs <= (allowed := largest_allowed(program, request)):
        return None
    what = "sums of blocks in int8 and C in int32" if request.dtype == "int8" else f"C in {request.dtype}"
    return f"entries up to {request.max_abs} do not keep {what}: {allowed} is the largest magnitude that does here"


def largest_allowed(program: Program | None, request: Request) -> int:
    """Return the largest magnitude of entries of A and B for which neither C nor any int8 sum can overflow.

    Sums and products of int32 and int64 may overflow: they are exact modulo two to the number of bits, and so
    is C. The operands of int8 products are widened before they are multiplied, so they must not.
    """
    allowed = math.isqrt(int(np.iinfo(request.result).max) // max(request.k, 1))
    if request.dtype != "int8":
        return allowed
    limits = np.iinfo(np.int8)
    left, right = (Reach(), Reach()) if program is None else reach(program)
    for side in (left, right):
        # A block can contain any int8 number, -128 included; a sum may have the other sign.
        allowed = min(allowed, int(limits.max) // side.factor if side.summed else -int(limits.min))
    return allowed


def largest_magnitude(matrix: Any) -> int:
    """Return max |x| of an array or tensor as a Python integer: that of the least int64 overflows."""
    return 0 if 0 in matrix.shape else max(int(matrix.max()), -int(matrix.min()))


def require_within(label: str, found: int, max_abs: int) -> None:
    """Check that an operand's largest magnitude is within the stated one.

    Raises:
        PlanError: it is not.
    """
    if found > max_abs:
        raise PlanError(f"{label} has an entry of magnitude {found}, but max_abs={max_abs} was stated; state {found}")


@memoize_on_instance
def reach(program: Program) -> tuple[Reach, Reach]:
    """Return the bounds of the bottom products' operands, left and right: sums of |coefficients| over all levels."""
    maps, below = maps_of(program), dict(program.inner)
    found = []
    for side, (linear, result_of) in enumerate(((maps.left, maps.left_of), (maps.right, maps.right_of))):
        factor, summed = 1, False
        for op, result in zip(maps.products, result_of, strict=True):
            coefficients = [coefficient for _, coefficient in expanded(linear, result)]
            inner = reach(below[op.kind])[side] if op.kind in below else Reach()
            factor = max(factor, sum(abs(int(value)) for value in coefficients) * inner.factor)
            summed = summed or inner.summed or coefficients != [1]
        found.append(Reach(factor, summed))
    return found[0], found[1]
