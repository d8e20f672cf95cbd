"""Comment lines `# target: NAME`, `# ring: NAME` and `# name: NAME`: what can't be seen from products written out."""

from __future__ import annotations

import re

from ...errors import LcmaError, SchemeFormatError
from ..names import checked_name
from ..ring import Ring, parse_ring
from ..target import Target, parse_target

_LINE = r"(?m)^[ \t]*#\s*(target|ring|name):[ \t]*(\S.*?)\s*$"


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
