"""Straight-line programs of few two-term lines for ternary sums, compiled: values are added until all sums are values.

A linear map is a set of wanted sums over a few inputs. Values are the inputs and all computed lines; a
wanted sum that is the sum or the difference of two values is computed at once, so cancellation is used
where it helps. If there is none, the value is added that shortens the other sums most, with a little noise.

A sum is a ternary word, pos | neg << 32, of its coefficients over the inputs; canonical words have a
positive lowest coefficient, and a value represents its negative too. Sums with a coefficient 2 are excluded.

Source: the greedy choice of the most frequent pair (Paar 1997), and Boyar and Peralta's rule of computing a
target as soon as it is one addition away (2010), both over the integers instead of GF(2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..terms.bits import ONE, below, compiled
from ..terms.ternary_words import canonical_word, support_of, total_of, turned
from ..terms.words import Words

Ints = npt.NDArray[np.int32]

_ZERO, _HALF, _SHIFT = (np.uint64(n) for n in (0, 32, 20))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCALE = 16
"""Weight of one saved addition relative to the noise of a choice."""


class Sums(NamedTuple):
    """Working memory of one thread; the arrays are not shared and are changed in place.

    Attributes:
        values: canonical words of the inputs, then of the lines in the order of creation.
        lines: pair code of every value (later value << 16 | earlier value << 1 | difference).
        used: whether a value is wanted; after `without_idle`, the new number of every needed value.
        wanted: canonical words of the distinct wanted sums.
        pending: numbers of the wanted sums not computed yet.
        ready: numbers of the pending sums that are one line away.
        parts, signs, lengths: every pending sum as a sum of values; signs are 0 for plus, 32 for minus.
        keys, stamps: a hash table of words, cleared by a new stamp.
        have, pair, row, score, seen: for every word the number of the value equal to it, the code of a
            pair with this sum, the number of the wanted sum equal to it (each -1 for none), its saving,
            and the choice in which the saving was counted.
        state: (6,) the current stamp, and the numbers of values, pending, ready, words in the table, choices.
    """

    values: Words
    lines: Ints
    used: Ints
    wanted: Words
    pending: Ints
    ready: Ints
    parts: Ints
    signs: Words
    lengths: Ints
    keys: Words
    stamps: Ints
    have: Ints
    pair: Ints
    row: Ints
    score: Ints
    seen: Ints
    state: Ints


_STAMP, _VALUES, _PENDING, _READY, _FILLED, _CHOICES = range(6)


def make_sums(rows: int, inputs: int) -> Sums:
    """Allocate memory for maps of up to `rows` rows on up to `inputs` inputs, at most 32."""
    most = inputs + rows * inputs + 1
    size = 1 << min(max(((inputs + 2 * rows) ** 2 - 1).bit_length(), 10), 18)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int32)

    return Sums(
        values=np.zeros(most, dtype=np.uint64),
        lines=ints(most),
        used=ints(most),
        wanted=np.zeros(rows, dtype=np.uint64),
        pending=ints(rows),
        ready=ints(rows),
        parts=ints(rows, inputs),
        signs=np.zeros((rows, inputs), dtype=np.uint64),
        lengths=ints(rows),
        keys=np.zeros(size, dtype=np.uint64),
        **{name: ints(size) for name in ("stamps", "have", "pair", "row", "score", "seen")},
        state=ints(6),
    )


@compiled(internal=True)
def find_word(s: Sums, word: np.uint64) -> int:
    """Return the position of a word in the table, or -1 - p with p the free position for it."""
    mask = np.uint64(len(s.keys) - 1)
    h = ((word * _GOLDEN) >> _SHIFT) & mask
    while s.stamps[h] == s.state[_STAMP]:
        if s.keys[h] == word:
            return np.int64(h)  # type: ignore[return-value]
        h = (h + ONE) & mask
    return -1 - np.int64(h)  # type: ignore[return-value]


@compiled(internal=True)
def enter_word(s: Sums, word: np.uint64) -> int:
    """Return the position of a word, inserted if it is new; -1 if the table is three quarters full."""
    h = find_word(s, word)
    if h >= 0:
        return h
    if 4 * s.state[_FILLED] > 3 * len(s.keys):
        return -1
    h = -1 - h
    s.state[_FILLED] += 1
    s.stamps[h] = s.state[_STAMP]
    s.keys[h] = word
    s.have[h] = s.pair[h] = s.row[h] = s.seen[h] = -1
    return h


@compiled(internal=True)
def add_value(s: Sums, word: np.uint64) -> None:
    """Append a value; enter its sums and differences with the others in the table, and mark wanted ones as ready."""
    n = s.state[_VALUES]
    h = find_word(s, word)
    if h >= 0:
        s.have[h] = n
        s.lines[n] = s.pair[h]
    s.values[n] = word
    s.used[n] = 0
    s.state[_VALUES] = n + 1
    for i in range(n):
        for minus in range(2):
            other = turned(s.values[i], np.uint64(minus) * _HALF)
            if other & word != _ZERO:
                continue
            total = total_of(other, word)
            if total == _ZERO:
                continue
            q = enter_word(s, canonical_word(total))
            if q >= 0 and s.pair[q] < 0 and s.have[q] < 0:
                s.pair[q] = (n << 16) | (i << 1) | minus
                if s.row[q] >= 0:
                    s.ready[s.state[_READY]] = s.row[q]
                    s.state[_READY] += 1


@compiled(internal=True)
def absorb(s: Sums, n: int) -> None:
    """Replace the parts that sum to value n by n, in every pending sum."""
    word = s.values[n]
    support = support_of(word)
    for a in range(s.state[_PENDING]):
        t = s.pending[a]
        whole = s.wanted[t]
        plus = whole & word == word
        if not plus and turned(whole, _HALF) & word != word:
            continue
        inside, fits = 0, True
        for e in range(s.lengths[t]):
            part = support_of(s.values[s.parts[t, e]])
            if part & support != _ZERO:
                inside += 1
                fits &= part & ~support == _ZERO
        if not fits or inside < 2:
            continue
        kept = 0
        for e in range(s.lengths[t]):
            if support_of(s.values[s.parts[t, e]]) & support == _ZERO:
                s.parts[t, kept], s.signs[t, kept] = s.parts[t, e], s.signs[t, e]
                kept += 1
        s.parts[t, kept] = n
        s.signs[t, kept] = _ZERO if plus else _HALF
        s.lengths[t] = kept + 1


@compiled(internal=True)
def start_sums(s: Sums, words: Words, inputs: int) -> None:
    """Initialise: the distinct sums among the words are pending, the inputs are values."""
    s.state[_STAMP] += 1
    for place in (_VALUES, _PENDING, _READY, _FILLED, _CHOICES):
        s.state[place] = 0
    count = 0
    for r in range(len(words)):
        word = canonical_word(words[r])
        support = support_of(word)
        if support & (support - ONE) == _ZERO:
            continue
        h = enter_word(s, word)
        if s.row[h] >= 0:
            continue
        s.row[h] = count
        s.wanted[count] = word
        s.pending[count] = count
        length = 0
        for c in range(inputs):
            bit = ONE << np.uint64(c)
            if support & bit != _ZERO:
                s.parts[count, length] = c
                s.signs[count, length] = _ZERO if word & bit != _ZERO else _HALF
                length += 1
        s.lengths[count] = length
        count += 1
    s.state[_PENDING] = count
    for c in range(inputs):
        add_value(s, ONE << np.uint64(c))


@compiled(internal=True)
def complete(s: Sums, choice: int) -> None:
    """Compute one of the ready sums."""
    t = s.ready[choice]
    s.state[_READY] -= 1
    s.ready[choice] = s.ready[s.state[_READY]]
    for a in range(s.state[_PENDING]):
        if s.pending[a] == t:
            s.state[_PENDING] -= 1
            s.pending[a] = s.pending[s.state[_PENDING]]
            break
    add_value(s, s.wanted[t])
    s.used[s.state[_VALUES] - 1] = 1
    absorb(s, s.state[_VALUES] - 1)


@compiled(internal=True)
def credit(s: Sums, h: int, saving: int) -> int:
    """Add a saving of the word at h in this choice; return the total so far."""
    if s.seen[h] != s.state[_CHOICES]:
        s.seen[h] = s.state[_CHOICES]
        s.score[h] = 0
    s.score[h] += saving
    return s.score[h]


@compiled(internal=True)
def choose_value(s: Sums, noise: int, rng: Words) -> int:
    """Return the position of the word that shortens the pending sums most: a pair of parts, or a sum minus a value."""
    s.state[_CHOICES] += 1
    top, best = -1, -1
    for a in range(s.state[_PENDING]):
        t = s.pending[a]
        length = s.lengths[t]
        for e in range(length):
            one = turned(s.values[s.parts[t, e]], s.signs[t, e])
            for f in range(e):
                other = turned(s.values[s.parts[t, f]], s.signs[t, f])
                h = find_word(s, canonical_word(one | other))
                if h < 0:
                    continue
                rank = _SCALE * credit(s, h, 1) + below(rng, noise)
                if rank > top:
                    top, best = rank, h
        if length < 3:
            continue
        whole = s.wanted[t]
        for i in range(s.state[_VALUES]):
            for minus in range(2):
                value = turned(s.values[i], np.uint64(minus) * _HALF)
                if whole & value != _ZERO:
                    continue
                rest = total_of(whole, value)
                h = find_word(s, canonical_word(rest))
                if h < 0 or s.pair[h] < 0 or s.have[h] >= 0:
                    continue
                if length == 3 and (whole & rest == rest or turned(whole, _HALF) & rest == rest):
                    continue  # a pair of parts: counted above
                rank = _SCALE * credit(s, h, length - 2) + below(rng, noise)
                if rank > top:
                    top, best = rank, h
    return best


@compiled(internal=True)
def without_idle(s: Sums, inputs: int) -> int:
    """Remove the lines that no wanted sum needs; return the number of remaining lines."""
    for n in range(s.state[_VALUES] - 1, inputs - 1, -1):
        if s.used[n]:
            s.used[s.lines[n] >> 16] = s.used[(s.lines[n] >> 1) & 0x7FFF] = 1
    kept = inputs
    for n in range(inputs):
        s.used[n] = n
    for n in range(inputs, s.state[_VALUES]):
        if s.used[n]:
            pair = s.lines[n]
            s.used[n] = kept
            s.values[kept] = s.values[n]
            s.lines[kept] = (s.used[pair >> 16] << 16) | (s.used[(pair >> 1) & 0x7FFF] << 1) | (pair & 1)
            kept += 1
    s.state[_VALUES] = kept
    return kept - inputs


@compiled(nogil=True)
def share_sums(s: Sums, words: Words, inputs: int, noise: int, rng: Words) -> int:
    """Compute lines for all words (rows of a map on `inputs` inputs); return their number, which is the additions.

    The lines are in `s`. A choice may be worse than the best by up to `noise` >= 1 sixteenths of an
    addition. Returns -1 where the table is too small.
    """
    start_sums(s, words, inputs)
    while True:
        while s.state[_READY] > 0:
            complete(s, below(rng, s.state[_READY]))
        if s.state[_PENDING] == 0:
            return without_idle(s, inputs)
        h = choose_value(s, noise, rng)
        if h < 0 or s.state[_VALUES] == len(s.values):
            return -1
        add_value(s, s.keys[h])
        absorb(s, s.state[_VALUES] - 1)


@compiled(nogil=True)
def share_often(
    s: Sums, words: Words, inputs: int, runs: int, best: int, values: Words, lines: Ints, rng: Words
) -> int:
    """Run `share_sums` `runs` times with random noise; return the fewest lines, `best` included (< 0: none yet).

    The values and lines of a better run are stored in `values` and `lines`, as in `Sums`.
    """
    for _ in range(runs):
        noise = 1 + below(rng, 5) * _SCALE
        count = share_sums(s, words, inputs, noise, rng)
        if count >= 0 and (best < 0 or count < best):
            best = count
            for n in range(inputs + count):
                values[n] = s.values[n]
                lines[n] = s.lines[n]
    return best
