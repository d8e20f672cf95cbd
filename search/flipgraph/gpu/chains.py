"""Functions on all words of some sets at once, unrolled without loops, so that all loads overlap.

The words are those that a step uses: the mask words of a factor, or of all three where terms are orbits. The source of
each function is put together for their number, as a loop over them would be one at run time.
"""

from __future__ import annotations

from ....jit import named
from .primitives import U32, KernelParts


def make_chains(parts: KernelParts) -> None:
    """Add functions that read and write all words of sets: scans, active sets, differences, counts."""
    masks, symmetric = parts.form.masks, parts.form.symmetric
    words = (3 if symmetric else 1) * masks
    places = [(f"U32({n // masks})" if symmetric else "f", n % masks) for n in range(words)]
    names = {"U32": U32, "scan": parts.scan, "active_at": parts.active_at, "popcount": parts.popcount}

    def unroll(name: str, parameters: str, *lines: str) -> None:
        """Add the function of these lines."""
        scope, source = dict(names), f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
        exec(source, scope)
        parts.jit(named(scope[name], source))

    def tuple_of(*words: str) -> str:
        return f"return ({', '.join(words)},)"

    others = [f"bit if number == U32({q}) else U32(0)" for q in range(masks - 1)]
    notes = []
    for n, (f, q) in enumerate(places):
        notes += [f"mine = own[{q}] if {f} == f else U32(0)", f"word = U32(U32(sets[{n}] & U32(~mine)) | found[{n}])"]
        notes += [f"fast[active_at(lane, {f}, U32({q}))] = U32(word | U32(bit & mine))"]
    firsts = [f"if found[{n}] != U32(0): word, at = found[{n}], U32({n})" for n in reversed(range(words - 1))]
    numbered = [f"if number == U32({n}): word = found[{n}]" for n in range(1, words)]
    holders = []
    for n in range(1, words):
        holders += [f"below = U32(below + popcount(found[{n - 1}]))"]
        holders += [f"if k >= below: word, at = found[{n}], U32({n})"]
    # The words of the set of one slot, which is bit `bit` of word `number`.
    unroll(
        "own_words",
        "number, bit",
        *(f"word{q} = U32({word})" for q, word in enumerate(others)),
        f"word{masks - 1} = U32({' ^ '.join(['bit', *(f'word{q}' for q in range(masks - 1))])})",
        tuple_of(*(f"word{q}" for q in range(masks))),
    )
    unroll(
        "scans", "fast, lane, f, negative", tuple_of(*(f"scan(fast, lane, {f}, U32({q}), negative)" for f, q in places))
    )
    unroll("sets_of", "fast, lane, f", tuple_of(*(f"fast[active_at(lane, {f}, U32({q}))]" for f, q in places)))
    unroll("note_all", "fast, lane, f, sets, own, found, bit", *notes)
    unroll(
        "without",
        "found, own, slots",
        tuple_of(*(f"U32(found[{n}] & slots & U32(~own[{q}]))" for n, (_, q) in enumerate(places))),
    )
    unroll("any_of", "found", f"return U32({' | '.join(f'found[{n}]' for n in range(words))})")
    unroll("count_of", "found", f"return U32({' + '.join(f'popcount(found[{n}])' for n in range(words))})")
    # The first nonempty word, and its index.
    unroll("first_of", "found", f"word, at = found[{words - 1}], U32({words - 1})", *firsts, "return word, at")
    unroll("number_of", "found, number", "word = found[0]", *numbered, "return word")
    # The word that contains the k-th of all set bits, and its index.
    unroll("holder_of", "found, k", "word, at, below = found[0], U32(0), U32(0)", *holders, "return word, at")
