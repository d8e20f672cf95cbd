"""Reading, writing and scanning the memory of a walker.

`fast` is the shared memory of a block of threads, word w of thread t at w * threads + t: every lane
of a warp has a bank of its own, so random access never conflicts. `far` are the states of all walkers
in global memory, one after the other; `own` is where the walker's own starts. A `lane` is the
thread's number, a `slot` and a factor `f` are uint32.
"""

from __future__ import annotations

from types import SimpleNamespace

from .layout import PRIME, Form
from .primitives import I32, U32, U64, Primitives


def make_cells(prims: Primitives, form: Form) -> SimpleNamespace:
    """The memory operations of a layout, as functions for the kernel to call."""
    jit, popcount, differs = prims.jit, prims.popcount, prims.differs
    threads, width, masks, plane = U64(form.threads), U32(form.width), form.masks, form.plane
    planes, near, parts = form.planes, form.near, form.parts
    stride, distant = U32(form.stride), U32(form.far)
    whole, tail = form.width // 16, form.width % 16
    tail_mask = U32(((1 << tail) - 1) * 0x10001)
    active_base = near * plane
    sign_base = near * plane + 3 * masks
    family = 3 if form.symmetric else 1
    ternary = form.ternary
    wide = (form.parts > 2) if ternary else (form.planes > 2)
    word_type = U64 if wide else U32
    prime = U32(PRIME)

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
        """Part p of a value; p is a literal."""
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
        """The fingerprint of a slot, plane 0."""
        return U32(U32(fast[near_at(lane, f, row_of(slot), 0)] >> (slot & U32(16))) & U32(0xFFFF))

    if ternary:

        @jit
        def get(fast, far, lane, own, f, slot):
            """The bits of the 1s and of the -1s."""
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
            """Set a value; returns its fingerprint."""
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

    else:

        @jit
        def get(fast, far, lane, own, f, slot):
            """The bits as they are stored: a linear image modulo 2, which is all that flips need."""
            row, shift = row_of(slot), U32(slot & U32(16))
            value = word_type(0)
            for p in range(planes):
                piece = part(fast, far, lane, own, f, row, shift, p)
                value = word_type(value | word_type(word_type(piece) << word_type(16 * p)))
            return value

        @jit
        def put(fast, far, lane, own, f, slot, value):
            """Set a value; returns its fingerprint."""
            row, shift = row_of(slot), U32(slot & U32(16))
            for p in range(planes):
                piece = U32(U32(value >> word_type(16 * p)) & U32(0xFFFF))
                set_part(fast, far, lane, own, f, row, shift, p, piece)
            return U32(U32(value) & U32(0xFFFF))

        @jit
        def sign_of(fast, lane, slot):
            return U32(0)

        @jit
        def turn_sign(fast, lane, slot, by):
            pass

    @jit
    def active_at(lane, f, q):
        """Where word q of the active set of a factor stands in `fast`."""
        return (U64(active_base) + U64(U32(f * U32(masks)) + q)) * threads + lane

    @jit
    def scan(fast, lane, f, q, negative):
        """The slots of mask word q whose fingerprint is the one that `negative` has the negatives of."""
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
        """The slots of mask word q whose fingerprint is not 0."""
        slots = U32(0xFFFFFFFF) if q < U32(whole) else tail_mask
        return U32(U32(~scan(fast, lane, f, q, U32(0))) & slots)

    @jit
    def negatives(value):
        """The negative of a fingerprint in both halves of a word."""
        return U32(U32(U32(U32(0) - value) & U32(0xFFFF)) * U32(0x10001))

    @jit
    def first(word):
        """The lowest set bit's number; the word is not 0."""
        return popcount(U32(U32(word & U32(U32(0) - word)) - U32(1)))

    @jit
    def nth(word, k):
        """The number of the k-th set bit, from 0: a binary search by counts."""
        at = U32(0)
        for n in range(5):
            step = U32(U32(16) >> U32(n))
            low = popcount(U32(U32(word >> at) & U32(U32(U32(1) << step) - U32(1))))
            if k >= low:
                k = U32(k - low)
                at = U32(at + step)
        return at

    @jit
    def enter_any(fast, lane, f, slot, value):
        """Bring the active sets up to date for a fingerprint that a slot has got.

        A live value with fingerprint 0 would match empty slots, so it stays inactive.
        """
        q0, bit = U32(slot >> U32(5)), U32(U32(1) << (slot & U32(31)))
        met = U32(0)
        if value != U32(0):
            negative = negatives(value)
            for turn in range(family):
                p = f if family == 1 else U32(turn)
                for n in range(masks):
                    q = U32(n)
                    found = scan(fast, lane, p, q, negative)
                    if q == q0:
                        found = U32(found & U32(~bit))
                    met = U32(met | found)
                    at = active_at(lane, p, q)
                    fast[at] = U32(fast[at] | found)
        at = active_at(lane, f, q0)
        fast[at] = U32(fast[at] | bit) if met != U32(0) else U32(fast[at] & U32(~bit))

    @jit
    def enter_pair(fast, lane, f, slot, value):
        """The same for sets of two words: each is read and written once."""
        bit = U32(U32(1) << (slot & U32(31)))
        low = bit if slot < U32(32) else U32(0)
        high = U32(bit ^ low)
        first_met, second_met = U32(0), U32(0)
        if value != U32(0):
            negative = negatives(value)
            first_met = U32(scan(fast, lane, f, U32(0), negative) & U32(~low))
            second_met = U32(scan(fast, lane, f, U32(1), negative) & U32(~high))
        own_bit = bit if U32(first_met | second_met) != U32(0) else U32(0)
        at = active_at(lane, f, U32(0))
        fast[at] = U32(U32(fast[at] & U32(~low)) | first_met | U32(own_bit & low))
        at = at + threads
        fast[at] = U32(U32(fast[at] & U32(~high)) | second_met | U32(own_bit & high))

    @jit
    def partner_pair(fast, lane, f, slot, value, draw):
        """As `partner`, for sets of two words: the drawn one, the other where that has none."""
        bit = U32(U32(1) << (slot & U32(31)))
        low = bit if slot < U32(32) else U32(0)
        begin = U32(draw >> U32(31))
        spin = U32(U32(draw >> U32(26)) & U32(31))
        negative = negatives(value)
        first_met = U32(scan(fast, lane, f, U32(0), negative) & U32(~low))
        second_met = U32(scan(fast, lane, f, U32(1), negative) & U32(~U32(bit ^ low)))
        if U32(first_met | second_met) == U32(0):
            return I32(0), f, slot, U32(draw << U32(6))
        second = second_met if begin != U32(0) else U32(0)
        second = second_met if first_met == U32(0) else second
        met = second if second != U32(0) else first_met
        base = U32(32) if second != U32(0) else U32(0)
        turned = U32(U32(met >> spin) | U32(met << U32(U32(U32(32) - spin) & U32(31))))
        return I32(1), f, U32(base | U32(U32(first(turned) + spin) & U32(31))), U32(draw << U32(6))

    @jit
    def leave(fast, lane, f, slot):
        """Take a slot out of the active set of a factor."""
        at = active_at(lane, f, U32(slot >> U32(5)))
        fast[at] = U32(fast[at] & U32(~U32(U32(1) << (slot & U32(31)))))

    @jit
    def partner_any(fast, lane, f, slot, value, draw):
        """(found, factor, slot, rest of the draw) of another slot with this fingerprint."""
        q0, own_bit = U32(slot >> U32(5)), U32(U32(1) << (slot & U32(31)))
        count = U32(family * masks)
        begin = U32((U64(draw) * U64(count)) >> U64(32))
        draw = U32(draw * count)
        spin = U32(draw >> U32(27))
        draw = U32(draw << U32(5))
        negative = negatives(value)
        nearest, met, at = count, U32(0), U32(0)
        for turn in range(family):
            p = f if family == 1 else U32(turn)
            for n in range(masks):
                q = U32(n)
                found = scan(fast, lane, p, q, negative)
                if q == q0:
                    found = U32(found & U32(~own_bit))
                index = U32(turn * masks + n)
                away = U32(index - begin) if index >= begin else U32(U32(index + count) - begin)
                if found != U32(0) and away < nearest:
                    nearest, met, at = away, found, index
        if met == U32(0):
            return I32(0), f, slot, draw
        turned = U32(U32(met >> spin) | U32(met << U32(U32(U32(32) - spin) & U32(31))))
        bit = U32(U32(first(turned) + spin) & U32(31))
        if family == 1:
            return I32(1), f, U32(U32(at << U32(5)) | bit), draw
        p = U32(at // U32(masks))
        return I32(1), p, U32(U32(U32(at - U32(p * U32(masks))) << U32(5)) | bit), draw

    @jit
    def active(fast, lane, draw):
        """(any, factor, slot, rest of the draw): a slot that may have a partner."""
        f = U32(0)
        if family == 1:
            f = U32((U64(draw) * U64(3)) >> U64(32))
            draw = U32(draw * U32(3))
        total = U32(0)
        for n in range(family * masks):
            total = U32(total + popcount(fast[active_at(lane, f, U32(n))]))
        if total == U32(0):
            return I32(0), f, U32(0), draw
        k = U32((U64(draw) * U64(total)) >> U64(32))
        draw = U32(draw * total)
        chosen, place, searching = U32(0), U32(0), True
        for n in range(family * masks):
            word = fast[active_at(lane, f, U32(n))]
            if searching:
                here = popcount(word)
                if k < here:
                    chosen, place, searching = word, U32(n), False
                else:
                    k = U32(k - here)
        bit = nth(chosen, k)
        if family == 1:
            return I32(1), f, U32(U32(place << U32(5)) | bit), draw
        f = U32(place // U32(masks))
        return I32(1), f, U32(U32(U32(place - U32(f * U32(masks))) << U32(5)) | bit), draw

    pair = masks == 2 and not form.symmetric
    enter = enter_pair if pair else enter_any
    partner = partner_pair if pair else partner_any

    return SimpleNamespace(
        get=get,
        put=put,
        print_at=print_at,
        sign_of=sign_of,
        turn_sign=turn_sign,
        enter=enter,
        leave=leave,
        partner=partner,
        active=active,
        taken=taken,
        active_at=active_at,
    )
