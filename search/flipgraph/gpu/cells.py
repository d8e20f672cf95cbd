"""Reading, writing and scanning the memory of a walker.

`fast` is the shared memory of a block of threads, word w of thread t at w * threads + t: every lane
of a warp has its own bank, so random accesses never conflict. `far` is the contiguous array of the states
of all walkers in global memory; `own` is the offset of the walker's own state. A `lane` is the index of
the thread, a `slot` and a factor `f` are uint32.
"""

from __future__ import annotations

from .chains import make_chains
from .primitives import I32, U32, U64, KernelParts
from .values import make_values


def make_access(parts: KernelParts) -> None:
    """Add functions that locate, read and write parts of values and words of sets."""
    jit, form = parts.jit, parts.form
    threads, width, masks, plane = U64(form.threads), U32(form.width), form.masks, form.plane
    near, stride, distant = form.near, U32(form.stride), U32(form.far)
    active_base = near * plane

    @jit
    def row_of(slot):
        return U32(U32((slot >> U32(5)) << U32(4)) + (slot & U32(15)))

    @jit
    def near_at(lane, f, row, p):
        return (U64(p * plane) + U64(U32(U32(f * width) + row))) * threads + lane

    @jit
    def far_at(own, f, row, p):
        return own + U64(near * plane + (p - near)) + U64(U32(U32(row * stride) + U32(f * distant)))

    @jit
    def part(fast, far, lane, own, f, row, shift, p):
        """Return part p of a value; p is a literal."""
        word = fast[near_at(lane, f, row, p)] if p < near else far[far_at(own, f, row, p)]
        return U32(U32(word >> shift) & U32(0xFFFF))

    @jit
    def set_part(fast, far, lane, own, f, row, shift, p, value):
        if p < near:
            at = near_at(lane, f, row, p)
            fast[at] = U32((fast[at] & U32(~U32(U32(0xFFFF) << shift))) | U32(value << shift))
        else:
            to = far_at(own, f, row, p)
            far[to] = U32((far[to] & U32(~U32(U32(0xFFFF) << shift))) | U32(value << shift))

    @jit
    def print_at(fast, lane, f, slot):
        """Return the fingerprint of a slot, plane 0."""
        return U32(U32(fast[near_at(lane, f, row_of(slot), 0)] >> (slot & U32(16))) & U32(0xFFFF))

    @jit
    def active_at(lane, f, q):
        """Return the index in `fast` of word q of the active set of a factor."""
        return (U64(active_base) + U64(U32(f * U32(masks)) + q)) * threads + lane


def make_scans(parts: KernelParts) -> None:
    """Add functions that scan all slots of a mask word at once, and select a bit of the result."""
    jit, form, popcount, differs = parts.jit, parts.form, parts.popcount, parts.differs
    threads, width = U64(form.threads), U32(form.width)
    whole, tail = form.width // 16, form.width % 16
    tail_mask = U32(((1 << tail) - 1) * 0x10001)

    @jit
    def scan(fast, lane, f, q, negative):
        """Return the slots of mask word q with a fingerprint whose negative is in both halves of `negative`."""
        base = (U64(U32(f * width)) + U64(q << U32(4))) * threads + lane
        other = U32(0)
        if q < U32(whole):
            for w in range(16):
                other = U32(other + U32(differs(fast[base + U64(w) * threads], negative) << U32(w)))
            return U32(~other)
        for w in range(tail):
            other = U32(other + U32(differs(fast[base + U64(w) * threads], negative) << U32(w)))
        return U32(U32(~other) & tail_mask)

    @jit
    def taken(fast, lane, f, q):
        """Return the slots of mask word q whose fingerprint is not 0."""
        slots = U32(0xFFFFFFFF) if q < U32(whole) else tail_mask
        return U32(U32(~scan(fast, lane, f, q, U32(0))) & slots)

    @jit
    def negatives(value):
        """Return the negative of a fingerprint in both halves of a word."""
        return U32(U32(U32(U32(0) - value) & U32(0xFFFF)) * U32(0x10001))

    @jit
    def first(word):
        """Return the index of the lowest set bit; the word is not 0."""
        return popcount(U32(U32(word & U32(U32(0) - word)) - U32(1)))

    @jit
    def pick(word, spin):
        """Return the index of the first set bit from index `spin` on, cyclically; the word is not 0.

        Bits after a gap are more likely, but the slots of terms are effectively random, and a uniform draw of
        the k-th bit would take 30 more instructions in addition to about 510.
        """
        turned = U32(U32(word >> spin) | U32(word << U32(U32(U32(32) - spin) & U32(31))))
        return U32(U32(first(turned) + spin) & U32(31))


def make_draws(parts: KernelParts) -> None:
    """Add functions that draw and update active slots, and slots of equal fingerprints."""
    jit, masks = parts.jit, parts.form.masks
    family = 3 if parts.form.symmetric else 1
    words = family * masks
    active_at, pick, negatives = parts.active_at, parts.pick, parts.negatives
    own_words, scans_of, sets_of, note_all = parts.own_words, parts.scans, parts.sets_of, parts.note_all
    without, any_of, count_of = parts.without, parts.any_of, parts.count_of
    first_of, number_of, holder_of = parts.first_of, parts.number_of, parts.holder_of

    @jit
    def own_of(slot):
        """Return the words of the set of one slot."""
        return own_words(U32(slot >> U32(5)), U32(U32(1) << (slot & U32(31))))

    @jit
    def meets(fast, lane, f, slot, value):
        """Return the other slots with a fingerprint, word by word; none for 0, which matches empty slots."""
        slots = U32(0) if value == U32(0) else U32(0xFFFFFFFF)
        return without(scans_of(fast, lane, f, negatives(value)), own_of(slot), slots)

    @jit
    def note(fast, lane, f, slot, found):
        """Update the active sets for a slot with a new fingerprint, given the slots `found` with the same one."""
        bit = U32(U32(1) << (slot & U32(31))) if any_of(found) != U32(0) else U32(0)
        note_all(fast, lane, f, sets_of(fast, lane, f), own_of(slot), found, bit)

    @jit
    def leave(fast, lane, f, slot):
        """Remove a slot from the active set of a factor."""
        at = active_at(lane, f, U32(slot >> U32(5)))
        fast[at] = U32(fast[at] & U32(~U32(U32(1) << (slot & U32(31)))))

    @jit
    def partner(fast, lane, f, slot, value, draw):
        """Select (found, factor, slot, rest of the draw): another slot with this fingerprint, which is not 0."""
        begin = U32((U64(draw) * U64(words)) >> U64(32))
        draw = U32(draw * U32(words))
        spin = U32(draw >> U32(27))
        draw = U32(draw << U32(5))
        found = without(scans_of(fast, lane, f, negatives(value)), own_of(slot), U32(0xFFFFFFFF))
        met, at = first_of(found)
        if met == U32(0):
            return I32(0), f, slot, draw
        drawn = number_of(found, begin)
        met, at = (drawn, begin) if drawn != U32(0) else (met, at)
        bit = pick(met, spin)
        p = U32(at // U32(masks)) if family > 1 else f
        q = U32(at - U32(p * U32(masks))) if family > 1 else at
        return I32(1), p, U32(U32(q << U32(5)) | bit), draw

    @jit
    def active(fast, lane, draw):
        """Select (found, factor, slot, rest of the draw): a slot that may have a partner."""
        f = U32(0)
        if family == 1:
            f = U32((U64(draw) * U64(3)) >> U64(32))
            draw = U32(draw * U32(3))
        sets = sets_of(fast, lane, f)
        total = count_of(sets)
        if total == U32(0):
            return I32(0), f, U32(0), draw
        k = U32((U64(draw) * U64(total)) >> U64(32))
        draw = U32(draw * total)
        word, place = holder_of(sets, k)
        bit = pick(word, U32(draw >> U32(27)))
        draw = U32(draw << U32(5))
        if family > 1:
            f = U32(place // U32(masks))
            place = U32(place - U32(f * U32(masks)))
        return I32(1), f, U32(U32(place << U32(5)) | bit), draw


def make_cells(parts: KernelParts) -> None:
    """Add the memory operations of a layout, as functions for the kernel to call."""
    make_access(parts)
    make_values(parts)
    make_scans(parts)
    make_chains(parts)
    make_draws(parts)
