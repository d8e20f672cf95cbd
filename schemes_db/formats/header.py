"""Comment lines `# target: NAME`, `# ring: NAME` and `# name: NAME`: what can't be seen from products written out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import LcmaError, SchemeFormatError
from ..names import checked_name
from ..ring import Ring, parse_ring
from ..target import Target, parse_target

_LINE = r"(?m)^[ \t]*#\s*(target|ring|name):[ \t]*(\S.*?)\s*$"


@dataclass(frozen=True)
class Header:
    """Facts that a text states about its scheme; None where it does not."""

    target: Target | None
    ring: Ring | None
    name: str


def parse_header(text: str) -> Header:
    """The first line of each kind in a text.

    Raises:
        SchemeFormatError: a target or a ring that means nothing, or a target that names a file.
    """
    found: dict[str, str] = {}
    for key, value in re.findall(_LINE, text):
        found.setdefault(key, value)
    try:
        target = parse_target(found["target"], files=False) if "target" in found else None
        ring = parse_ring(found["ring"]) if "ring" in found else None
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None
    return Header(target, ring, checked_name(found.get("name", "")))
