"""Moves of packed terms to other formats: merge, extend and project.

Sources: Kauers and Wood, "Exploring the meta flip graph for matrix multiplication" (arXiv 2510.19787).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ...errors import PlanError, unknown_name
from ...schemes_db import Target
from ..terms.packed import PackedTerms, Words
from ..terms.ternary import TernaryTerms

Packed = TypeVar("Packed", PackedTerms, TernaryTerms)

AXES = {"m": 0, "k": 1, "n": 2}
_SIDES = ((0, 1), (1, 2), (0, 2))
"""The axes of the rows and columns of A, B and C."""


def merge(left: Packed, right: Packed, axis: str) -> Packed:
    """Concatenate two products along one axis; their ranks add up.

    Raises:
        PlanError: they are no full products, differ in another axis or in ring, or the result does not fit.
    """
    place = _axis(axis)
    shape, other = list(left.target.shape), right.target.shape
    alike = all(x == y for q, (x, y) in enumerate(zip(shape, other, strict=True)) if q != place)
    if not (alike and left.target.is_general and right.target.is_general and type(left) is type(right)):
        raise PlanError(f"{left.target} and {right.target} can't be merged along {axis}")
    offsets = [0, 0, 0]
    offsets[place] = shape[place]
    shape[place] += other[place]
    target = Target.general(*shape)
    empty = type(left)(target, np.zeros((3, 0), dtype=np.uint64))  # raises if the format does not fit
    first = _moved(left, empty.target.shape, [0, 0, 0])
    return type(left)(target, np.concatenate([first, _moved(right, target.shape, offsets)], axis=1))


def extend(terms: Packed, axis: str) -> Packed:
    """Extend terms by one block along an axis, with naive products.

    Raises:
        PlanError: the target is no full product, or the longer one does not fit.
    """
    border = list(terms.target.shape)
    border[_axis(axis)] = 1
    return merge(terms, type(terms).naive(Target.general(*border)), axis)


def project(terms: Packed, axis: str, index: int) -> Packed:
    """Remove a block along an axis: block `index` is set to zero, and products that vanish are dropped.

    Raises:
        PlanError: the target is no full product, or the block does not exist or is the only one.
    """
    place = _axis(axis)
    shape = list(terms.target.shape)
    if not terms.target.is_general or shape[place] < 2 or not 0 <= index < shape[place]:
        raise PlanError(f"{terms.target} can't lose block {index} along {axis}")
    kept = [[q for q in range(size) if (axis_of, q) != (place, index)] for axis_of, size in enumerate(shape)]
    words = _picked(terms, kept)
    shape[place] -= 1
    shorter = type(terms)(Target.general(*shape), words)
    return type(terms)(shorter.target, words[:, shorter.support.all(axis=0)])


def _axis(axis: str) -> int:
    if axis not in AXES:
        raise unknown_name("axis", axis, "mkn")
    return AXES[axis]


def _moved(terms: Packed, shape: tuple[int, ...], offsets: list[int]) -> Words:
    """Return the words on a larger grid, with blocks shifted by the offsets along m, k and n."""
    places = [
        [(row + offsets[rows]) * shape[cols] + col + offsets[cols] for row in range(size) for col in range(width)]
        for rows, cols in _SIDES
        for size, width in [(terms.target.shape[rows], terms.target.shape[cols])]
    ]
    return _relaid(terms, [list(enumerate(part)) for part in places])


def _picked(terms: Packed, kept: list[list[int]]) -> Words:
    """Return the words on the grid of the indices `kept` along m, k and n."""
    shape = terms.target.shape
    pairs = [
        [(row * shape[cols] + col, place) for place, (row, col) in enumerate(_grid(kept[rows], kept[cols]))]
        for rows, cols in _SIDES
    ]
    return _relaid(terms, pairs)


def _grid(rows: list[int], cols: list[int]) -> list[tuple[int, int]]:
    return [(row, col) for row in rows for col in cols]


def _relaid(terms: Packed, pairs: list[list[tuple[int, int]]]) -> Words:
    """Move bit `old` of each factor to `new` for every pair (old, new), in all planes."""
    result = np.zeros_like(terms.words)
    for row, source, part in zip(result, terms.words, pairs * terms.planes, strict=True):
        for old, new in part:
            row |= ((source >> np.uint64(old)) & np.uint64(1)) << np.uint64(new)
    return result
