"""Products and sums in plain spelling, read line by line with one pattern.

Lines are `m1 = (a11 + 2*a22)(b[1,10])` and `c11 = m1 - m2`, or `(a11)*(b11)*(c11)`. Most large files are
written so. Any other spelling and every fault is left to the readers of single statements (`lines`),
which are slower by a factor of ten and can name the faulty line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ..factor import IntArray
from ..scheme import MAX_RANK
from ..target import MAX_DIMENSION
from .patterns import pattern
from .reading import Entries

MAX_LINE = 1 << 20
"""Characters of a line; a longer one is left to the slower readers."""

Factors = tuple[Entries, Entries, Entries]
PlainLine = tuple[str, tuple[str, ...], str]
"""The name that is set or nothing, the sums in parentheses, and the sum without them."""

_NAME = r"[a-z](?:[1-9]\d{0,17}|\[[1-9]\d{0,17},[1-9]\d{0,17}\])"
_SUM = rf"(?:[-+]\s*+)?+(?:(?:[1-9]\d{{0,17}}\s*+\*\s*+)?+{_NAME}\s*+(?:[-+]\s*+(?=[a-z\d])|(?=[)]|$)))++"
_GROUP = rf"\(\s*+({_SUM})\)"
_LINE = pattern(
    rf"\s*+(?:({_NAME})\s*+=\s*+)?+(?:({_SUM})|{_GROUP}\s*+(?:\*\s*+)?+{_GROUP}\s*+(?:(?:\*\s*+)?+{_GROUP}\s*+)?+)"
)
_TERM = pattern(rf"([-+]?)\s*+(?:(\d++)\s*+\*\s*+)?+({_NAME})")
_COMMENT = pattern(r"#[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*")


class _NotPlainError(Exception):
    """The text has another spelling, or a fault."""


def scan(text: str) -> list[PlainLine] | None:
    """The lines of a text in plain spelling that are not empty; None where it has another one, or a fault."""
    plain = "" if text.lstrip()[:1] in ("{", "[", "\\") else _COMMENT.sub("", text).replace("\r\n", "\n").lower()
    if not plain.isascii() or "\\" in text or re.search(r"[^\S \t\n]", plain):
        return None
    found: list[PlainLine] = []
    for line in plain.split("\n"):
        if not line or line.isspace():
            continue
        match = _LINE.fullmatch(line) if len(line) <= MAX_LINE else None
        if match is None:
            return None
        head, total, *groups = match.groups("")
        found.append((head, tuple(filter(None, groups)), total))
    return found or None


def read_equations(lines: Sequence[PlainLine]) -> Factors | None:
    """The factors of equations `m1 = (a11)(b11)` and `c11 = m1`, the third by C; None for any other lines."""
    shapes = [(shape, len(list(same))) for shape, same in groupby((bool(head), len(sums)) for head, sums, _ in lines)]
    if [shape for shape, _ in shapes] != [(True, 2), (True, 0)] or shapes[0][1] > MAX_RANK:
        return None
    rank = shapes[0][1]
    numbers = {head: r for r, (head, _, _) in enumerate(lines[:rank])}
    letters = {head[0] for head in numbers}
    if len(numbers) != rank or len(letters) != 1 or letters & set("abcz") or any("[" in head for head in numbers):
        return None
    try:
        a, b = (_entries("ab"[slot], [sums[slot] for _, sums, _ in lines[:rank]]) for slot in (0, 1))
        places = [_block(head, "c") for head, _, _ in lines[rank:]]
        terms = [_TERM.findall(total) for _, _, total in lines[rank:]]
        products = np.array([numbers[name] for part in terms for _, _, name in part], dtype=np.int64)
        rows, cols = np.repeat(np.array(places, dtype=np.int64), [len(part) for part in terms], axis=0).T
        c = _checked(Entries(rank, products, rows, cols, _values(terms)))
    except (_NotPlainError, KeyError):
        return None
    return (a, b, c) if len(set(places)) == len(places) else None


def read_trilinear(lines: Sequence[PlainLine]) -> Factors | None:
    """The factors of products `(a11)*(b11)*(c11)`, the third as it is written; None for any other lines."""
    if len(lines) > MAX_RANK or any(head or len(sums) != 3 for head, sums, _ in lines):
        return None
    try:
        a, b, c = (_entries(letter, [sums[slot] for _, sums, _ in lines]) for slot, letter in enumerate("abc"))
    except _NotPlainError:
        return None
    return a, b, c


def _entries(letter: str, sums: list[str]) -> Entries:
    """The terms of a factor, the sums of whose products are given."""
    terms = [_TERM.findall(text) for text in sums]
    names = {name for part in terms for _, _, name in part}
    known = {name: _block(name, letter) for name in names}
    rows, cols = np.array([known[name] for part in terms for _, _, name in part], dtype=np.int64).T
    products = np.repeat(np.arange(len(sums)), [len(part) for part in terms])
    return _checked(Entries(len(sums), products, rows, cols, _values(terms)))


def _block(name: str, letter: str) -> tuple[int, int]:
    """Row and column, from 0, of a block of one matrix."""
    written = name[2:-1].split(",") if name[1] == "[" else list(name[1:])
    place = [int(index) for index in written]
    if name[0] != letter or len(place) != 2 or not 0 < min(place) <= max(place) <= MAX_DIMENSION:
        raise _NotPlainError
    return place[0] - 1, place[1] - 1


def _values(terms: list[list[tuple[str, str, str]]]) -> IntArray:
    signed = [int(size or 1) if sign != "-" else -int(size or 1) for part in terms for sign, size, _ in part]
    return np.array(signed, dtype=np.int64)


def _checked(entries: Entries) -> Entries:
    """The entries, each block of which stands once in a product; the other readers add it up."""
    keys = (entries.product * MAX_DIMENSION + entries.row) * MAX_DIMENSION + entries.col
    if len(np.unique(keys)) != len(keys):
        raise _NotPlainError
    return entries
