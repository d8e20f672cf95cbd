"""Tables of numbers, three below each other, and bit masks.

Every line is a row, a heading, a setting such as `rank: 7`, or a comment; any other line makes it no table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2
from .arrays import ROLES, Array, array_of_rows
from .candidates import Shape, reading_of_rows, shape_of
from .dense import numbers
from .lines import numbered
from .patterns import changes_all, changes_something, check_setting, pattern
from .reading import C, Reading, Wanted

_UNSIGNED = r"(?:\d[\d./]*|\.\d+)(?:[eE][-+]?\d{1,3})?"
_CELL = rf"(?:0[xX][\da-fA-F]{{1,100}}|0[bB][01]{{1,400}}|\(?[-+]?{_UNSIGNED}(?:[-+]{_UNSIGNED}[ij])?[ij]?\)?)"
_ROW = pattern(rf"(?:-\s)?[\s\[({{|]*{_CELL}(?:[\s,;|&]+{_CELL})*(?:[\])}}|,;\s]|\\\\)*")
_NUMBER = pattern(_CELL)
_HEADING = pattern(
    r"[\s#%*=]*(?:-+\s+)?(?:(?:the|matrix|factor|array)\s+)*([A-Za-z]\w*)\s*"
    r"(?:\(?\d{1,4}\s*[x, ]\s*\d{1,4}\)?)?\s*[:=\[\](){}|*]*\s*"
)
_SETTING = pattern(r"\s*([A-Za-z_]+)\s*[:=]([\w.,<>\s/-]+)")
_GF2 = pattern(r"(?i)\b(?:GF\s*\(?2\)?|F_?2|Z_?2|mod(?:ulo)?\s*2|bit\s*masks?)")
_MASK = pattern(r"(?a)\d{1,160}|0[xX][\da-fA-F]{1,100}|0[bB][01]{1,400}")
_SIZES = pattern(r"<\s*(\d{1,2})\s*,\s*(\d{1,2})\s*,\s*(\d{1,2})\s*>|\b(\d{1,2})x(\d{1,2})x(\d{1,2})\b")


def has_tables(text: str) -> bool:
    """Return whether a text has three tables, one of what could be three, or bit masks."""
    try:
        found = groups(text)
        lengths = {len(_NUMBER.findall(line)) for _, line in found[0][1]} if len(found) == 1 else set()
        return len(found) == 3 or len(lengths) == 1 or bit_masks(text) is not None
    except SchemeFormatError:
        return True


def _role(line: str) -> int | None:
    """Return the factor that a heading line names."""
    match = _HEADING.fullmatch(line.strip()) if len(line) < 80 else None
    name = re.sub(r"\W|_", "", match[1].lower()) if match else ""
    return next((slot for slot, names in enumerate(ROLES) if name in names), None)


def groups(text: str) -> list[tuple[int | None, list[tuple[int, str]]]]:
    """Lines of numbers that stand together, with the factor that the heading above them names."""
    found: list[tuple[int | None, list[tuple[int, str]]]] = []
    role: int | None = None
    fresh = True
    for at, line in numbered(text):
        plain = line.partition("#")[0].strip()
        if _ROW.fullmatch(plain):
            if fresh:
                found.append((role, []))
                fresh = False
            found[-1][1].append((at, plain))
        elif (named := _role(line)) is not None:
            role, fresh = named, True
        elif set(plain) <= set("-=*|: \t"):
            fresh = True
        elif (setting := _SETTING.fullmatch(plain)) and _role(setting[1]) is None:
            check_setting(setting[1], setting[2].strip())
        elif (
            re.search(r"\d|'|^[^A-Za-z]*$|^\s*(?:if|for|while)\b", _GF2.sub("bits", plain))
            or changes_something(plain)
            or changes_all(plain)
        ):
            return []  # a row that is none: this is no table of numbers
    return found


def settings_beside(text: str) -> dict[str, Any]:
    """The numbers of settings beside tables, such as `rank: 7` or `shape = 2, 2, 2`."""
    found = {match[1]: match[2] for _, line in numbered(text) if (match := _SETTING.fullmatch(line.partition("#")[0]))}
    numbers = {name: list(map(int, re.findall(r"(?a)\d{1,9}", value))) for name, value in found.items()}
    return {name: said[0] if len(said) == 1 else said for name, said in numbers.items()}


def three_tables(text: str) -> list[Array] | None:
    """Three tables of numbers, each below a heading that names its factor, or in the order U, V, W.

    Raises:
        SchemeFormatError: rows of one have unlike lengths.
    """
    found = groups(text)
    if len(found) != 3:
        return None
    if {role for role, _ in found} == {0, 1, 2}:
        found.sort(key=lambda group: group[0] or 0)
    return [array_of_rows([numbers(at, _NUMBER.findall(line)) for at, line in rows]) for _, rows in found]


def bit_masks(text: str) -> tuple[list[list[int]], list[Shape]] | None:
    """The three masks of each product, one line a product, bit j for entry j, and the sizes; None for other texts.

    A mask is a number, in hexadecimal or binary, too, or the digits 0 and 1 of all entries. Sizes and the number of
    products may come first.
    """
    found = groups(text) if says_gf2(text) else []
    lines = [line.replace(",", " ").split() for _, rows in found for _, line in rows]
    if len(lines) < 2 or not all(_MASK.fullmatch(word) for line in lines for word in line):
        return None
    head = list(map(int, lines.pop(0))) if len(lines[0]) in (1, 4) and "".join(lines[0]).isdecimal() else [len(lines)]
    if head[-1] != len(lines) or any(len(line) != 3 for line in lines):
        return None
    columns = [[line[slot] for line in lines] for slot in range(3)]
    spelled_out = all(len(set(map(len, column))) == 1 and set("".join(column)) <= set("01") for column in columns)
    words = [
        [int(word[::-1], 2) if spelled_out else int(word, 0 if word[1:2].isalpha() else 10) for word in line]
        for line in lines
    ]
    return words, [(head[0], head[1], head[2])] if head[:-1] else []


def reading_of_words(wanted: Wanted, words: Sequence[Sequence[int]], text: str, sizes: Sequence[Shape]) -> Reading:
    """The reading of three bit masks a product modulo 2, in a text that may say the sizes as <2,2,2>.

    Raises:
        SchemeFormatError: the sizes can't be told, or some are said that are others.
    """
    target, wanted = wanted.target, replace(wanted, ring=wanted.ring or Z2)
    if said := _SIZES.search(text):
        m, k, n = (int(size) for size in said.groups() if size is not None)
        sizes = (*sizes, (m, k, n))
    if len({*sizes, *([target.shape] if target else [])}) > 1:
        raise SchemeFormatError(f"sizes {' and '.join(map(str, sizes))} of one scheme")
    lengths = [max(row[slot].bit_length() for row in words) for slot in range(3)]
    shape = target.shape if target else sizes[0] if sizes else shape_of(*lengths)
    u, v, w = (
        [[(j, 1) for j in range(row[slot].bit_length()) if row[slot] >> j & 1] for row in words] for slot in range(3)
    )
    return reading_of_rows(wanted, (u, v, w), shape, C)


def says_gf2(text: str) -> bool:
    """Return whether a text says that its numbers are bits, or residues modulo 2."""
    return _GF2.search(text) is not None
