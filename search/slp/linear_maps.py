"""Minimisation of the additions of one linear map, by pair sharing (`paar`) or, if ternary, by `boyar_peralta`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...schemes_db.factor import IntArray
from ..seeds import splitmix
from ..terms.words import HALF_BITS

Terms = tuple[tuple[int, int], ...]
"""(coefficient, value) pairs."""


@dataclass(frozen=True)
class ProgramLines:
    """A straight-line program: line k is a sum over values; values are the inputs, then the lines.

    `outputs` are the (coefficient, value) of every row of the map; value -1 is zero.
    """

    inputs: int
    lines: tuple[Terms, ...]
    outputs: Terms

    @property
    def additions(self) -> int:
        return sum(len(line) - 1 for line in self.lines if line)

    def transposed(self) -> ProgramLines:
        """Return the transposed program: reversed, with inputs and outputs exchanged and uses turned into terms.

        It has outputs - inputs (of this program) more additions than this one (Tellegen's principle).
        """
        values = self.inputs + len(self.lines)
        uses: list[list[tuple[int, int]]] = [[] for _ in range(values)]
        for row, (coefficient, value) in enumerate(self.outputs):
            if value >= 0:
                uses[value].append((coefficient, row))
        made: list[Terms] = []
        place: dict[int, tuple[int, int]] = {}
        rows = len(self.outputs)
        for value in reversed(range(values)):
            place[value] = coefficient, source = _sum_of(tuple(uses[value]), made, rows)
            if value >= self.inputs and source >= 0:
                for factor, used in self.lines[value - self.inputs]:
                    uses[used].append((factor * coefficient, source))
        return ProgramLines(rows, tuple(made), tuple(place[value] for value in range(self.inputs)))


def _sum_of(terms: Terms, lines: list[Terms], inputs: int) -> tuple[int, int]:
    """Return the (coefficient, value) of a sum, which becomes a line if it has several terms."""
    if len(terms) < 2:
        return terms[0] if terms else (0, -1)
    lines.append(terms)
    return 1, inputs + len(lines) - 1


class PairedMap:
    """A map with any small coefficients: pairs that several rows contain are computed once.

    `additions` are those of the best lines so far, -1 before the first.
    """

    def __init__(self, matrix: IntArray, seed: int, index: int) -> None:
        self._matrix, self._columns = matrix, matrix.shape[1]
        self._capacity = self._columns + int(np.count_nonzero(matrix))
        self._capacity = min(self._capacity, self._columns + 4 * max(matrix.shape) + 16)
        self._start = np.zeros((len(matrix), self._capacity), dtype=np.int8)
        self._start[:, : self._columns] = matrix
        largest = max(1, int(np.abs(matrix).max(initial=0)))
        self._table, self._pairs = _ratios(largest)
        self._best = np.zeros((self._capacity, 3), dtype=np.int32)
        self._steps, self.additions = 0, -1
        self._rng = np.array([splitmix(seed, index)], dtype=np.uint64)

    def improve(self, runs: int) -> None:
        """Run `runs` more times; the result depends only on the seed and the number of runs."""
        from .paar import Sharing, shared_often

        counts = np.zeros((self._capacity, self._capacity, len(self._pairs)), dtype=np.int16)
        places = np.zeros(self._capacity, dtype=np.int32)
        sharing = Sharing(self._start.copy(), self._table, self._pairs, counts, places)
        found = self._steps, self.additions
        self._steps, self.additions = shared_often(
            sharing, self._start, self._columns, self._best, found, runs, self._rng
        )

    def lines(self) -> ProgramLines:
        """Return the best lines so far; available after the first `improve`."""
        m = self._start.astype(np.int64)
        lines: list[Terms] = []
        for new, (i, j, ratio) in enumerate(self._best[: self._steps].tolist(), self._columns):
            p, q = self._pairs[ratio].tolist()
            lines.append(((p, i), (q, j)))
            content = m[:, i] // p
            rows = (m[:, i] != 0) & (content * p == m[:, i]) & (content * q == m[:, j])
            m[rows, new] = content[rows]
            m[rows, i] = m[rows, j] = 0
        sums = [tuple((int(row[c]), int(c)) for c in np.flatnonzero(row)) for row in m]
        outputs = tuple(_sum_of(terms, lines, self._columns) for terms in sums)
        return ProgramLines(self._columns, tuple(lines), outputs)


class TernaryMap:
    """A `PairedMap` with coefficients -1, 0 and 1 and at most 32 columns: lines of two terms, with cancellation."""

    def __init__(self, matrix: IntArray, seed: int, index: int) -> None:
        from .boyar_peralta import make_sums

        self._inputs = matrix.shape[1]
        bits = np.uint64(1) << np.arange(self._inputs, dtype=np.uint64)
        plus, minus = ((matrix == sign).astype(np.uint64) @ bits for sign in (1, -1))
        self._words: npt.NDArray[np.uint64] = plus | (minus << np.uint64(HALF_BITS))  # pos | neg << 32, a row each
        self._sums = make_sums(len(matrix), self._inputs)
        self._values, self._pairs = np.empty_like(self._sums.values), np.empty_like(self._sums.lines)
        self.additions = -1
        self._rng = np.array([splitmix(seed, index)], dtype=np.uint64)

    def improve(self, runs: int) -> None:
        from .boyar_peralta import share_often

        self.additions = share_often(
            self._sums, self._words, self._inputs, runs, self.additions, self._values, self._pairs, self._rng
        )

    def lines(self) -> ProgramLines:
        words = self._values[: self._inputs + self.additions].tolist()
        lines = []
        for value in range(self._inputs, len(words)):
            pair = int(self._pairs[value])
            later, earlier, sign = pair >> 16, (pair >> 1) & 0x7FFF, 1 - 2 * (pair & 1)
            either = words[later] | (words[earlier] if sign > 0 else _negative(words[earlier]))
            turn = 1 if either & ~_negative(either) == words[value] else -1
            lines.append(((turn, later), (turn * sign, earlier)))
        known = {_negative(word): (-1, value) for value, word in enumerate(words)}
        known |= {word: (1, value) for value, word in enumerate(words)} | {0: (0, -1)}
        return ProgramLines(self._inputs, tuple(lines), tuple(known[word] for word in self._words.tolist()))


def _negative(word: int) -> int:
    minus, plus = divmod(word, 1 << HALF_BITS)
    return (plus << HALF_BITS) | minus


@lru_cache(maxsize=16)
def _ratios(largest: int) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int32]]:
    """Return a table of the ratio number of every two coefficients, and the coprime pair p > 0, q of every number."""
    pairs: dict[tuple[int, int], int] = {}
    table = np.zeros((2 * largest + 1, 2 * largest + 1), dtype=np.int16)
    for x in range(-largest, largest + 1):
        for y in range(-largest, largest + 1):
            if x and y:
                content = math.gcd(x, y) * (1 if x > 0 else -1)
                pair = x // content, y // content
                table[x + largest, y + largest] = pairs.setdefault(pair, len(pairs))
    return table, np.array(list(pairs), dtype=np.int32)
