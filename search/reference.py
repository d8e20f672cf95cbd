"""The flip walk in plain Python, step for step what `walk.advance` does; nothing here is kept or hashed twice.

It is the readable definition of the walk, and the truth that tests hold the compiled one to.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from .packed import WORD_BITS, lanes_for
from .policy import MISS_LIMIT, PLUS_TRIES, Policy
from .seeds import splitmix
from .ternary import Terms

_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1


def bucket(value: int) -> int:
    """The hash of a factor value: the top 12 bits of its product with the golden ratio."""
    return (value * 0x9E3779B97F4A7C15 & _MASK) >> 52


class ReferenceWalk:
    """A walker over GF(2) whose slots are a list of [u, v, w] words, or None where free."""

    def __init__(self, start: Terms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        size = WORD_BITS * lanes_for(start.rank + room)
        self.start: list[list[Any] | None] = [*self.unpacked(start), *[None] * (size - start.rank)]
        self.rng = splitmix(seed, index)
        self.steps = self.flips = self.pluses = self.restarts = self.reductions = self.gain_step = 0
        self.go_to_start()
        self.best_rank, self.best = self.rank, self.terms()

    def unpacked(self, start: Any) -> list[list[Any]]:
        """The terms of a start as lists."""
        return [[int(word) for word in term] for term in start.words.T]

    def word(self, f: int, slot: int) -> int:
        """Factor f of a slot as the word that is hashed."""
        return int(self.term(slot)[f])

    @property
    def live(self) -> list[int]:
        return [slot for slot, term in enumerate(self.slots) if term is not None]

    @property
    def rank(self) -> int:
        return len(self.live)

    def terms(self) -> list[tuple[Any, ...]]:
        """The terms in slot order."""
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

    def bucket_members(self, f: int, slot: int) -> list[int]:
        """The other slots whose factor f hashes as that of this slot does."""
        h = bucket(self.word(f, slot))
        return [other for other in self.live if other != slot and bucket(self.word(f, other)) == h]

    def advance(self, goal: int, steps: int) -> None:
        """So many steps, or until the rank is at most `goal`."""
        for _ in range(steps):
            if self.rank <= goal:
                return
            self.step()

    def step(self) -> None:
        self.steps, self.since, self.walk_steps = self.steps + 1, self.since + 1, self.walk_steps + 1
        event = self.try_flip(self.draw())
        self.misses = self.misses + 1 if event == "miss" else 0
        if event == "hit":
            self.settle()
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
        j = partners[(draw & _LOW) * len(partners) >> 32]
        a, b = self.term(i), self.term(j)
        if a[f] != b[f]:
            return "miss"
        g, e = (f + 1) % 3, (f + 2) % 3
        a[g] ^= b[g]
        b[e] ^= a[e]
        self.flips += 1
        if not (a[g] and b[e]):
            return "hit"
        doubles = any(self.agreement(s, t) >= 2 for s in (i, j) for t in self.live if s != t)
        return "hit" if doubles else "flip"

    def agreement(self, i: int, j: int) -> int:
        return sum(x == y for x, y in zip(self.term(i), self.term(j), strict=True))

    def settle(self) -> None:
        """Drop terms with a zero factor and merge pairs that share two factors, until there are none."""
        merged = True
        while merged:
            merged = False
            for slot in self.live:
                if not all(self.term(slot)):
                    self.free(slot)
            for i, j in combinations(range(len(self.slots)), 2):
                if self.slots[i] is None or self.slots[j] is None or self.agreement(i, j) < 2:
                    continue
                a, b = self.term(i), self.term(j)
                f = next((f for f in range(2) if a[f] != b[f]), 2)
                a[f] ^= b[f]
                self.free(j)
                merged = True

    def free(self, slot: int) -> None:
        self.slots[slot] = None
        self.reductions += 1

    def record(self) -> None:
        if self.rank < self.walk_best:
            self.walk_best = self.rank
            self.walk_steps = self.trapped = self.since = 0
        if self.rank < self.best_rank:
            self.best_rank, self.best, self.gain_step = self.rank, self.terms(), self.steps

    def unblock(self, trapped: bool) -> None:
        """A linear dependence if there is one, else a plus, else the start."""
        self.since = self.misses = 0
        if self.reduce_dependent():
            self.settle()
            return
        self.trapped += trapped
        if self.trapped > self.policy.trap or self.walk_steps > self.policy.restart_after:
            self.restart()
        elif self.rank < self.walk_best + self.policy.margin and self.plus():
            self.pluses += 1
            self.settle()
        elif trapped:
            self.restart()

    def restart(self) -> None:
        self.go_to_start()
        self.restarts += 1

    def reduce_dependent(self) -> bool:
        """Drop a term whose factor g is the sum of others' among terms with the same factor f."""
        for f in range(3):
            for first in self.live:
                group = [slot for slot in self.live if self.term(slot)[f] == self.term(first)[f]][:64]
                if group[0] != first or len(group) < 3:
                    continue
                for g in range(3):
                    if g != f and (found := self.dependence(group, g)):
                        *others, last = found
                        for slot in others:
                            self.term(slot)[3 - f - g] ^= self.term(last)[3 - f - g]
                        self.free(last)
                        return True
        return False

    def dependence(self, group: list[int], g: int) -> list[int] | None:
        """The first member whose factor g depends on those before it, with these before it."""
        basis: list[tuple[int, frozenset[int]]] = []
        for slot in group:
            word, members = self.term(slot)[g], frozenset([slot])
            for row, parts in basis:
                if word ^ row < word:
                    word, members = word ^ row, members ^ parts
            if not word:
                return sorted(members)
            basis.append((word, members))
        return None

    def plus(self) -> bool:
        """a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c' for a drawn pair and order of roles."""
        if None not in self.slots or self.rank < 2:
            return False
        for _ in range(PLUS_TRIES):
            live = self.live
            i = live[(self.draw() >> 32) * len(live) >> 32]
            draw = self.draw()
            j = live[(draw >> 32) * len(live) >> 32]
            if self.agreement(i, j):
                continue
            turn = (draw & _LOW) * 6 >> 32
            f = turn >> 1
            g = (f + 1 + (turn & 1)) % 3
            e = 3 - f - g
            a, b = self.term(i), self.term(j)
            third = list(b)
            third[f] = a[f] ^ b[f]
            a[g] ^= b[g]
            b[e] ^= a[e]
            b[f] = a[f]
            self.slots[self.slots.index(None)] = third
            return True
        return False
