"""The walk of one walker in plain Python, equal step by step to the kernel; values are lists, sets are sets.

It is the readable definition of the walk, and the reference in tests of the compiled one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lcma.schemes_db import Scheme
from lcma.search.flipgraph.gpu.kernel import thresholds_of
from lcma.search.flipgraph.gpu.layout import MAX_CUBES, WalkerLayout, Words
from lcma.search.flipgraph.gpu.moves import PLUS_TRIES
from lcma.search.flipgraph.gpu.packing import bits_of, decode, encode, pack
from lcma.search.flipgraph.policy import MISS_LIMIT, Policy

_LOW = (1 << 32) - 1

Value = tuple[int, int]
"""The bits of the 1s and of the -1s of a factor."""

ZERO: Value = (0, 0)


class GpuReferenceWalk:
    """Walker `index` of a fleet from one start, with the generator's state `rng`."""

    def __init__(
        self, layout: WalkerLayout, start: Scheme, policy: Policy, rng: int, index: int = 0, goal: int = 0
    ) -> None:
        self.layout, self.form, self.policy = layout, layout.form, policy
        self.rng, self.index, self.goal = rng, index, goal
        self.thresholds = thresholds_of(policy).tolist()
        self.slots = set(self.form.slot_ids.tolist())
        self.numbers = range(32 * self.form.masks)
        self.prints: dict[Value, int] = {}
        self.start = pack(layout, start)
        self.flips = self.steps = self.pluses = self.restarts = 0
        self.load(self.start)
        self.best, self.lowest = self.scheme_terms(), self.score

    def load(self, state: Words) -> None:
        """Load a state and reset counters, as at the beginning of a launch with an origin."""
        self.take(state)
        self.walk_best = self.rank
        self.since = self.misses = self.walk_steps = 0

    def take(self, state: Words) -> None:
        """Load a state: every slot with a nonzero fingerprint is active."""
        plus, minus, signs = bits_of(self.layout, state)
        used = self._used(state)
        self.values = [[ZERO] * len(self.numbers) for _ in range(3)]
        self.signs = [0] * len(self.numbers)
        for place, slot in enumerate(used):
            for f in range(3):
                self.values[f][slot] = int(plus[f, place]), int(minus[f, place])
            self.signs[slot] = int(signs[place])
        self.cubes: list[int] = [0] * MAX_CUBES
        if self.form.symmetric:
            whole = state[self.form.cubes :].view(np.uint64)
            parts = np.stack([(whole >> np.uint64(16 * p)) & np.uint64(0xFFFF) for p in range(self.form.planes)])
            self.cubes = decode(self.layout, parts)[0].tolist()
        self.active = [{slot for slot in used if self.print_of(self.values[f][slot])} for f in range(3)]

    def _used(self, state: Words) -> list[int]:
        slots = self.form.slot_ids
        rows = (slots >> 5) * 16 + (slots & 15)
        words = state[self.form.places[:, :, rows]] >> (slots & 16).astype(np.uint32)
        return slots[((words & np.uint32(0xFFFF)) != 0).any(axis=0).all(axis=0)].tolist()

    def relaunch(self) -> None:
        """Make all slots with a nonzero fingerprint active, as a new launch does."""
        for f in range(3):
            self.active[f] = {slot for slot in self.numbers if self.print_of(self.values[f][slot])}

    def print_of(self, value: Value) -> int:
        """Return the fingerprint of a value, cached: a scan needs that of every slot."""
        if value not in self.prints:
            plus, minus = (np.array([part], dtype=np.uint64) for part in value)
            self.prints[value] = int(encode(self.layout, plus, minus)[0, 0])
        return self.prints[value]

    @property
    def live(self) -> list[int]:
        return [slot for slot in self.numbers if self.values[0][slot] != ZERO]

    @property
    def rank(self) -> int:
        return sum(map(self.weight, self.live)) + sum(cube != 0 for cube in self.cubes)

    def weight(self, slot: int) -> int:
        """Return the number of terms that a slot represents."""
        return 3 if self.form.symmetric else 1

    def image(self, value: Value, draw: int) -> Value:
        """Return a matrix of the second orbit of a plus."""
        return value

    def reduce(self, slot: int, terms: int) -> None:
        """Reduce an orbit that represented `terms` terms before its last change: only with an involution."""

    @property
    def cost(self) -> int:
        return sum(self.cost_of(slot) for slot in self.live)

    @property
    def score(self) -> int:
        return self.policy.rank_weight * self.rank + self.policy.cost_weight * self.cost

    def cost_of(self, slot: int) -> int:
        """Return the cost of a term beside the rank."""
        supports = [self.values[f][slot][0] | self.values[f][slot][1] for f in range(3)]
        if self.policy.cost == "full":
            masks = self.layout.halves.tolist()
            return int(not any(support & ~masks[2 * f + s] == 0 for f, support in enumerate(supports) for s in (0, 1)))
        return 0

    def scheme_terms(self) -> list[tuple[Value | int, ...]]:
        """Return the terms by slot, factors and sign; then the cubes."""
        terms: list[tuple[Value | int, ...]] = [
            (slot, *(self.values[f][slot] for f in range(3)), self.signs[slot]) for slot in self.live
        ]
        return [*terms, tuple(cube for cube in self.cubes if cube)]

    def draw(self) -> int:
        self.rng = (self.rng * 6364136223846793005 + 2 * self.index + 1) % (1 << 64)
        return self.rng >> 32

    @staticmethod
    def peel(draw: int, count: int) -> tuple[int, int]:
        """Return a number below `count`, and the rest of the draw."""
        return draw * count >> 32, draw * count & _LOW

    @staticmethod
    def pick(slots: Iterable[int], draw: int) -> tuple[int, int]:
        """Return the first of some slots of a word from a drawn index on, cyclically, and the rest of the draw."""
        return min(slots, key=lambda slot: (slot - (draw >> 27)) % 32), draw << 5 & _LOW

    def advance(self, steps: int) -> None:
        """Run a launch without an origin."""
        self.relaunch()
        for _ in range(steps):
            if self.lowest <= self.goal:
                return
            self.step()

    def step(self) -> None:
        self.steps, self.since, self.walk_steps = self.steps + 1, self.since + 1, self.walk_steps + 1
        idle = self.try_flip(self.draw())
        self.misses = self.misses + 1 if idle else 0
        stuck = self.misses > MISS_LIMIT
        if stuck or self.since >= self.policy.plus_after:
            self.since = self.misses = 0
            high = self.rank >= self.walk_best + self.policy.margin
            if (stuck and (self.rank <= self.policy.trap_rank or high)) or self.walk_steps >= self.policy.restart_after:
                self.draw()
                self.load(self.start)
                self.restarts += 1
            elif not high:
                self.pluses += self.plus()
        if self.rank < self.walk_best:
            self.walk_best, self.walk_steps, self.since = self.rank, 0, 0
        if self.score < self.lowest:
            self.best, self.lowest = self.scheme_terms(), self.score

    def scan(self, f: int, slot: int, value: int) -> list[set[int]]:
        """Return for each mask word the other slots with this fingerprint, of factor f or, if symmetric, of all."""
        factors = range(3) if self.form.symmetric else [f]
        return [
            {
                other
                for other in range(32 * q, 32 * q + 32)
                if other in self.slots and other != slot and self.print_of(self.values[p][other]) == value
            }
            for p in factors
            for q in range(self.form.masks)
        ]

    def try_flip(self, draw: int) -> bool:
        """Try a flip; return True if no slot is active in the drawn factor."""
        f = 0
        if not self.form.symmetric:
            f, draw = self.peel(draw, 3)
        factors = range(3) if self.form.symmetric else [f]
        choices = [(p, slot) for p in factors for slot in sorted(self.active[p])]
        if not choices:
            return True
        k, draw = self.peel(draw, len(choices))
        f, some = choices[k]
        i, draw = self.pick([slot for p, slot in choices if p == f and slot // 32 == some // 32], draw)
        value = self.print_of(self.values[f][i])
        sets = self.scan(f, i, value) if value else []
        if not any(sets):
            self.active[f].discard(i)
            return False
        begin, draw = self.peel(draw, len(sets))
        place = begin if sets[begin] else next(p for p, found in enumerate(sets) if found)
        j, draw = self.pick(sets[place], draw)
        q = place // self.form.masks if self.form.symmetric else f
        self.flip(f, i, q, j, draw)
        return False

    def flip(self, f: int, i: int, q: int, j: int, draw: int) -> None:
        """Flip terms i and j, whose factors f and q have the same fingerprint, if they are equal and it is accepted."""
        a, g, e, gq, eq = self.values[f][i], (f + 1) % 3, (f + 2) % 3, (q + 1) % 3, (q + 2) % 3
        if a != self.values[q][j]:
            return
        b, c, bj, cj = self.values[g][i], self.values[e][i], self.values[gq][j], self.values[eq][j]
        against = 1 ^ self.signs[i] ^ self.signs[j]
        for minus in (draw >> 31, draw >> 31 ^ 1):
            left, right = self.add(b, bj, minus), self.add(cj, c, minus ^ against)
            if left is not None and right is not None:
                break
        else:
            return
        before = self.values, self.signs
        old = self.cost_of(i) + self.cost_of(j)
        self.values, self.signs = [list(row) for row in self.values], list(self.signs)
        self.signs[i] ^= self.set_value(g, i, left)
        self.signs[j] ^= self.set_value(eq, j, right)
        gone = [slot for slot, value in ((i, left), (j, right)) if value == ZERO]
        rise = sum(self.cost_of(slot) for slot in (i, j) if slot not in gone) - old
        if rise > 0 and (draw >> 15 & 0xFFFF) >= self.thresholds[min(rise, 15)]:
            self.values, self.signs = before
            return
        self.flips += 1
        for slot in gone:
            self.drop(slot)
        self.enter(g, i)
        self.enter(eq, j)
        if self.form.symmetric and not gone:
            for slot in (i, j):
                cube = self.values[0][slot]
                if cube == self.values[1][slot] == self.values[2][slot] != ZERO:
                    self.into_cubes(slot, [cube[0]])

    def add(self, left: Value, right: Value, minus: int) -> Value | None:
        """Return the sum or difference; None if it has a coefficient outside {-1, 0, 1}."""
        if not self.form.ternary:
            return left[0] ^ right[0], 0
        pos, neg = right[::-1] if minus else right
        if left[0] & pos or left[1] & neg:
            return None
        return (left[0] & ~neg) | (pos & ~left[1]), (left[1] & ~pos) | (neg & ~left[0])

    def set_value(self, f: int, slot: int, value: Value) -> int:
        """Set a factor with its canonical sign; return 1 if it was negated."""
        support = value[0] | value[1]
        turned = int(bool(value[1] & support & -support))
        self.values[f][slot] = value[::-1] if turned else value
        return turned

    def enter(self, f: int, slot: int) -> None:
        """Update the active sets for a new value."""
        mine = self.print_of(self.values[f][slot])
        met = False
        if mine:
            factors = range(3) if self.form.symmetric else [f]
            for place, found in enumerate(self.scan(f, slot, mine)):
                self.active[factors[place // self.form.masks]] |= found
                met = met or bool(found)
        (self.active[f].add if met else self.active[f].discard)(slot)

    def drop(self, slot: int) -> None:
        for f in range(3):
            self.values[f][slot] = ZERO
            self.active[f].discard(slot)
        self.signs[slot] = 0

    def into_cubes(self, slot: int, cubes: list[int]) -> None:
        """Replace an orbit of three equal factors by cubes, which cancel equal ones, if there is room for all."""
        before = list(self.cubes)
        for cube in cubes:
            if cube in self.cubes:
                self.cubes[self.cubes.index(cube)] = 0
            elif 0 in self.cubes:
                self.cubes[self.cubes.index(0)] = cube
            else:
                self.cubes = before
                return
        self.drop(slot)

    def plus(self) -> bool:
        """Split two terms into three; return False if no pair allows it, or if the rank did not increase."""
        free = [slot for slot in self.numbers if slot in self.slots and self.values[0][slot] == ZERO]
        if not free:
            return False
        for _ in range(PLUS_TRIES):
            draw = self.draw()
            i, draw = self.peel(draw, len(self.numbers))
            j, draw = self.peel(draw, len(self.numbers))
            if i == j or self.values[0][i] == ZERO or self.values[0][j] == ZERO:
                continue
            f, draw = self.peel(draw, 3)
            q = f
            if self.form.symmetric:
                q, draw = self.peel(draw, 3)
            step = 2 if draw >> 31 else 1
            roles = [(f + step * n) % 3 for n in range(3)]
            others = [(q + step * n) % 3 for n in range(3)]
            a, b, c = (self.values[p][i] for p in roles)
            aj, bj, cj = (self.image(self.values[p][j], draw) for p in others)
            terms, before = self.weight(i), self.rank
            if a == aj or b == bj or c == cj or terms != self.weight(j):
                continue
            si, sj = self.signs[i], self.signs[j]
            for n in range(4):
                p, s = (draw >> 29 ^ n) & 1, (draw >> 29 ^ n) >> 1 & 1
                first, second, third = self.add(b, bj, p), self.add(cj, c, 1 ^ p ^ s ^ si ^ sj), self.add(aj, a, 1 ^ s)
                if first is not None and second is not None and third is not None:
                    slot = free[0]
                    self.turn_sign(i, self.put(roles[1], i, first))
                    s ^= self.put(others[0], j, a)
                    if self.form.half:
                        self.put(others[1], j, bj)
                    self.turn_sign(j, s ^ self.put(others[2], j, second))
                    turned = [self.put(role, slot, value) for role, value in zip(roles, (third, bj, cj), strict=True)]
                    self.turn_sign(slot, sj ^ turned[0] ^ turned[1] ^ turned[2])
                    for one in (i, j, slot):
                        self.reduce(one, terms)
                    return self.rank > before
        return False

    def turn_sign(self, slot: int, by: int) -> None:
        """Multiply the sign of a term by (-1)^by; modulo 2 there are no signs."""
        self.signs[slot] ^= by if self.form.ternary else 0

    def put(self, f: int, slot: int, value: Value) -> int:
        turned = self.set_value(f, slot, value)
        self.enter(f, slot)
        return turned


class ReversibleReferenceWalk(GpuReferenceWalk):
    """A walker whose slots represent an orbit and its reversal: see `Form.weights`."""

    def take(self, state: Words) -> None:
        super().take(state)
        if self.form.symmetric:
            self.cubes = state[self.form.cubes :][: 2 * MAX_CUBES].view(np.uint64).tolist()

    def reversal(self, value: Value) -> Value:
        low = (1 << self.form.half) - 1
        return value[0] >> self.form.half | (value[0] & low) << self.form.half, 0

    def odd(self, slot: int) -> list[int]:
        """Return the positions whose matrix is not its own reversal."""
        return [f for f in range(3) if self.reversal(self.values[f][slot]) != self.values[f][slot]]

    def weight(self, slot: int) -> int:
        return self.form.weights[bool(self.odd(slot))]

    def flip(self, f: int, i: int, q: int, j: int, draw: int) -> None:
        a, g, e, gq, eq = self.values[f][i], (f + 1) % 3, (f + 2) % 3, (q + 1) % 3, (q + 2) % 3
        equal, mirrored = a == self.values[q][j], a == self.reversal(self.values[q][j])
        if not equal and not mirrored:
            return
        terms, others = self.weight(i), self.weight(j)
        b, c = self.values[gq][j], self.values[e][i]
        if mirrored and (not equal or draw >> 31):
            b, c = self.reversal(b), self.reversal(c)
        # An orbit that is its own reversal adds both images of a matrix of one that is not.
        b = (b[0] ^ self.reversal(b)[0], 0) if terms < others else b
        c = (c[0] ^ self.reversal(c)[0], 0) if others < terms else c
        self.values[g][i] = (self.values[g][i][0] ^ b[0], 0)
        self.values[eq][j] = (self.values[eq][j][0] ^ c[0], 0)
        self.flips += 1
        self.enter(g, i)
        self.enter(eq, j)
        self.reduce(i, terms)
        self.reduce(j, others)

    def image(self, value: Value, draw: int) -> Value:
        return self.reversal(value) if draw >> 30 & 1 else value

    def reduce(self, slot: int, terms: int) -> None:
        """Reduce an orbit that represented `terms` terms before its last change."""
        one, two = self.form.weights
        odd = self.odd(slot)
        if any(self.values[f][slot] == ZERO for f in range(3)) or (terms == two and not odd):
            self.drop(slot)
            return
        if self.form.whole:
            return
        if terms == two and len(odd) == 1:
            value = self.values[odd[0]][slot]
            self.put(odd[0], slot, (value[0] ^ self.reversal(value)[0], 0))
            terms = one
        cube = self.values[0][slot]
        if self.form.symmetric and cube == self.values[1][slot] == self.values[2][slot]:
            self.into_cubes(slot, [cube[0]] if terms == one else [cube[0], self.reversal(cube)[0]])
