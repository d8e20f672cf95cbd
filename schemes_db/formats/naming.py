"""Names with indices: the letters of a block or a product, and its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ...errors import SchemeFormatError
from .patterns import pattern

Index = tuple[int, ...]
"""One index or two, as written."""

NAME = r"[A-Za-z]\w*(?:\[\d+,\s*\d+\]|,\d+)?"
WORD = pattern(NAME)
_INDEXED = pattern(r"([A-Za-z]+)(?:\[(\d+),\s*(\d+)\]|_(\d+)_(\d+)|(\d+),(\d+)|(\d+))")

_LETTER = pattern(r"(?<![\w.])[A-Za-z](?![\w\[])")
LETTERS = {letter: f"{'ab'[at // 4]}{at % 4 // 2 + 1}{at % 2 + 1}" for at, letter in enumerate("abcdefgh")}
"""Single letters that textbooks give to the blocks of two 2 x 2 matrices, and these blocks."""


def with_indices(text: str, letters: Mapping[str, str]) -> str:
    """A text with the blocks that single letters stand for."""
    return _LETTER.sub(lambda match: letters.get(match[0], match[0]), text) if letters else text


@lru_cache(maxsize=1 << 16)
def family(name: str) -> tuple[str, Index]:
    """The letters of an indexed name, in lower case, and its index; nothing for any other name.

    Two digits side by side are two indices; other numbers that stand alone are one.
    """
    match = _INDEXED.fullmatch(name)
    if match is None:
        return "", ()
    digits = match[8] or ""
    if len(digits) == 2:
        return match[1].lower(), (int(digits[0]), int(digits[1]))
    index = tuple(int(group) for group in match.groups()[1:] if group is not None)
    return match[1].lower(), (*index, 0, 0) if len(digits) > 2 else index  # a112: neither one nor two


def letters_of(name: str) -> str:
    """The letters of an indexed name; nothing for any other name."""
    return family(name)[0]


def label_of(letters: str, index: Index) -> str:
    """The one spelling of a name with this index."""
    if len(index) == 2 and max(index) > 9:
        return f"{letters}[{index[0]},{index[1]}]"
    return letters + "".join(map(str, index[:1] if len(index) == 3 else index))


def place_of(name: str) -> Index:
    """The row and the column of a block.

    Raises:
        SchemeFormatError: it has not two indices, or may have.
    """
    letters, index = family(name)
    if not letters:
        raise SchemeFormatError(f"{name[:20]} is not a block")
    if len(index) != 2:
        raise SchemeFormatError(f"block {name} is ambiguous; write {letters}[i,j]")
    return index


def joined(index: Index) -> Index:
    """The running index that two digits were."""
    if len(index) == 3:
        return index[:1]
    return (10 * index[0] + index[1],) if len(index) == 2 else index
