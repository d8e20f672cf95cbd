"""Bini's table: `product ; Gamma ; Alpha ; Beta` a line, the THIRD factor first, indexed by C.

The header is `Bini m k n R`; a line with `mod 2` before the table says that it holds only there.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..ring import Z2, Ring
from ..scheme import MAX_RANK
from ..target import Target
from .candidates import Row, reading_of_rows
from .reading import C, Reading
from .syntax import number

NAME = "bini"
SUFFIX = ".txt"
CONVENTION = C

_HEADER = r"(?m)^[^\w\n]*Bini[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d{1,7})[ \t\r]*$"
_MOD_2 = r"(?i)\bmod(?:ulo)?[ _-]?2\b"


def sniff(text: str) -> bool:
    """Return whether a header line is there and a line of four columns."""
    return ";" in text and re.search(_HEADER, text[:20_000]) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: with the line, where columns or numbers are missing.
    """
    header = re.search(_HEADER, text)
    if header is None:
        raise SchemeFormatError("expected a header such as Bini 2 2 2 7")
    m, k, n, rank = map(int, header.groups())
    if rank > MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    if ring is None and re.search(_MOD_2, text.split(";", 1)[0]):
        ring = Z2
    entries = (m * n, m * k, k * n)
    factors: tuple[list[Row], ...] = ([], [], [])
    for line_number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("#", 1)[0].strip().rstrip(";").split(";")
        if len(columns) != 4:
            continue
        for factor, column, size in zip(factors, columns[1:], entries, strict=True):
            words = column.split()
            if len(words) != size:
                raise SchemeFormatError(f"{len(words)} numbers, where {size} entries belong", line=line_number)
            try:
                factor.append([(index, number(word)) for index, word in enumerate(words) if word != "0"])
            except SchemeFormatError as error:
                raise SchemeFormatError(error.message, line=line_number) from None
    gamma, alpha, beta = factors
    if len(gamma) != rank:
        raise SchemeFormatError(f"{len(gamma)} products, where the header says {rank}")
    return [reading_of_rows(NAME, (alpha, beta, gamma), (m, k, n), CONVENTION, target, ring)]
