"""Symmetric flip walks in plain Python, equal step by step to `walk.advance` on orbits."""

from __future__ import annotations

from typing import Any

from lcma.search.flipgraph.policy import Policy
from lcma.search.terms.orbits import SymmetricTerms
from lcma.search.terms.packed import lanes_for
from lcma.search.terms.words import WORD_BITS

from .flip_reference import LOW, ReferenceWalk, bucket

Node = tuple[int, int]


class OrbitReferenceWalk(ReferenceWalk):
    """A walker on orbits [a, b, c], slots of a list, and a list of cubes; a node is (position, slot).

    `turns` is the order of the group: 2 for pairs of an involution, 3 for the cyclic shift, 6 for the shift and a
    reversal. With an involution an orbit [a, b, c] represents its image too, unless it is its own image.
    """

    def __init__(
        self,
        start: SymmetricTerms,
        seed: int,
        index: int = 0,
        room: int = 0,
        policy: Policy | None = None,
    ) -> None:
        self.policy, self.turns = policy or Policy(), start.order
        self.reverse, self.shifts = self.turns != 3, self.turns != 2
        orbits = [[int(word) for word in orbit] for orbit in start.words.T]
        size = WORD_BITS * lanes_for(len(orbits) + room)
        self.start = [*orbits, *[None] * (size - len(orbits))]
        self.first_cubes = [int(word) for word in start.cubes]
        self.begin(seed, index)

    @property
    def full(self) -> int:
        return 0

    @property
    def rank(self) -> int:
        few = 3 if self.shifts else 1
        return sum(2 * few if self.paired(slot) else few for slot in self.live) + len(self.cubes)

    def go_to_start(self) -> None:
        self.cubes = list(self.first_cubes)
        super().go_to_start()

    def terms(self) -> list[tuple[Any, ...]]:
        return [tuple(self.term(slot)) for slot in self.live] + [(cube,) for cube in self.cubes]

    def at(self, node: Node) -> int:
        place, slot = node
        return int(self.term(slot)[place % 3])

    def mirrored(self, word: int) -> int:
        return int(f"{word:064b}"[::-1], 2) if self.reverse else word

    def odd(self, slot: int) -> list[int]:
        """Return the positions whose matrix is not its own reversal."""
        return [place for place, word in enumerate(self.term(slot)) if self.mirrored(word) != word]

    def paired(self, slot: int) -> bool:
        """Return whether a slot represents twice as many terms as one that is its own image."""
        return bool(self.odd(slot))

    def change(self, slot: int, place: int, word: int, paired: bool) -> None:
        """Add to a matrix; terms that become equal in pairs cancel, so the orbit is set to zero."""
        self.term(slot)[place % 3] ^= word
        if self.reverse and paired and not self.paired(slot):
            self.term(slot)[place % 3] = 0

    def hashed(self, node: Node) -> int:
        word = self.at(node)
        return bucket(min(word, self.mirrored(word)))

    def partners(self, node: Node) -> list[Node]:
        """Return the other nodes whose matrix has the same hash, in node order."""
        h = self.hashed(node)
        nodes = [(place, slot) for place in (range(3) if self.shifts else [node[0]]) for slot in self.live]
        return [other for other in nodes if other != node and self.hashed(other) == h]

    def try_flip(self, draw: int) -> str:
        active = [(place, slot) for place in range(3) for slot in self.live if self.partners((place, slot))]
        if not active:
            return "none"
        i = active[(draw >> 32) * len(active) >> 32]
        partners = self.partners(i)
        pick = (draw & LOW) * len(partners)
        j, coin = partners[pick >> 32], pick >> 31 & 1
        equal, mirror = self.at(i) == self.at(j), self.reverse and self.at(i) == self.mirrored(self.at(j))
        if not (equal or mirror) or i[1] == j[1]:
            return "miss"
        (p, s), (q, t) = i, j
        turned = bool(mirror and (coin or not equal))
        b, c = self.at((q + 1, t)), self.at((p + 2, s))
        if turned:
            b, c = self.mirrored(b), self.mirrored(c)
        six_s, six_t = self.paired(s), self.paired(t)
        # An orbit that is its own reversal adds both images of a matrix of one that is not.
        self.change(s, p + 1, b ^ self.mirrored(b) if six_t and not six_s else b, six_s)
        self.change(t, q + 2, c ^ self.mirrored(c) if six_s and not six_t else c, six_t)
        self.flips += 1
        if any(not all(self.term(u)) or self.can_shrink(u) for u in (s, t)):
            return "hit"
        doubles = any(self.common(u, slot) for u in (s, t) for slot in self.live if slot != u)
        return "hit" if doubles else "flip"

    def common(self, i: int, j: int) -> tuple[int, int] | None:
        """Return (odd position, summand for it) if orbit j, shifted and reversed, equals orbit i in two positions."""
        if self.reverse and self.paired(i) != self.paired(j):
            return None
        for turn in range(self.turns):
            others = self.image(turn, j)
            equal = [self.at((p, i)) == others[p] for p in range(3)]
            if sum(equal) >= 2:
                odd = equal.index(False) if False in equal else 2
                return odd, others[odd]
        return None

    def image(self, turn: int, slot: int) -> list[int]:
        """Return the matrices of an orbit, shifted and reversed."""
        words = [self.at((p + turn * self.shifts, slot)) for p in range(3)]
        return [self.mirrored(word) for word in words] if turn >= (3 if self.shifts else 1) else words

    def can_shrink(self, slot: int) -> bool:
        """Return whether an orbit can be replaced by a smaller one, if the policy allows it.

        It has three equal matrices that are a cube, or exactly one matrix that is not its own reversal.
        """
        return self.policy.orbits == "any" and (self.is_cube(slot) or len(self.odd(slot)) == 1)

    def is_cube(self, slot: int) -> bool:
        return self.shifts and len(set(self.term(slot))) == 1

    def shrink(self, slot: int) -> bool:
        """Drop an orbit with a zero matrix, or replace it by cubes or a smaller orbit.

        Returns whether another pass is needed.
        """
        orbit, odd = self.term(slot), self.odd(slot)
        if all(orbit) and not self.can_shrink(slot):
            return False
        if all(orbit) and self.is_cube(slot):
            for cube in {orbit[0], self.mirrored(orbit[0])}:
                (self.cubes.remove if cube in self.cubes else self.cubes.append)(cube)
            self.free(slot)
        elif not all(orbit):
            self.free(slot)
        elif len(odd) == 1:
            orbit[odd[0]] ^= self.mirrored(orbit[odd[0]])
        return len(odd) == 1 and self.shifts

    def reduce(self) -> None:
        """Replace orbits by smaller ones where possible, and merge those that share two matrices."""
        merged = True
        while merged:
            shrunk = [self.shrink(slot) for slot in self.live]
            merged = any(shrunk)
            for i in range(len(self.slots)):
                for j in range(i + 1, len(self.slots)):
                    if self.slots[i] is None or self.slots[j] is None:
                        continue
                    found = self.common(i, j)
                    if found:
                        self.change(i, *found, self.paired(i))
                        self.free(j)
                        merged = True

    def reduce_dependent(self) -> bool:
        return False

    def plus(self) -> bool:
        """Split two orbits: a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c'.

        The second orbit is shifted and reversed by the draw. Returns False if no pair allows it.
        """
        if None not in self.slots or (self.shifts and len(self.live) < 2):
            return False
        for i, j, draw in self.drawn_pairs():
            turn, order = divmod((draw & LOW) * 6 * self.turns >> 32, 6)
            other = self.image(turn, j)
            a = self.term(i)
            if i == j or self.paired(i) != self.paired(j) or any(x == y for x, y in zip(a, other, strict=True)):
                continue
            f = order // 2
            g = (f + 1 + order % 2) % 3
            e = 3 - f - g
            paired, third = self.paired(i), list(other)
            third[f] ^= a[f]
            a[g] ^= other[g]
            other[e] ^= a[e]
            other[f] = a[f]
            new = self.slots.index(None)
            self.slots[j], self.slots[new] = other, third
            for slot in (i, j, new):
                if self.reverse and paired and not self.paired(slot):
                    self.term(slot)[0] = 0
            return True
        return False
