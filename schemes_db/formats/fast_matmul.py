"""The coefficient files of the fast-matmul code generator: U, V and W as dense blocks parted by `#` lines.

Rows are the entries of a matrix, columns are products; the third factor is indexed by C.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..target import Target
from .candidates import Row, reading_of_rows, shape_of
from .reading import C, Reading
from .syntax import number

NAME = "fast-matmul"
SUFFIX = ".txt"
CONVENTION = C

_NUMBERS = r"(?a)(?>[\s\d./+*^{}()-]|(?:e|E|eps|epsilon|x|lambda)\d{0,2}i?(?![A-Za-z])|[ij]\b)*+"


def sniff(text: str) -> bool:
    """Return whether there are three blocks of numbers, parted by comment lines."""
    head = text[:1_000_000]
    plain = re.sub(r"#[^\n]*", "", head)
    return len(_blocks(head)) == 3 and re.fullmatch(_NUMBERS, plain) is not None


def _blocks(text: str) -> list[list[tuple[int, list[str]]]]:
    """The blocks that comment lines part: (line number, words) of every line that is not empty."""
    blocks: list[list[tuple[int, list[str]]]] = [[]]
    for line_number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            if blocks[-1]:
                blocks.append([])
        elif words := line.split():
            blocks[-1].append((line_number, words))
    return [block for block in blocks if block]


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: with the line; not three blocks, or rows of different lengths.
    """
    blocks = _blocks(text)
    if len(blocks) != 3:
        raise SchemeFormatError(f"expected three blocks of numbers parted by # lines, not {len(blocks)}")
    rank = len(blocks[0][0][1])
    rows: list[list[Row]] = []
    for block in blocks:
        products: list[list[tuple[int, Coefficient]]] = [[] for _ in range(rank)]
        for index, (line_number, words) in enumerate(block):
            if len(words) != rank:
                raise SchemeFormatError(f"{len(words)} numbers, where {rank} columns began", line=line_number)
            for r, word in enumerate(words):
                if word != "0":
                    try:
                        products[r].append((index, number(word)))
                    except SchemeFormatError as error:
                        raise SchemeFormatError(error.message, line=line_number) from None
        rows.append(list(products))
    shape = shape_of(*(len(block) for block in blocks))
    return [reading_of_rows(NAME, (rows[0], rows[1], rows[2]), shape, CONVENTION, target, ring)]
