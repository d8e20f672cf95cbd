"""Lines that say what a file holds: `# target: NAME`, `# ring: NAME` and `# name: NAME`, a rank, and sizes."""

from __future__ import annotations

import re
from collections.abc import Set

from ...errors import LcmaError, SchemeFormatError
from ..names import checked_name
from ..ring import Ring, parse_ring
from ..target import Target, parse_target
from .patterns import pattern

RANK = r"R|(?i:rank|(?:n|num|number[ _]of)?[ _]?(?:products|multiplications|muls))"
SIZES = r"(?i:n|shape|sizes?|dims?|dimensions|format|tensor|target|scheme)"
"""Names of settings that say the number of products, and the sizes of the matrices."""

_LINE = r"(?m)^[ \t]*#\s*(target|ring|name):[ \t]*(\S.*?)\s*$"

_COUNT = r"\d{1,2}(?:(?:[ \t]{0,9}[,x][ \t]{0,9}|[ \t]{1,9})\d{1,2}){2}"
_STATED = pattern(
    rf"(?m)^[ \t#%/*!]*+(?:(?:{RANK})[ \t]{{0,9}}[:=][ \t]{{0,9}}(?P<rank>\d{{1,5}})"
    rf"|(?:{SIZES}[ \t]{{0,9}}[:=][ \t]{{0,9}}(?=[\d\[(<])|(?=<|\d+x))[\[(<]?"
    rf"(?P<sizes>{_COUNT})(?:[ \t]{{0,9}}[:;][ \t]{{0,9}}(?P<products>\d{{1,5}}))?[\])>]?)[ \t;.*/]*$"
)
"""A line, or a comment, that says nothing but a rank or a format: `# rank: 7`, `<2,2,2;7>`, `n = [2 2 2];`."""


def stated(text: str) -> tuple[Set[int], Set[tuple[int, ...]]]:
    """The ranks and the sizes that lines of a text say."""
    found = list(_STATED.finditer(text))
    ranks = {int(rank) for match in found if (rank := match["rank"] or match["products"])}
    return ranks, {tuple(map(int, re.findall(r"\d+", match["sizes"]))) for match in found if match["sizes"]}


def parse_header(text: str) -> tuple[Target | None, Ring | None, str]:
    """The target, the ring and the name that the first line of each kind in a text says; None where there is none.

    Raises:
        SchemeFormatError: a target or a ring that means nothing, or a target that names a file.
    """
    found: dict[str, str] = {}
    for key, value in re.findall(_LINE, text):
        found.setdefault(key, value)
    try:
        target = parse_target(found["target"], files=False) if "target" in found else None
        return target, parse_ring(found["ring"]) if "ring" in found else None, checked_name(found.get("name", ""))
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None
