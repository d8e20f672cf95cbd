"""Arithmetic of a lift, compiled: the Jacobian modulo 2 or 3 and the Hensel steps."""

from __future__ import annotations

from typing import NamedTuple

from ...schemes_db.factor import IntArray
from ..terms.bits import compiled
from ..terms.linear import Digits, add_entry, digit_of, solve
from ..terms.rings import GF2, GF3, Ring
from ..terms.words import Words

LIFTED, SOLVED, STUCK, UNEQUAL = 0, 1, 2, 3
"""Outcomes: lifted through all steps; solved over the integers at an earlier step; no solution at a step; a solution of
the sums of equations that does not solve the equations."""

_SAFE = 1 << 15
"""Bound on coefficients below which sums of 512 products of three are exact in 64 bits."""


class System(NamedTuple):
    """The equations of one scheme in the present blocks, with the Jacobian eliminated.

    Attributes:
        x: (R, a + b + c) coefficients modulo the prime, as symmetric residues.
        sizes: (a, b, c).
        tensor: (equations,) the right-hand sides.
        unknowns: flat indices into x, nonzero entries first.
        sums: (equations, copies) numbers of the rows that each equation is added to.
        rows, rank, order, pivots: the Jacobian (rows, unknowns), decomposed; see `linear.decompose`.
    """

    x: IntArray
    sizes: IntArray
    tensor: IntArray
    unknowns: IntArray
    sums: IntArray
    rows: Words
    rank: int
    order: IntArray
    pivots: IntArray


class Scratch(NamedTuple):
    """Memory of the steps: the residual (equations,), its digits (rows,), a packed row, the pivots' digits (rank,)."""

    out: IntArray
    right: Digits
    vector: Words
    found: Digits


def ring_of(prime: int) -> Ring:
    """Return the ring of residues, for compiled code."""
    return (0,) * {2: GF2, 3: GF3}[prime]


@compiled(nogil=True)
def jacobian(ring: Ring, x: IntArray, sizes: IntArray, unknowns: IntArray, sums: IntArray, rows: Words) -> None:
    """Add the Jacobian of the Brent equations modulo the characteristic to zero rows, one column an unknown.

    `x` is (R, a + b + c): the coefficients of the present blocks of U, V and W side by side; `sizes`
    is (a, b, c); `unknowns` are flat indices into x; equation (i, j, l) is number (i b + j) c + l, and added to the
    rows that `sums` has for it.
    """
    a, b, c = sizes
    width, first, stride = a + b + c, (0, a, a + b), (b * c, c, 1)
    for column in range(len(unknowns)):
        r, e = divmod(unknowns[column], width)
        f = 0 if e < a else 1 if e < a + b else 2
        g, h = (f + 1) % 3, (f + 2) % 3
        for i in range(sizes[g]):
            if x[r, first[g] + i] == 0:
                continue
            for j in range(sizes[h]):
                equation = (e - first[f]) * stride[f] + i * stride[g] + j * stride[h]
                value = digit_of(ring, x[r, first[g] + i] * x[r, first[h] + j])
                for row in sums[equation]:
                    add_entry(rows[row], column, value)


@compiled(internal=True)
def residual(x: IntArray, sizes: IntArray, tensor: IntArray, modulus: int, out: IntArray) -> bool:
    """Compute out = tensor - sum of the products of x; return whether any entry is nonzero.

    The arithmetic is modulo 2^64 where `modulus` is 0, else modulo `modulus`, for symmetric residues x.
    """
    a, b, c = sizes
    for e in range(len(out)):
        out[e] = tensor[e]
    for r in range(x.shape[0]):
        for i in range(a):
            if x[r, i] == 0:
                continue
            for j in range(b):
                scale = x[r, i] * x[r, a + j]
                if scale != 0:
                    if modulus > 0:
                        scale %= modulus
                    base = (i * b + j) * c
                    for l in range(c):
                        out[base + l] -= scale * x[r, a + b + l]
    nonzero = 0
    for e in range(len(out)):
        if modulus > 0:
            out[e] %= modulus
        nonzero |= out[e]
    return nonzero != 0


@compiled(internal=True)
def is_small(x: IntArray) -> bool:
    """Return whether the equations of x are exact in 64 bits."""
    small = True
    for value in x.flat:
        if not -_SAFE < value < _SAFE:
            small = False
    return small


@compiled(nogil=True)
def lift_steps(ring: Ring, of: System, x: IntArray, depth: int, scratch: Scratch) -> tuple[int, int]:
    """Lift x, which solves the equations modulo p, to a solution modulo p^depth, in symmetric residues, in place.

    Each step solves the decomposed equations once. Free unknowns keep their values in x.
    Returns the outcome and the exponent s such that x solves the equations modulo p^s; 512 p^(2 depth) must fit a word.
    """
    prime = 2 if len(ring) == GF2 else 3
    modulus = prime**depth if prime > 2 else 0
    out, right, vector, found = scratch
    power = 1
    for s in range(1, depth):
        power *= prime
        if is_small(x) and not residual(x, of.sizes, of.tensor, 0, out):
            return SOLVED, s
        residual(x, of.sizes, of.tensor, modulus, out)
        right[:] = 0
        for e in range(len(out)):
            if out[e] % power != 0:
                return UNEQUAL, s
            for row in of.sums[e]:
                right[row] += digit_of(ring, out[e] // power)
        if not solve(ring, of.rows, of.rank, of.order, of.pivots, right, vector, found):
            return STUCK, s
        for p in range(of.rank):
            if found[p] != 0:
                e = of.unknowns[of.pivots[p]]
                value = x.flat[e] + found[p] * power
                x.flat[e] = value - 2 * power if prime == 2 and value > power else value
    return LIFTED, depth
