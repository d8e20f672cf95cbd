"""Reading, writing and scanning the memory of a walker.

`fast` is the shared memory of a block of threads, word w of thread t at w * threads + t: every lane
of a warp has a bank of its own, so random access never conflicts. `far` are the states of all walkers
in global memory, one after the other; `own` is where the walker's own starts. A `lane` is the
thread's number, a `slot` and a factor `f` are uint32.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .layout import HASH, PRIME, Form
from .primitives import I32, U32, U64, Primitives


def make_cells(prims: Primitives, form: Form, algebra: SimpleNamespace) -> SimpleNamespace:
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
    word_type = U64 if form.wide else U32
    reversed_of = algebra.reversed_of
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

    elif form.half:

        @jit
        def get(fast, far, lane, own, f, slot):
            """The bits, which stand behind the fingerprint."""
            row, shift = row_of(slot), U32(slot & U32(16))
            value = word_type(0)
            for p in range(1, planes):
                piece = part(fast, far, lane, own, f, row, shift, p)
                value = word_type(value | word_type(word_type(piece) << word_type(16 * (p - 1))))
            return value

        @jit
        def put(fast, far, lane, own, f, slot, value):
            """Set a value; returns its fingerprint, which its reversal has too, and only 0 has 0."""
            row, shift = row_of(slot), U32(slot & U32(16))
            for p in range(1, planes):
                piece = U32(U32(value >> word_type(16 * (p - 1))) & U32(0xFFFF))
                set_part(fast, far, lane, own, f, row, shift, p, piece)
            low = U32(0)
            if value != word_type(0):
                first = U64(min(value, reversed_of(value)))
                low = max(U32(U64(first * U64(HASH)) >> U64(48)), U32(1))
            set_part(fast, far, lane, own, f, row, shift, 0, low)
            return low

        @jit
        def sign_of(fast, lane, slot):
            return U32(0)

        @jit
        def turn_sign(fast, lane, slot, by):
            pass

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
    def pick(word, spin):
        """The number of a set bit, the first one from number `spin` on, in a circle; the word is not 0.

        It favours bits behind a gap, but the slots of terms are as good as random, and the k-th bit of a
        word, drawn fairly, takes 30 instructions more beside about 510.
        """
        turned = U32(U32(word >> spin) | U32(word << U32(U32(U32(32) - spin) & U32(31))))
        return U32(U32(first(turned) + spin) & U32(31))

    words = family * masks
    """Words of the sets that a step looks at: those of a factor, of all three where terms are orbits."""

    def unrolled(begin: Callable[..., Any], extend: Callable[[Any, int], Any], count: int) -> Any:
        """The chain of functions that does something for each word of some sets.

        Nothing of it is a loop, so all loads of a scan are under way at once.
        """
        chain = jit(begin)
        for n in range(count):
            chain = jit(extend(chain, n))
        return chain

    def and_own(before: Any, q: int) -> Callable[..., Any]:
        """The words of the set of one slot, and the bit that none of them has so far."""

        def own(number, bit):
            others, rest = before(number, bit)
            mine = rest if q == masks - 1 else bit if number == U32(q) else U32(0)
            mine = U32(mine)
            word = (mine,)
            return others + word, U32(rest ^ mine)

        return own

    def and_scan(before: Any, n: int) -> Callable[..., Any]:
        turn, q = divmod(n, masks)

        def scans(fast, lane, f, negative):
            word = (scan(fast, lane, U32(turn) if family > 1 else f, U32(q), negative),)
            return before(fast, lane, f, negative) + word

        return scans

    def and_set(before: Any, n: int) -> Callable[..., Any]:
        turn, q = divmod(n, masks)

        def sets(fast, lane, f):
            word = (fast[active_at(lane, U32(turn) if family > 1 else f, U32(q))],)
            return before(fast, lane, f) + word

        return sets

    def and_without(before: Any, n: int) -> Callable[..., Any]:
        q = n % masks

        def without(found, own, slots):
            word = (U32(found[n] & slots & U32(~own[q])),)
            return before(found, own, slots) + word

        return without

    def and_any(before: Any, n: int) -> Callable[..., Any]:
        return lambda found: U32(before(found) | found[n])

    def and_count(before: Any, n: int) -> Callable[..., Any]:
        return lambda found: U32(before(found) + popcount(found[n]))

    def and_note(before: Any, n: int) -> Callable[..., Any]:
        turn, q = divmod(n, masks)

        def note(fast, lane, f, sets, own, found, bit):
            before(fast, lane, f, sets, own, found, bit)
            p = U32(turn) if family > 1 else f
            mine = own[q] if p == f else U32(0)
            word = U32(U32(sets[n] & U32(~mine)) | found[n])
            fast[active_at(lane, p, U32(q))] = U32(word | U32(bit & mine))

        return note

    def and_earlier(before: Any, n: int) -> Callable[..., Any]:
        """The first set with something in it, and its number."""
        m = words - 1 - n

        def earlier(found):
            word, at = before(found)
            if n == 0 or found[m] != U32(0):
                word, at = found[m], U32(m)
            return word, at

        return earlier

    def and_numbered(before: Any, n: int) -> Callable[..., Any]:
        """The set of a number."""
        return lambda found, number: found[n] if n == 0 or number == U32(n) else before(found, number)

    def and_holder(before: Any, n: int) -> Callable[..., Any]:
        """The set that has the k-th of all set bits, its number, and how many bits stand before it."""

        def holder(found, k):
            word, place, below = before(found, k)
            if n == 0:
                return found[n], U32(n), below
            below = U32(below + popcount(found[n - 1]))
            if k >= below:
                word, place = found[n], U32(n)
            return word, place, below

        return holder

    own_words = unrolled(lambda number, bit: ((), bit), and_own, masks)
    scans = unrolled(lambda fast, lane, f, negative: (), and_scan, words)
    sets_of = unrolled(lambda fast, lane, f: (), and_set, words)
    without = unrolled(lambda found, own, slots: (), and_without, words)
    any_of = unrolled(lambda found: U32(0), and_any, words)
    count_of = unrolled(lambda found: U32(0), and_count, words)
    note_all = unrolled(lambda fast, lane, f, sets, own, found, bit: None, and_note, words)
    first_of = unrolled(lambda found: (U32(0), U32(0)), and_earlier, words)
    number_of = unrolled(lambda found, number: U32(0), and_numbered, words)
    holder_of = unrolled(lambda found, k: (U32(0), U32(0), U32(0)), and_holder, words)

    @jit
    def own_of(slot):
        """The words of the set of one slot."""
        return own_words(U32(slot >> U32(5)), U32(U32(1) << (slot & U32(31))))[0]

    @jit
    def meets(fast, lane, f, slot, value):
        """The other slots with a fingerprint, word by word, none for 0, which matches empty slots."""
        slots = U32(0) if value == U32(0) else U32(0xFFFFFFFF)
        return without(scans(fast, lane, f, negatives(value)), own_of(slot), slots)

    @jit
    def note(fast, lane, f, slot, found):
        """Bring the active sets up to date for a slot that has got a fingerprint, by what it meets."""
        bit = U32(U32(1) << (slot & U32(31))) if any_of(found) != U32(0) else U32(0)
        note_all(fast, lane, f, sets_of(fast, lane, f), own_of(slot), found, bit)

    @jit
    def leave(fast, lane, f, slot):
        """Take a slot out of the active set of a factor."""
        at = active_at(lane, f, U32(slot >> U32(5)))
        fast[at] = U32(fast[at] & U32(~U32(U32(1) << (slot & U32(31)))))

    @jit
    def partner(fast, lane, f, slot, value, draw):
        """(found, factor, slot, rest of the draw) of another slot with this fingerprint, which is not 0."""
        begin = U32((U64(draw) * U64(words)) >> U64(32))
        draw = U32(draw * U32(words))
        spin = U32(draw >> U32(27))
        draw = U32(draw << U32(5))
        found = without(scans(fast, lane, f, negatives(value)), own_of(slot), U32(0xFFFFFFFF))
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
        """(any, factor, slot, rest of the draw): a slot that may have a partner."""
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
        word, place, _ = holder_of(sets, k)
        bit = pick(word, U32(draw >> U32(27)))
        draw = U32(draw << U32(5))
        if family > 1:
            f = U32(place // U32(masks))
            place = U32(place - U32(f * U32(masks)))
        return I32(1), f, U32(U32(place << U32(5)) | bit), draw

    return SimpleNamespace(
        get=get,
        put=put,
        print_at=print_at,
        sign_of=sign_of,
        turn_sign=turn_sign,
        meets=meets,
        note=note,
        leave=leave,
        partner=partner,
        active=active,
        taken=taken,
        active_at=active_at,
    )
