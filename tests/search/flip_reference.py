"""The flip walk in plain Python, equal step by step to `walk.advance`; buckets and active sets are recomputed.

It is the readable definition of the walk over every ring, and the reference in tests of the compiled
one. A term is [u, v, w, sign] with factors as tuples of coefficients whose first nonzero one is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from lcma.schemes_db.grids import Kind
from lcma.search.flipgraph.policy import MISS_LIMIT, PLUS_TRIES, Policy
from lcma.search.seeds import splitmix
from lcma.search.terms.packed import SchemeTerms, lanes_for
from lcma.search.terms.ternary import TermsModulo3, TernaryTerms
from lcma.search.terms.words import WORD_BITS

_MASK = (1 << 64) - 1
LOW = (1 << 32) - 1

Coefficients = tuple[int, ...]


@cache
def bucket(plus: int, minus: int = 0) -> int:
    """Return the hash of a factor, given as its two words: the top 12 bits of a sum of products."""
    return (plus * 0x9E3779B97F4A7C15 + minus * 0xD1B54A32D192ED03 & _MASK) >> 52


@cache
def packed(values: Coefficients) -> tuple[int, int]:
    """Return the two words of a factor."""
    plus, minus = (sum(1 << place for place, value in enumerate(values) if value == sign) for sign in (1, -1))
    return plus, minus


COUNTERS = ("steps", "flips", "misses", "since", "rank", "walk_best", "walk_steps", "trapped", "best_rank")
"""Names of a walk's counters, in the order of an arena's."""


class ReferenceWalk:
    """A walker whose slots are a list of terms, or None where free."""

    def __init__(
        self, start: SchemeTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None
    ) -> None:
        self.policy = policy or Policy()
        self.characteristic = 0 if isinstance(start, TernaryTerms) else 3 if isinstance(start, TermsModulo3) else 2
        size = WORD_BITS * lanes_for(start.rank + room)
        self.start: list[list[Any] | None] = [*self.unpacked(start), *[None] * (size - start.rank)]
        self.halves = [
            [{int(place) for place in np.flatnonzero(kinds.ravel() == kind)} for kind in (Kind.LOWER, Kind.UPPER)]
            for kinds in start.target.kind_arrays
        ]
        self.begin(seed, index)

    def begin(self, seed: int, index: int) -> None:
        """Reset the walk to its start with zero counters."""
        self.rng = splitmix(seed, index)
        self.steps = self.flips = 0
        self.go_to_start()
        self.best_rank, self.best_full, self.best = self.standing, self.full, self.terms()

    def unpacked(self, start: Any) -> list[list[Any]]:
        """Return the terms of a start as lists."""
        terms = []
        for factors in zip(*(dense.tolist() for dense in start.dense()), strict=True):
            forms = [self.canonical(tuple(factor)) for factor in factors]
            terms.append([*(values for values, _ in forms), forms[0][1] * forms[1][1] * forms[2][1]])
        return terms

    def canonical(self, values: Coefficients) -> tuple[Coefficients, int]:
        """Return the factor with a positive first nonzero, and the extracted sign; zero has sign 1."""
        sign = next((value for value in values if value), 1)
        return tuple(sign * value for value in values), sign

    def combined(self, left: Coefficients, scale: int, right: Coefficients) -> Any:
        """Return left + scale right in the ring, or None if it leaves the ring."""
        values = tuple(x + scale * y for x, y in zip(left, right, strict=True))
        if self.characteristic == 2:
            return tuple(value % 2 for value in values)
        if self.characteristic == 3:
            return tuple((value + 1) % 3 - 1 for value in values)
        return values if max(map(abs, values)) <= 1 else None

    def fits(self, values: Coefficients | None) -> bool:
        """Return whether a sum is allowed as a factor."""
        return values is not None and sum(map(abs, values)) <= self.policy.nonzeros

    @property
    def live(self) -> list[int]:
        return [slot for slot, term in enumerate(self.slots) if term is not None]

    @property
    def rank(self) -> int:
        return len(self.live)

    @property
    def full(self) -> int:
        """Number of full products: no factor uses only lower or only upper half blocks."""
        return sum(self.is_full(self.term(slot)) for slot in self.live)

    def is_full(self, term: list[Any]) -> bool:
        for values, sorts in zip(term, self.halves, strict=False):
            support = {place for place, value in enumerate(values) if value}
            if any(support <= places for places in sorts):
                return False
        return True

    @property
    def standing(self) -> int:
        """Rank plus the number of full products beyond the policy's limit."""
        return self.rank + (max(0, self.full - self.policy.full) if self.policy.full >= 0 else 0)

    def terms(self) -> list[tuple[Any, ...]]:
        """Return the terms in slot order."""
        return [tuple(term) for term in self.slots if term is not None]

    def go_to_start(self) -> None:
        self.slots = [None if term is None else list(term) for term in self.start]
        self.walk_best = self.rank
        self.walk_steps = self.trapped = self.since = self.misses = 0

    def draw(self) -> int:
        state = self.rng
        state ^= state << 13 & _MASK
        state ^= state >> 7
        state ^= state << 17 & _MASK
        self.rng = state
        return state

    def term(self, slot: int) -> list[Any]:
        term = self.slots[slot]
        assert term is not None
        return term

    def set_factor(self, slot: int, f: int, values: Coefficients) -> None:
        """Set a factor to a value that need not be canonical."""
        term = self.term(slot)
        term[f], sign = self.canonical(values)
        term[3] *= sign

    def bucket_members(self, f: int, slot: int) -> list[int]:
        """Return the other slots whose factor f has the same hash as this slot's."""
        h = bucket(*packed(self.term(slot)[f]))
        return [other for other in self.live if other != slot and bucket(*packed(self.term(other)[f])) == h]

    def advance(self, goal: int, steps: int) -> None:
        """Walk `steps` steps, or until the best rank is at most `goal`."""
        for _ in range(steps):
            if self.best_rank <= goal:
                return
            self.step()

    def step(self) -> None:
        self.steps, self.since, self.walk_steps = self.steps + 1, self.since + 1, self.walk_steps + 1
        event = self.try_flip(self.draw())
        self.misses = self.misses + 1 if event == "miss" else 0
        if event == "hit":
            self.reduce()
        trapped = event == "none" or self.misses >= MISS_LIMIT
        if trapped or self.since >= self.policy.plus_after:
            self.unblock(trapped)
        self.record()

    def try_flip(self, draw: int) -> str:
        active = [(f, slot) for f in range(3) for slot in self.live if self.bucket_members(f, slot)]
        if not active:
            return "none"
        f, i = active[(draw >> 32) * len(active) >> 32]
        partners = self.bucket_members(f, i)
        pick = (draw & LOW) * len(partners)
        j, first = partners[pick >> 32], -1 if pick >> 31 & 1 else 1
        a, b = self.term(i), self.term(j)
        if a[f] != b[f]:
            return "miss"
        g, e = (f + 1) % 3, (f + 2) % 3
        for t in (first, -first):
            left, right = self.combined(a[g], t, b[g]), self.combined(b[e], -t * a[3] * b[3], a[e])
            if left is not None and right is not None:
                break
        else:
            return "miss"
        if self.policy.guarded:
            new_a, new_b = list(a), list(b)
            new_a[g], new_b[e] = left, right
            change = sum(map(self.is_full, (new_a, new_b))) - sum(map(self.is_full, (a, b)))
            if not (self.fits(left) and self.fits(right) and self.dares(draw, change)):
                return "stay"
        self.set_factor(i, g, left)
        self.set_factor(j, e, right)
        self.flips += 1
        if not (any(left) and any(right)):
            return "hit"
        doubles = any(self.agreement(s, t) >= 2 for s in (i, j) for t in self.live if s != t)
        return "hit" if doubles else "flip"

    def dares(self, draw: int, change: int) -> bool:
        """Return whether a flip that adds `change` full products is accepted."""
        chance = round(self.policy.chance ** max(change, 0) * (1 << 32))
        return change <= 0 or (draw * 0xBF58476D1CE4E5B9 & _MASK) >> 32 < chance

    def agreement(self, i: int, j: int) -> int:
        return sum(x == y for x, y in zip(self.term(i)[:3], self.term(j)[:3], strict=True))

    def reduce(self) -> None:
        """Drop terms with a zero factor and merge pairs that share two factors, where the sum stays in the ring."""
        merged = True
        while merged:
            merged = False
            for slot in self.live:
                if not all(any(factor) for factor in self.term(slot)[:3]):
                    self.free(slot)
            for i, j in combinations(range(len(self.slots)), 2):
                if self.slots[i] is None or self.slots[j] is None or self.agreement(i, j) < 2:
                    continue
                a, b = self.term(i), self.term(j)
                f = next((f for f in range(2) if a[f] != b[f]), 2)
                total = self.combined(a[f], a[3] * b[3], b[f])
                if total is not None and self.fits(total):
                    self.set_factor(i, f, total)
                    self.free(j)
                    merged = True

    def free(self, slot: int) -> None:
        self.slots[slot] = None

    def record(self) -> None:
        if self.rank < self.walk_best:
            self.walk_best = self.rank
            self.walk_steps = self.trapped = self.since = 0
        gains = self.policy.guarded and self.standing == self.best_rank and self.full < self.best_full
        if self.standing < self.best_rank or gains:
            self.best_rank, self.best_full, self.best = self.standing, self.full, self.terms()

    def unblock(self, trapped: bool) -> None:
        """Reduce by a linear dependence if there is one, else make a plus, else return to the start."""
        self.since = self.misses = 0
        if self.reduce_dependent():
            self.reduce()
            return
        self.trapped += trapped
        if self.trapped > self.policy.trap or self.walk_steps > self.policy.restart_after:
            self.go_to_start()
        elif self.rank < self.walk_best + self.policy.margin and self.plus():
            self.reduce()
        elif trapped:
            self.go_to_start()

    def reduce_dependent(self) -> bool:
        """Over GF(2), drop a term whose factor g is the sum of those of other terms with the same factor f."""
        if self.characteristic != 2 or self.policy.guarded:
            return False
        for f in range(3):
            for first in self.live:
                group = [slot for slot in self.live if self.term(slot)[f] == self.term(first)[f]][:64]
                if group[0] != first or len(group) < 3:
                    continue
                for g in range(3):
                    if g != f and (found := self.dependence(group, g)):
                        *others, last = found
                        for slot in others:
                            total = self.combined(self.term(slot)[3 - f - g], 1, self.term(last)[3 - f - g])
                            self.term(slot)[3 - f - g] = total
                        self.free(last)
                        return True
        return False

    def dependence(self, group: list[int], g: int) -> list[int] | None:
        """Return the first member whose factor g depends on those of earlier members, preceded by these members."""
        basis: list[tuple[int, frozenset[int]]] = []
        for slot in group:
            word, members = packed(self.term(slot)[g])[0], frozenset([slot])
            for row, parts in basis:
                if word ^ row < word:
                    word, members = word ^ row, members ^ parts
            if not word:
                return sorted(members)
            basis.append((word, members))
        return None

    def drawn_pairs(self) -> Iterator[tuple[int, int, int]]:
        """Draw pairs of slots for a plus, each with the draw of the second slot."""
        for _ in range(PLUS_TRIES):
            live = self.live
            i = live[(self.draw() >> 32) * len(live) >> 32]
            draw = self.draw()
            yield i, live[(draw >> 32) * len(live) >> 32], draw

    def plus(self) -> bool:
        """Split two terms: a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c', signs in c and c'.

        The pair, the roles of the factors, and the signs p and q to try first are drawn. Returns False if no pair
        allows it.
        """
        if None not in self.slots or self.rank < 2:
            return False
        for i, j, draw in self.drawn_pairs():
            if self.agreement(i, j):
                continue
            turn = (draw & LOW) * 6 >> 32
            f = turn >> 1
            g = (f + 1 + (turn & 1)) % 3
            e = 3 - f - g
            a, b = self.term(i), self.term(j)
            for n in range(4):
                p, q = (-1 if (draw ^ n) >> bit & 1 else 1 for bit in range(2))
                first = self.combined(a[g], p, b[g])
                second = self.combined(tuple(q * b[3] * value for value in b[e]), -p * a[3], a[e])
                third = self.combined(b[f], -q, a[f])
                if not (self.fits(first) and self.fits(second) and self.fits(third)):
                    continue
                new, slot = list(b), self.slots.index(None)
                self.slots[slot] = new
                self.set_factor(slot, f, third)
                self.set_factor(i, g, first)
                b[f], b[3] = a[f], 1
                self.set_factor(j, e, second)
                return True
        return False
