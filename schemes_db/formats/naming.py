"""Names with indices: the letters of a block or a product, and its place."""

from __future__ import annotations

import re
from functools import lru_cache

from .patterns import pattern

Index = tuple[int, ...]
"""One index or two, as written."""

NAME = r"[A-Za-z]\w*(?:\[\d+,\s*\d+\]|,\d+)?"
WORD = pattern(NAME)
_INDEXED = pattern(r"([A-Za-z]+)(?:\[(\d+),\s*(\d+)\]|_(\d+)_(\d+)|(\d+),(\d+)|(\d+))")
_START = pattern(r"(?:(\d)\*?)?[A-Za-z]\w*(?://2|/2)?")

LETTERS = "abcdefgh"
"""Single letters that textbooks give to the blocks of two 2 x 2 matrices."""


@lru_cache(maxsize=1 << 16)
def family(name: str) -> tuple[str, Index] | None:
    """The letters of an indexed name, in lower case, and its index as written: digits side by side are one number."""
    match = _INDEXED.fullmatch(name)
    if match is None:
        return None
    return match.group(1).lower(), tuple(int(group) for group in match.groups()[1:] if group is not None)


def placed(index: str) -> tuple[int, int] | None:
    """The block, from 0, that slices such as `:h, h:2*h` cut out; None where that is not clear."""
    found = []
    for part in index.split(","):
        start, colon, stop = (side.replace(" ", "") for side in part.partition(":"))
        match, end = _START.fullmatch(start), _START.fullmatch(stop)
        if not colon or (start not in ("", "0") and match is None):
            return None
        at = 0 if match is None else int(match[1] or 1)
        if stop and (end is None or int(end[1] or 1) not in (at + 1, 1)):
            return None
        found.append(at)
    return (found[0], found[1]) if len(found) == 2 else None


def as_written(name: str, index: Index) -> Index:
    """Two digits side by side are two indices; other numbers that stand alone are one."""
    if len(index) == 1 and re.fullmatch(r"[A-Za-z]+\d\d", name):
        return int(name[-2]), int(name[-1])
    if len(index) == 1 and re.fullmatch(r"[A-Za-z]+\d{3,}", name):
        return (*index, 0, 0)  # a112: neither one nor two
    return index


def joined(index: Index) -> Index:
    """The running index that two digits were."""
    if len(index) == 3:
        return index[:1]
    return (10 * index[0] + index[1],) if len(index) == 2 else index
