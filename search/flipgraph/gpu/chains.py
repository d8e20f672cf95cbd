"""Chains of functions, one for each word of some sets: unrolled without loops, so that all loads overlap.

The words are those that a step uses: the mask words of a factor, or of all three where terms are orbits.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .layout import Form
from .primitives import U32, Primitives


def unrolled(jit: Callable[..., Any], begin: Callable[..., Any], extend: Callable[[Any, int], Any], count: int) -> Any:
    """Return the chain of `count` functions: `begin`, extended by `extend(chain, n)` for each word n."""
    chain = jit(begin)
    for n in range(count):
        chain = jit(extend(chain, n))
    return chain


def make_memory_chains(
    prims: Primitives, form: Form, access: SimpleNamespace, scanning: SimpleNamespace
) -> SimpleNamespace:
    """Create chains that read and write the memory: the bits of a slot, scans, active sets."""
    jit, masks, scan, active_at = prims.jit, form.masks, scanning.scan, access.active_at
    family = 3 if form.symmetric else 1
    words = family * masks

    def and_own(before: Any, q: int) -> Callable[..., Any]:
        """Return the words of the set of one slot, and the bit if none of them contains it yet."""

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

    def and_note(before: Any, n: int) -> Callable[..., Any]:
        turn, q = divmod(n, masks)

        def note(fast, lane, f, sets, own, found, bit):
            before(fast, lane, f, sets, own, found, bit)
            p = U32(turn) if family > 1 else f
            mine = own[q] if p == f else U32(0)
            word = U32(U32(sets[n] & U32(~mine)) | found[n])
            fast[active_at(lane, p, U32(q))] = U32(word | U32(bit & mine))

        return note

    return SimpleNamespace(
        own_words=unrolled(jit, lambda number, bit: ((), bit), and_own, masks),
        scans=unrolled(jit, lambda fast, lane, f, negative: (), and_scan, words),
        sets_of=unrolled(jit, lambda fast, lane, f: (), and_set, words),
        note_all=unrolled(jit, lambda fast, lane, f, sets, own, found, bit: None, and_note, words),
    )


def make_word_chains(prims: Primitives, form: Form) -> SimpleNamespace:
    """Create chains on loaded words: differences, counts, and the word that contains a bit."""
    jit, popcount, masks = prims.jit, prims.popcount, form.masks
    words = (3 if form.symmetric else 1) * masks

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

    def and_earlier(before: Any, n: int) -> Callable[..., Any]:
        """Return the first nonempty word, and its index."""
        m = words - 1 - n

        def earlier(found):
            word, at = before(found)
            if n == 0 or found[m] != U32(0):
                word, at = found[m], U32(m)
            return word, at

        return earlier

    def and_numbered(before: Any, n: int) -> Callable[..., Any]:
        """Return the word of an index."""
        return lambda found, number: found[n] if n == 0 or number == U32(n) else before(found, number)

    def and_holder(before: Any, n: int) -> Callable[..., Any]:
        """Return the word that contains the k-th of all set bits, its index, and the bits counted before."""

        def holder(found, k):
            word, place, below = before(found, k)
            if n == 0:
                return found[n], U32(n), below
            below = U32(below + popcount(found[n - 1]))
            if k >= below:
                word, place = found[n], U32(n)
            return word, place, below

        return holder

    return SimpleNamespace(
        without=unrolled(jit, lambda found, own, slots: (), and_without, words),
        any_of=unrolled(jit, lambda found: U32(0), and_any, words),
        count_of=unrolled(jit, lambda found: U32(0), and_count, words),
        first_of=unrolled(jit, lambda found: (U32(0), U32(0)), and_earlier, words),
        number_of=unrolled(jit, lambda found, number: U32(0), and_numbered, words),
        holder_of=unrolled(jit, lambda found, k: (U32(0), U32(0), U32(0)), and_holder, words),
    )
