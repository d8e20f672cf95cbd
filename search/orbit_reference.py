"""The symmetric flip walk in plain Python, step for step what `walk.advance` does on orbits."""

from __future__ import annotations

from typing import Any

from .orbits import OrbitTerms
from .packed import WORD_BITS, lanes_for
from .policy import PLUS_TRIES, Policy
from .reference import ReferenceWalk, bucket
from .seeds import splitmix

_LOW = (1 << 32) - 1

Node = tuple[int, int]


class OrbitReferenceWalk(ReferenceWalk):
    """A walker on orbits [a, b, c], slots of a list, and a list of cubes; a node is (place, slot)."""

    def __init__(
        self, start: OrbitTerms, seed: int, index: int = 0, room: int = 0, policy: Policy | None = None
    ) -> None:
        self.policy = policy or Policy()
        size = WORD_BITS * lanes_for(start.orbits.shape[1] + room)
        orbits = [[int(word) for word in orbit] for orbit in start.orbits.T]
        self.start = [*orbits, *[None] * (size - len(orbits))]
        self.first_cubes = [int(word) for word in start.cubes]
        self.rng = splitmix(seed, index)
        self.steps = self.flips = self.pluses = self.restarts = self.reductions = self.gain_step = 0
        self.go_to_start()
        self.best_rank, self.best = self.rank, self.terms()

    @property
    def rank(self) -> int:
        return 3 * len(self.live) + len(self.cubes)

    def go_to_start(self) -> None:
        self.cubes = list(self.first_cubes)
        super().go_to_start()

    def terms(self) -> list[tuple[Any, ...]]:
        return [tuple(self.term(slot)) for slot in self.live] + [(cube,) for cube in self.cubes]

    def at(self, node: Node) -> int:
        place, slot = node
        return int(self.term(slot)[place % 3])

    def partners(self, node: Node) -> list[Node]:
        """The other nodes whose matrix hashes as this one does, in node order."""
        h = bucket(self.at(node))
        nodes = [(place, slot) for place in range(3) for slot in self.live]
        return [other for other in nodes if other != node and bucket(self.at(other)) == h]

    def try_flip(self, draw: int) -> str:
        active = [(place, slot) for place in range(3) for slot in self.live if self.partners((place, slot))]
        if not active:
            return "none"
        i = active[(draw >> 32) * len(active) >> 32]
        partners = self.partners(i)
        j = partners[(draw & _LOW) * len(partners) >> 32]
        if self.at(i) != self.at(j) or i[1] == j[1]:
            return "miss"
        (p, s), (q, t) = i, j
        self.term(s)[(p + 1) % 3] ^= self.at((q + 1, t))
        self.term(t)[(q + 2) % 3] ^= self.at((p + 2, s))
        self.flips += 1
        touched = [self.term(s), self.term(t)]
        if any(not all(orbit) or len(set(orbit)) == 1 for orbit in touched):
            return "hit"
        doubles = any(self.common(u, slot) for u in (s, t) for slot in self.live if slot != u)
        return "hit" if doubles else "flip"

    def common(self, i: int, j: int) -> tuple[int, int] | None:
        """(turn, odd place) where orbit j, turned, agrees with orbit i in two places, or in all."""
        for turn in range(3):
            equal = [self.at((p, i)) == self.at((p + turn, j)) for p in range(3)]
            if sum(equal) >= 2:
                return turn, equal.index(False) if False in equal else 2
        return None

    def settle(self) -> None:
        """Drop orbits with a zero, make cubes of orbits of three equal matrices, merge orbits that share two."""
        merged = True
        while merged:
            merged = False
            for slot in self.live:
                orbit = self.term(slot)
                if all(orbit) and len(set(orbit)) == 1:
                    (self.cubes.remove if orbit[0] in self.cubes else self.cubes.append)(orbit[0])
                    self.free(slot)
                elif not all(orbit):
                    self.free(slot)
            for i in range(len(self.slots)):
                for j in range(i + 1, len(self.slots)):
                    if self.slots[i] is None or self.slots[j] is None:
                        continue
                    found = self.common(i, j)
                    if found:
                        turn, odd = found
                        self.term(i)[odd] ^= self.at((odd + turn, j))
                        self.free(j)
                        merged = True

    def reduce_dependent(self) -> bool:
        return False

    def plus(self) -> bool:
        """a b c + a' b' c' = a (b + b') c + a b' (c + c') + (a + a') b' c', the second orbit turned."""
        if None not in self.slots or len(self.live) < 2:
            return False
        for _ in range(PLUS_TRIES):
            live = self.live
            i = live[(self.draw() >> 32) * len(live) >> 32]
            draw = self.draw()
            j = live[(draw >> 32) * len(live) >> 32]
            turn, order = divmod((draw & _LOW) * 18 >> 32, 6)
            if i == j or any(self.at((p, i)) == self.at((p + turn, j)) for p in range(3)):
                continue
            f = order // 2
            g = (f + 1 + order % 2) % 3
            e = 3 - f - g
            a, b = self.term(i), self.term(j)
            third = [0, 0, 0]
            third[f] = a[f] ^ b[(f + turn) % 3]
            third[g], third[e] = b[(g + turn) % 3], b[(e + turn) % 3]
            a[g] ^= b[(g + turn) % 3]
            b[(e + turn) % 3] ^= a[e]
            b[(f + turn) % 3] = a[f]
            self.slots[self.slots.index(None)] = third
            return True
        return False
