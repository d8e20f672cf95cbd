"""Signs of the entries of an arrangement modulo 2, so that as many of its triples as possible hold over the
integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arrangement import Arrangement, IntArray, Triple


class ParityEquations:
    """Linear equations modulo 2 that can all be satisfied, as words: bit 0 is the constant, bit v the variable v."""

    def __init__(self) -> None:
        self._pivots: dict[int, int] = {}

    def add(self, equations: list[int]) -> bool:
        """Add equations if they contradict no others; return whether they were added."""
        new: list[int] = []
        for equation in equations:
            word = self._reduced(equation)
            if word == 1:
                for variable in new:
                    del self._pivots[variable]
                return False
            if word:
                variable = word.bit_length() - 1
                self._pivots[variable] = word
                new.append(variable)
        return True

    def _reduced(self, word: int) -> int:
        while word > 1:
            pivot = self._pivots.get(word.bit_length() - 1)
            if pivot is None:
                return word
            word ^= pivot
        return word

    def solution(self) -> dict[int, int]:
        """Return the values of the variables that the equations determine by those below them; others are 0."""
        values: dict[int, int] = {}
        for variable in sorted(self._pivots):
            word = self._pivots[variable]
            values[variable] = (word & 1) ^ sum(value for v, value in values.items() if word >> v & 1) & 1
        return values


def signed(arrangement: Arrangement, seed: int, tries: int = 20) -> Arrangement:
    """Return the arrangement with signs for which the most triples hold over the integers, of `tries` greedy choices.

    The supports of the vectors stay the same. A triple holds if r1 + s r2 + s' r3 = 0 for signs s and s', and likewise
    for c: where two of its vectors are nonzero, which is everywhere or nowhere, the signs of the two entries differ by
    one that depends on the pair only. These are linear equations modulo 2.
    """
    rng = np.random.default_rng(seed)
    triples = arrangement.triples()
    best, most = ParityEquations(), -1
    for _ in range(tries):
        equations = ParityEquations()
        added = 0
        for number in rng.permutation(len(triples)).tolist():
            added += equations.add(list(_equations(arrangement, triples[number], number)))
        if added > most:
            best, most = equations, added
    values = best.solution()
    rows, cols = ((1 - 2 * _values(array, values, first)) * array for array, first in _variables(arrangement))
    return Arrangement(rows, cols, arrangement.variants)


def _variables(arrangement: Arrangement) -> list[tuple[IntArray, int]]:
    """Return rows and cols, and the variable of the sign of the first entry of each."""
    return [(arrangement.rows, 1), (arrangement.cols, 1 + arrangement.rows.size)]


def _values(array: IntArray, values: dict[int, int], first: int) -> IntArray:
    return np.array([values.get(first + i, 0) for i in range(array.size)]).reshape(array.shape)


def _equations(arrangement: Arrangement, triple: Triple, number: int) -> Iterator[int]:
    """Yield the equations of a triple: entries x and y of two of its vectors have x = -y, times a sign of the pair."""
    free = 1 + arrangement.rows.size + arrangement.cols.size + 4 * number
    for array, first in _variables(arrangement):
        length = array.shape[1]
        # The signs of the second and third vector relative to the first.
        relative = {triple.first: 0, triple.second: 1 << free, triple.third: 1 << free + 1}
        for i in range(length):
            word = 1
            for vector, sign in relative.items():
                if array[vector, i]:
                    word ^= sign | 1 << first + vector * length + i
            if word > 1:
                yield word
        free += 2
