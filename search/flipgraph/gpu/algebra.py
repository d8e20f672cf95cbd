"""Arithmetic of one factor, modulo 2 or over {-1, 0, 1}: the only difference between the two kinds of walk."""

from __future__ import annotations

from .layout import PRIME
from .primitives import I32, U32, U64, KernelParts


def make_ternary_algebra(parts: KernelParts) -> None:
    """Add the arithmetic over {-1, 0, 1}: a value is the mask of its 1s and that of its -1s."""
    jit, word_type = parts.jit, U64 if parts.form.wide else U32

    @jit
    def is_zero(value):
        return (value[0] | value[1]) == word_type(0)

    @jit
    def same(left, right):
        return left[0] == right[0] and left[1] == right[1]

    @jit
    def add(left, right, minus):
        """Return left + right, or left - right with `minus`; and False if a coefficient would be 2 or -2."""
        pos, neg = right
        if minus != U32(0):
            pos, neg = neg, pos
        fits = ((left[0] & pos) | (left[1] & neg)) == word_type(0)
        return (word_type((left[0] & ~neg) | (pos & ~left[1])), word_type((left[1] & ~pos) | (neg & ~left[0]))), fits

    @jit
    def turn(value):
        """Return the value with lowest coefficient 1, and whether it was negated."""
        pos, neg = value
        support = word_type(pos | neg)
        lowest = word_type(support & word_type(word_type(0) - support))
        if neg & lowest:
            return (neg, pos), U32(1)
        return (pos, neg), U32(0)

    @jit
    def support_of(value):
        return U64(value[0] | value[1])

    @jit
    def zero():
        return word_type(0), word_type(0)


def make_plain_algebra(parts: KernelParts) -> None:
    """Add the arithmetic over GF(2): a value is a mask."""
    jit, word_type = parts.jit, U64 if parts.form.wide else U32
    bits, prime = 16 * parts.form.parts, U64(PRIME)

    @jit
    def is_zero(value):
        return value == word_type(0)

    @jit
    def same(left, right):
        return left == right

    @jit
    def add(left, right, minus):
        return word_type(left ^ right), True

    @jit
    def turn(value):
        return value, U32(0)

    @jit
    def support_of(value):
        """Return the coefficients as bits, with the hash of the bits above the 15th removed."""
        support = U64(value)
        for n in range(16, bits):
            hashed = U64((U64(n) * prime >> U64(11)) & U64(0xFFFF))
            if (support >> U64(n)) & U64(1):
                support = U64(support ^ hashed)
        return support

    @jit
    def zero():
        return word_type(0)


def make_cost(parts: KernelParts) -> None:
    """Add the cost of a term beside the rank: 1 if it is full ("full"), or 0."""
    jit, support_of = parts.jit, parts.support_of

    if parts.kind_of_cost == "full":

        @jit
        def lies_in_half(halves, f, support):
            at = U64(f + f)
            return (support & ~halves[at]) == U64(0) or (support & ~halves[at + U64(1)]) == U64(0)

        @jit
        def cost(halves, f, a, g, b, e, c):
            """Return 1 for a full product, 0 for a half one."""
            half = lies_in_half(halves, f, support_of(a))
            half = half or lies_in_half(halves, g, support_of(b))
            half = half or lies_in_half(halves, e, support_of(c))
            return I32(0) if half else I32(1)

    else:

        @jit
        def cost(halves, f, a, g, b, e, c):
            return I32(0)


def make_algebra(parts: KernelParts) -> None:
    """Add `is_zero`, `same`, `add` (with a flag: it fits), `turn` (to the canonical sign), `reversed_of`, `cost`."""
    half, word_type = parts.form.half, U64 if parts.form.wide else U32
    low_half = word_type((1 << half) - 1)
    (make_ternary_algebra if parts.form.ternary else make_plain_algebra)(parts)
    make_cost(parts)

    @parts.jit
    def reversed_of(value):
        """Return a matrix with rows and columns in reverse order if that is a symmetry of the walk, else unchanged."""
        if half == 0:
            return value
        return word_type(
            word_type(value >> word_type(half)) | word_type(word_type(value & low_half) << word_type(half))
        )
