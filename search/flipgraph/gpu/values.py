"""Access to whole values of a slot in a walker's memory, by ring: `get`, `put` with fingerprint, signs of terms."""

from __future__ import annotations

from .layout import HASH, PRIME
from .primitives import U32, U64, KernelParts


def make_ternary_values(of: KernelParts) -> None:
    """Add the access over {-1, 0, 1}: bits of the 1s and of the -1s, the lowest part replaced by a fingerprint."""
    jit, form, parts, planes = of.jit, of.form, of.form.parts, of.form.planes
    word_type = U64 if form.wide else U32
    row_of, part, set_part = of.row_of, of.part, of.set_part
    threads, sign_base, prime = U64(form.threads), form.near * form.plane + 3 * form.masks, U32(PRIME)

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
    """Add the access over GF(2): the bits, with a fingerprint.

    The fingerprint replaces the lowest part and is linear modulo 2; with an involution it precedes the bits, and a
    matrix shares it with its image.
    """
    jit, planes, first = of.jit, of.form.planes, int(of.form.half > 0)
    word_type = U64 if of.form.wide else U32
    row_of, part, set_part, reversed_of = of.row_of, of.part, of.set_part, of.reversed_of

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
