"""Walks on schemes invariant under reversal in plain Python, equal step by step to `walk.advance` on pairs."""

from __future__ import annotations

from typing import Any

from lcma.search.flipgraph.policy import PLUS_TRIES, Policy
from lcma.search.terms.involution import reversed_word
from lcma.search.terms.packed import WORD_BITS, lanes_for
from lcma.search.terms.pairs import PairTerms

from .flip_reference import ReferenceWalk, bucket

_LOW = (1 << 32) - 1


class PairReferenceWalk(ReferenceWalk):
    """A walker whose slots are terms [a, b, c] that represent their reversals too."""

    def __init__(
        self, start: PairTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None
    ) -> None:
        self.policy = policy or Policy()
        terms = [[int(word) for word in term] for term in start.words.T]
        size = WORD_BITS * lanes_for(len(terms) + room)
        self.start = [*terms, *[None] * (size - len(terms))]
        self.begin(seed, index)

    @property
    def full(self) -> int:
        return 0

    @property
    def rank(self) -> int:
        return sum(2 if self.odd(slot) else 1 for slot in self.live)

    def terms(self) -> list[tuple[Any, ...]]:
        return [tuple(self.term(slot)) for slot in self.live]

    def odd(self, slot: int) -> list[int]:
        """Return the factors that are not their own reversals; none for a single term."""
        return [f for f, word in enumerate(self.term(slot)) if reversed_word(word) != word]

    def change(self, slot: int, f: int, word: int, paired: bool) -> None:
        """Add to a factor; two terms of a pair that become equal cancel, so the factor is set to zero."""
        self.term(slot)[f] ^= word
        if paired and not self.odd(slot):
            self.term(slot)[f] = 0

    def partners_of(self, f: int, slot: int) -> list[int]:
        """Return the other slots whose factor f has the same hash as this one or its reversal."""

        def hashed(one: int) -> int:
            word = self.term(one)[f]
            return bucket(min(word, reversed_word(word)))

        return [other for other in self.live if other != slot and hashed(other) == hashed(slot)]

    def try_flip(self, draw: int) -> str:
        active = [(f, slot) for f in range(3) for slot in self.live if self.partners_of(f, slot)]
        if not active:
            return "none"
        f, i = active[(draw >> 32) * len(active) >> 32]
        partners = self.partners_of(f, i)
        pick = (draw & _LOW) * len(partners)
        j, coin = partners[pick >> 32], pick >> 31 & 1
        mine, theirs = self.term(i), self.term(j)
        equal, mirror = mine[f] == theirs[f], mine[f] == reversed_word(theirs[f])
        if not (equal or mirror):
            return "miss"
        g, e = (f + 1) % 3, (f + 2) % 3
        b, c = theirs[g], mine[e]
        if mirror and (coin or not equal):
            b, c = reversed_word(b), reversed_word(c)
        pair_i, pair_j = bool(self.odd(i)), bool(self.odd(j))
        # A term that is its own reversal adds both images of a factor of one that is not.
        self.change(i, g, b ^ reversed_word(b) if pair_j and not pair_i else b, pair_i)
        self.change(j, e, c ^ reversed_word(c) if pair_i and not pair_j else c, pair_j)
        self.flips += 1
        if any(not all(self.term(slot)) or self.can_shrink(slot) for slot in (i, j)):
            return "hit"
        doubles = any(self.common(slot, other) for slot in (i, j) for other in self.live if other != slot)
        return "hit" if doubles else "flip"

    def common(self, i: int, j: int) -> tuple[int, int] | None:
        """Return (odd factor, summand for it) if term j, as it is or reversed, equals term i in two factors."""
        if bool(self.odd(i)) != bool(self.odd(j)):
            return None
        for others in (list(self.term(j)), [reversed_word(word) for word in self.term(j)]):
            equal = [word == other for word, other in zip(self.term(i), others, strict=True)]
            if sum(equal) >= 2:
                odd = equal.index(False) if False in equal else 2
                return odd, others[odd]
        return None

    def can_shrink(self, slot: int) -> bool:
        """Return whether a single term can replace a pair, if the policy allows it."""
        return self.policy.orbits == "any" and len(self.odd(slot)) == 1

    def shrink(self, slot: int) -> None:
        """Drop a pair with a zero factor, or replace it by a single term."""
        if not all(self.term(slot)):
            self.free(slot)
        elif self.can_shrink(slot):
            (f,) = self.odd(slot)
            self.term(slot)[f] ^= reversed_word(self.term(slot)[f])
            self.reductions += 1

    def reduce(self) -> None:
        """Replace pairs by single terms where possible, and merge those that share two factors."""
        merged = True
        while merged:
            merged = False
            for slot in self.live:
                self.shrink(slot)
            for i in range(len(self.slots)):
                for j in range(i + 1, len(self.slots)):
                    if self.slots[i] is None or self.slots[j] is None:
                        continue
                    found = self.common(i, j)
                    if found:
                        self.change(i, *found, bool(self.odd(i)))
                        self.free(j)
                        merged = True

    def reduce_dependent(self) -> bool:
        return False

    def plus(self) -> bool:
        """Split two pairs: a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c', the second one reversed by
        the draw. Returns False if no pair allows it.
        """
        if None not in self.slots:
            return False
        for _ in range(PLUS_TRIES):
            live = self.live
            i = live[(self.draw() >> 32) * len(live) >> 32]
            draw = self.draw()
            j = live[(draw >> 32) * len(live) >> 32]
            reverse, order = divmod((draw & _LOW) * 12 >> 32, 6)
            other = [reversed_word(word) if reverse else word for word in self.term(j)]
            a, paired = self.term(i), bool(self.odd(i))
            if i == j or paired != bool(self.odd(j)) or any(x == y for x, y in zip(a, other, strict=True)):
                continue
            f = order // 2
            g = (f + 1 + order % 2) % 3
            e = 3 - f - g
            third = list(other)
            third[f] ^= a[f]
            a[g] ^= other[g]
            other[e] ^= a[e]
            other[f] = a[f]
            new = self.slots.index(None)
            self.slots[j], self.slots[new] = other, third
            for slot in (i, j, new):
                if paired and not self.odd(slot):
                    self.term(slot)[0] = 0
            return True
        return False
