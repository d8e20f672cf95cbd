"""Involutions of a full product that exchange indices of its blocks in pairs, and words where they reverse the bits.

Along an axis of s blocks an involution with p swaps exchanges index i with s-1-i for the first p indices i and leaves
the others where they are; p = s // 2 reverses the axis. One along each of m, k and n maps entry (i, j) of each matrix
to the images of i and j, and permutes the terms of the naive scheme. Over GF(2) every involution of the spaces of rows
and columns is conjugate to one of these, by the number of its Jordan blocks of size 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import PlanError
from ...schemes_db import Target
from .words import HALF_BITS, Words, with_moved_bits

Swaps = tuple[int, int, int]
"""Pairs of indices that are exchanged along m, k and n."""


def reversal(target: Target) -> Swaps:
    """Return the swaps that reverse all three axes."""
    m, k, n = target.shape
    return m // 2, k // 2, n // 2


def parse_swaps(text: str) -> Swaps:
    """Parse three numbers such as 1,0,3.

    Raises:
        PlanError: other text.
    """
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) == 1 for part in parts):
        raise PlanError(f"swaps {text!r} are not understood: write those along m, k and n, such as flip-z2:1,0,3")
    m, k, n = map(int, parts)
    return m, k, n


def checked(swaps: Swaps, target: Target) -> Swaps:
    """Return the swaps if the target has such an involution.

    Raises:
        PlanError: the target is not a full product, an axis is too short, nothing is exchanged, or a matrix has too
            many entries for packed words.
    """
    if not target.is_general:
        raise PlanError(f"{target} is not invariant under reversal: walk flip-z2 needs a full product")
    text = ",".join(map(str, swaps))
    if any(count > most for count, most in zip(swaps, reversal(target), strict=True)):
        most = ",".join(map(str, reversal(target)))
        raise PlanError(f"{target} has at most {most} pairs to exchange along m, k and n, not {text}")
    if not any(swaps) and any(side > 1 for side in target.shape):
        raise PlanError("swaps 0,0,0 exchange nothing: take walk flip")
    held = held_entries(target, swaps)
    if held > HALF_BITS:
        raise PlanError(
            f"swaps {text} leave {held} entries of a matrix of {target}, or pairs of them, and a walk packs "
            f"{HALF_BITS}: take more swaps"
        )
    return swaps


def images(target: Target, swaps: Swaps) -> tuple[list[int], list[int], list[int]]:
    """Return the image of every entry of A (m x k), B (k x n) and C (m x n), row by row."""
    m, k, n = (
        [side - 1 - i if min(i, side - 1 - i) < count else i for i in range(side)]
        for side, count in zip(target.shape, swaps, strict=True)
    )
    a, b, c = ([i * len(cols) + j for i in rows for j in cols] for rows, cols in ((m, k), (k, n), (m, n)))
    return a, b, c


def held_entries(target: Target, swaps: Swaps) -> int:
    """Return the most entries of a matrix, of two that are exchanged only one counted; a walk packs HALF_BITS."""
    return max(len({min(p, q) for p, q in enumerate(image)}) for image in images(target, swaps))


def mirrored_layout(words: Words, image: Sequence[int], back: bool = False) -> Words:
    """Pack matrices so that reversing all 64 bits exchanges every entry with its image; the inverse with `back`.

    The first entry of the i-th pair is bit i and the second is bit 63 - i; an entry that is its own image is both.
    """
    moves: list[tuple[int, int]] = []
    pairs = [(entry, other) for entry, other in enumerate(image) if other >= entry]
    for place, (entry, other) in enumerate(pairs):
        moves += [(entry, place), (other, 63 - place)][: 1 if back and other == entry else 2]
    return with_moved_bits(words, ((new, old) if back else (old, new) for old, new in moves))


def backward(words: Words) -> Words:
    """Return the words with their 64 bits in reverse order."""
    return with_moved_bits(words, ((bit, 63 - bit) for bit in range(64)))
