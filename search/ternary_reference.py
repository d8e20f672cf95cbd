"""The flip walk over {-1, 0, 1} in plain Python, step for step what `walk.advance` does over that ring.

A term is [u, v, w, sign] with factors as tuples of coefficients whose first nonzero one is 1.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from .policy import PLUS_TRIES
from .reference import ReferenceWalk

Coefficients = tuple[int, ...]

_LOW = (1 << 32) - 1


def canonical(values: Coefficients) -> tuple[Coefficients, int]:
    """The factor with a positive first coefficient, and the sign taken out; zero stays with sign 1."""
    sign = next((value for value in values if value), 1)
    return tuple(sign * value for value in values), sign


def combined(left: Coefficients, scale: int, right: Coefficients) -> Coefficients | None:
    """left + scale right, or None where a coefficient would leave {-1, 0, 1}."""
    values = tuple(x + scale * y for x, y in zip(left, right, strict=True))
    return values if max(map(abs, values)) <= 1 else None


def packed(values: Coefficients) -> int:
    """The word of a factor: positive coefficients in the low half, negative ones in the high half."""
    return sum(1 << (place + (32 if value < 0 else 0)) for place, value in enumerate(values) if value)


class TernaryReferenceWalk(ReferenceWalk):
    """A walker over {-1, 0, 1}."""

    def unpacked(self, start: Any) -> list[list[Any]]:
        terms = []
        for factors in zip(*(dense.tolist() for dense in start.dense()), strict=True):
            forms = [canonical(tuple(factor)) for factor in factors]
            sign = forms[0][1] * forms[1][1] * forms[2][1]
            terms.append([*(values for values, _ in forms), sign])
        return terms

    def word(self, f: int, slot: int) -> int:
        return packed(self.term(slot)[f])

    def agreement(self, i: int, j: int) -> int:
        return sum(x == y for x, y in zip(self.term(i)[:3], self.term(j)[:3], strict=True))

    def set_factor(self, slot: int, f: int, values: Coefficients) -> None:
        """Set a factor to a value that need not be canonical."""
        term = self.term(slot)
        term[f], sign = canonical(values)
        term[3] *= sign

    def try_flip(self, draw: int) -> str:
        active = [(f, slot) for f in range(3) for slot in self.live if self.bucket_members(f, slot)]
        if not active:
            return "none"
        f, i = active[(draw >> 32) * len(active) >> 32]
        partners = self.bucket_members(f, i)
        pick = (draw & _LOW) * len(partners)
        j, first = partners[pick >> 32], -1 if pick >> 31 & 1 else 1
        a, b = self.term(i), self.term(j)
        if a[f] != b[f]:
            return "miss"
        g, e = (f + 1) % 3, (f + 2) % 3
        for t in (first, -first):
            left, right = combined(a[g], t, b[g]), combined(b[e], -t * a[3] * b[3], a[e])
            if left is not None and right is not None:
                break
        else:
            return "miss"
        self.set_factor(i, g, left)
        self.set_factor(j, e, right)
        self.flips += 1
        if not (any(left) and any(right)):
            return "hit"
        doubles = any(self.agreement(s, t) >= 2 for s in (i, j) for t in self.live if s != t)
        return "hit" if doubles else "flip"

    def settle(self) -> None:
        """Drop terms with a zero factor and merge pairs that share two factors where the sum stays ternary."""
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
                total = combined(a[f], a[3] * b[3], b[f])
                if total is not None:
                    self.set_factor(i, f, total)
                    self.free(j)
                    merged = True

    def reduce_dependent(self) -> bool:
        return False

    def plus(self) -> bool:
        """a b c + a' b' c' = a (b + p b') c + a b' (q c' - p c) + (a' - q a) b' c', signs in c and c'."""
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
            for n in range(4):
                p, q = (-1 if (draw ^ n) >> bit & 1 else 1 for bit in range(2))
                first = combined(a[g], p, b[g])
                second = combined(tuple(q * b[3] * value for value in b[e]), -p * a[3], a[e])
                third = combined(b[f], -q, a[f])
                if first is None or second is None or third is None:
                    continue
                new, slot = list(b), self.slots.index(None)
                self.slots[slot] = new
                self.set_factor(slot, f, third)
                self.set_factor(i, g, first)
                b[f], b[3] = a[f], 1
                self.set_factor(j, e, second)
                return True
        return False
