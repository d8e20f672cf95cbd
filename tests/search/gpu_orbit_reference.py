"""The walk on orbits under a cyclic shift and a reversal in plain Python; see `gpu_reference`."""

from __future__ import annotations

import numpy as np

from lcma.search.flipgraph.gpu.layout import MAX_CUBES, Words

from .gpu_reference import ZERO, GpuReferenceWalk, Value


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
