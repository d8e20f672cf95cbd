"""Values of one factor, modulo 2 or over {-1, 0, 1}: arithmetic, access by slot with fingerprint, signs, cost."""

from __future__ import annotations

from .layout import HASH, PRIME
from .primitives import I32, U32, U64, KernelParts


def make_ternary_values(of: KernelParts) -> None:
    """Add the values over {-1, 0, 1}: bits of the 1s and of the -1s, the lowest part replaced by a fingerprint."""
    jit, form, parts, planes = of.jit, of.form, of.form.parts, of.form.planes
    word_type = U64 if form.wide else U32
    row_of, part, set_part = of.row_of, of.part, of.set_part
    threads, sign_base, prime = U64(form.threads), form.near * form.plane + 3 * form.masks, U32(PRIME)

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

    @jit
    def get(fast, far, lane, own, f, slot):
        """Return the bits of the 1s and of the -1s."""
        row, shift = row_of(slot), U32(slot & U32(16))
        mixed = U32(0)
        pos, neg = word_type(0), word_type(0)
        for p in range(1, planes):
            value = part(fast, far, lane, own, f, row, shift, p)
            mixed = U32(mixed + U32(value * U32(p * prime)))
            if p < parts:
                pos = word_type(pos | word_type(word_type(value) << word_type(16 * p)))
            else:
                neg = word_type(neg | word_type(word_type(value) << word_type(16 * (p - parts))))
        low = part(fast, far, lane, own, f, row, shift, 0)
        pos = word_type(pos | word_type(U32(low - (mixed >> U32(7))) & U32(0xFFFF)))
        return pos, neg

    @jit
    def put(fast, far, lane, own, f, slot, value):
        """Set a value; return its fingerprint."""
        pos, neg = value
        row, shift = row_of(slot), U32(slot & U32(16))
        mixed = U32(0)
        for p in range(1, planes):
            if p < parts:
                piece = U32(U32(pos >> word_type(16 * p)) & U32(0xFFFF))
            else:
                piece = U32(U32(neg >> word_type(16 * (p - parts))) & U32(0xFFFF))
            mixed = U32(mixed + U32(piece * U32(p * prime)))
            set_part(fast, far, lane, own, f, row, shift, p, piece)
        low = U32(U32(U32(pos) + (mixed >> U32(7))) & U32(0xFFFF))
        set_part(fast, far, lane, own, f, row, shift, 0, low)
        return low

    @jit
    def sign_of(fast, lane, slot):
        at = (U64(sign_base) + U64(slot >> U32(5))) * threads + lane
        return U32((fast[at] >> (slot & U32(31))) & U32(1))

    @jit
    def turn_sign(fast, lane, slot, by):
        at = (U64(sign_base) + U64(slot >> U32(5))) * threads + lane
        fast[at] = U32(fast[at] ^ U32(by << (slot & U32(31))))


def make_binary_values(of: KernelParts) -> None:
    """Add the values over GF(2): the bits, with a fingerprint.

    The fingerprint replaces the lowest part and is linear modulo 2; with an involution it precedes the bits, and a
    matrix shares it with its image.
    """
    jit, planes, first = of.jit, of.form.planes, int(of.form.half > 0)
    word_type, bits = U64 if of.form.wide else U32, 16 * of.form.parts
    row_of, part, set_part, reversed_of = of.row_of, of.part, of.set_part, of.reversed_of

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
            hashed = U64((U64(n) * U64(PRIME) >> U64(11)) & U64(0xFFFF))
            if (support >> U64(n)) & U64(1):
                support = U64(support ^ hashed)
        return support

    @jit
    def zero():
        return word_type(0)

    @jit
    def get(fast, far, lane, own, f, slot):
        """Return the bits; with a linear fingerprint as stored: a linear image is sufficient for flips."""
        row, shift = row_of(slot), U32(slot & U32(16))
        value = word_type(0)
        for p in range(first, planes):
            piece = part(fast, far, lane, own, f, row, shift, p)
            value = word_type(value | word_type(word_type(piece) << word_type(16 * (p - first))))
        return value

    @jit
    def put(fast, far, lane, own, f, slot, value):
        """Set a value; return its fingerprint, with an involution 0 only for 0."""
        row, shift = row_of(slot), U32(slot & U32(16))
        for p in range(first, planes):
            piece = U32(U32(value >> word_type(16 * (p - first))) & U32(0xFFFF))
            set_part(fast, far, lane, own, f, row, shift, p, piece)
        if first == 0:
            return U32(U32(value) & U32(0xFFFF))
        low = U32(0)
        if value != word_type(0):
            lesser = U64(min(value, reversed_of(value)))
            low = max(U32(U64(lesser * U64(HASH)) >> U64(48)), U32(1))
        set_part(fast, far, lane, own, f, row, shift, 0, low)
        return low

    @jit
    def sign_of(fast, lane, slot):
        return U32(0)

    @jit
    def turn_sign(fast, lane, slot, by):
        pass


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


def make_values(parts: KernelParts) -> None:
    """Add the arithmetic and the access of values, `reversed_of`, and `cost`.

    `add` returns a flag, too: the sum fits; `turn` makes a value canonical; `put` returns the fingerprint.
    """
    half, word_type = parts.form.half, U64 if parts.form.wide else U32
    low_half = word_type((1 << half) - 1)

    @parts.jit
    def reversed_of(value):
        """Return a matrix with rows and columns in reverse order if that is a symmetry of the walk, else unchanged."""
        if half == 0:
            return value
        return word_type(
            word_type(value >> word_type(half)) | word_type(word_type(value & low_half) << word_type(half))
        )

    (make_ternary_values if parts.form.ternary else make_binary_values)(parts)
    make_cost(parts)
