"""Annealing of an arrangement until it spans all entries of C, modulo 2 first and then over the integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import PlanError
from ...schemes_db import Scheme, Target
from ...schemes_db.composition import oriented
from ..runs.snapshot import Arrays
from ..seeds import splitmix
from .arrangement import Arrangement, IntArray
from .construct import scheme_of, with_smaller_coefficients
from .signs import signed

LENGTH = 1_000_000
"""Steps of an annealing, 1 to 3 s. At 2x7x8 all 38 of this length, and all 14 of four times it, reached rank 85."""

HOT, COLD = 0.4, 0.05
"""First and last temperature, where a lost dimension is accepted once in 12 and once in 5e8 steps. Of annealings modulo
2 at 2x8x8, 0.9 to 0.2 reached 97 in none of 10 and 0.9 to 0.1 in 6 of 11; 96 was reached by 0.9 to 0.1 in none
of 7, by 0.9 to 0.05 in 1 of 5 and by 0.4 to 0.05 in 2 of 9."""

REPAIR_HOT = 0.3
"""First temperature over the integers: the signs of the start satisfy all triples but one to four."""

CONVERSION = 100_000
"""Steps that the choice of signs and the construction of a scheme count as: they take about as long."""

MOST_ROWS, MOST_COLS, MOST_ENTRIES = 8, 16, 64
"""Maximum rows of A, columns of B, and entries of C: vectors and bilinear forms are words."""

Words = npt.NDArray[np.uint64]


def sides(target: Target) -> tuple[int, int]:
    """Return the two sides other than 2 of a format with a side of 2, in increasing order.

    Raises:
        PlanError: the target is no such format, or too large.
    """
    shape = sorted(target.shape)
    if not target.is_general or 2 not in shape or shape[0] < 2:
        raise PlanError(f"triples are for full products with a side of 2 and no smaller one, not for {target}")
    shape.remove(2)
    p, n = shape
    if p > MOST_ROWS or n > MOST_COLS or p * n > MOST_ENTRIES:
        raise PlanError(
            f"triples are for 2 x p x n with p up to {MOST_ROWS}, n up to {MOST_COLS} and p n up to {MOST_ENTRIES}, "
            f"not for {target}"
        )
    return p, n


def has_triples(target: Target) -> bool:
    """Return whether a target is a full product with a side of 2 that is not too large."""
    try:
        sides(target)
    except PlanError:
        return False
    return True


def usual_rank(target: Target) -> int:
    """Return the rank (3 p n + max(p, n)) / 2, rounded up, of the schemes of Hopcroft and Kerr (1971) for 2 x p x n."""
    p, n = sides(target)
    return (3 * p * n + n + 1) // 2


def least_rank(target: Target) -> int:
    """Return the rank p n + max(p, n) below which no arrangement has an inner product for every column of B."""
    p, n = sides(target)
    return p * n + n


class Annealer:
    """Anneals arrangements for a rank, one after the other, each from random inner products.

    Over the integers an arrangement that is complete modulo 2 gets signs, and if triples are missing then, it is
    annealed again with signs at lower temperatures.

    Attributes:
        lowest: the lowest rank of a scheme so far; that of the naive one at first.

    Args:
        target: a full product with a side of 2.
        rank: the rank wanted.
        integral: whether schemes are over Z, else over Z2.
        seed, index: the sequence depends on these only.

    Raises:
        PlanError: the target does not fit, or the rank is too low for any arrangement.
    """

    def __init__(self, target: Target, rank: int, integral: bool, seed: int, index: int) -> None:
        self.target, self._shape, self._integral = target, sides(target), integral
        self._state = np.array([splitmix(seed, index)], dtype=np.uint64)
        self._number = 0
        self.lowest = len(target.terms)
        self.aim(rank)

    def aim(self, rank: int) -> None:
        """Begin anew with another rank wanted.

        Raises:
            PlanError: there are fewer inner products than rows or columns, or the naive scheme has the rank.
        """
        p, n = self._shape
        count, lowest, naive = rank - p * n, least_rank(self.target), len(self.target.terms)
        if rank < lowest:
            raise PlanError(f"rank {rank} of {self.target} leaves too few inner products: ask for {lowest} or more")
        if rank >= naive:
            raise PlanError(f"the naive scheme of {self.target} has rank {naive} already: ask for less than that")
        self._rows, self._cols = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
        self._variants = np.zeros(count, dtype=np.int64)
        self._restart()

    def _restart(self) -> None:
        """Begin the next annealing at the next step."""
        self._step, self._signed = 0, False

    def advance(self, steps: int) -> list[Scheme]:
        """Anneal for about `steps` steps; return the schemes that were found, unchecked and without provenance."""
        from .kernel import TABLE, anneal, randomize

        p, n = self._shape
        table, pivots = np.zeros(TABLE, dtype=np.uint64), np.zeros(64, dtype=np.uint64)
        found = []
        left = steps
        while left > 0:
            modulo_2 = not self._signed
            if self._step == 0 and modulo_2:
                randomize(self._state, self._rows, self._cols, self._variants, p, n, modulo_2)
            made, reached = anneal(
                *(self._state, self._rows, self._cols, self._variants, p, n, modulo_2),
                *(self._step, min(left, LENGTH - self._step), LENGTH, HOT if modulo_2 else REPAIR_HOT, COLD),
                *(table, pivots),
            )
            self._step += made
            left -= max(made, 1)
            if reached == p * n:
                left -= CONVERSION
            if reached == p * n and modulo_2 and self._integral:
                self._number += 1
                self._take_up(signed(self.arrangement, self._number))
                self._step, self._signed = 0, True
            elif reached == p * n:
                if (scheme := scheme_of(self.arrangement)) is not None:
                    self.lowest = min(self.lowest, scheme.rank)
                    sparse = with_smaller_coefficients(scheme) if self._integral else scheme
                    found.append(oriented(sparse, self.target.shape))
                self._restart()
            elif self._step >= LENGTH:
                self._restart()
        return found

    @property
    def arrangement(self) -> Arrangement:
        """The inner products now."""
        p, n = self._shape
        return Arrangement(
            _entries(self._rows, p, 8), _entries(self._cols, n, 16), self._variants.copy(), not self._signed
        )

    def _take_up(self, arrangement: Arrangement) -> None:
        self._rows, self._cols = _words(arrangement.rows, 8), _words(arrangement.cols, 16)
        self._variants = arrangement.variants.copy()

    def to_arrays(self) -> Arrays:
        """Return the state."""
        numbers = [self._step, int(self._signed), self._number, self.lowest]
        return {
            "random": self._state.copy(),
            "words": np.stack([self._rows, self._cols, self._variants.astype(np.uint64)]),
            "numbers": np.array(numbers, dtype=np.int64),
        }

    def take_arrays(self, arrays: Arrays) -> None:
        """Restore the state of `to_arrays`."""
        self._state = arrays["random"].astype(np.uint64)
        self._rows, self._cols = (np.ascontiguousarray(arrays["words"][i].astype(np.uint64)) for i in (0, 1))
        self._variants = arrays["words"][2].astype(np.int64)
        self._step, signed_, self._number, self.lowest = arrays["numbers"].tolist()
        self._signed = bool(signed_)


def _entries(words: Words, length: int, half: int) -> IntArray:
    """Return (N, length) entries of vectors in words with `half` bits for the entries 1 and as many for those -1."""
    places = np.arange(length, dtype=np.uint64)
    plus, minus = (words[:, None] >> places + np.uint64(shift) & np.uint64(1) for shift in (0, half))
    return plus.astype(np.int64) - minus.astype(np.int64)


def _words(entries: IntArray, half: int) -> Words:
    """Invert `_entries`, with the first nonzero entry of each vector positive."""
    first = entries[np.arange(len(entries)), (entries != 0).argmax(axis=1)]
    powers = 1 << np.arange(entries.shape[1])
    turned = entries * first[:, None]
    plus, minus = ((turned == sign) @ powers for sign in (1, -1))
    return (plus | minus << half).astype(np.uint64)
