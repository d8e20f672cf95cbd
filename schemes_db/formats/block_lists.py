"""YAML of nested lists and tables by their indentation, as products are listed in, in the spelling of JSON."""

from __future__ import annotations

import json
import re

from ...errors import SchemeFormatError
from .patterns import pattern

_PRODUCTS = pattern(r"(?m)^[ ]*-[ ]+(?:(?:name|id):[^\n]*\n[ ]+)?(?:left|u|a|alpha):(?=\s)", re.IGNORECASE)
_MARK = pattern(r"(-)[ ]+|([A-Za-z_]\w*|\"[^\"]*\"):(?:[ ]+|$)")
_AS_IT_IS = pattern(r"[\[{\"].*|-?\d[\d./]*|null|true|false")
_COMMENT = pattern(r"(?:^|\s)#[^\"]*$")


def lists_products(text: str) -> bool:
    """Return whether a text lists products as `- left: ..` and `right: ..`, or as `- u: ..`, `v: ..` and `w: ..`."""
    return _PRODUCTS.search(text) is not None


def as_json(text: str) -> str:
    """The values of a text in JSON, each line in one of its own.

    Raises:
        SchemeFormatError: with the line, where it is no item of a list or a table.
    """
    lines: list[str] = []
    open_: list[tuple[int, str]] = []
    """The column and the closing bracket of every list and table that is open."""

    waits, last = True, 0

    def close(column: int) -> str:
        """What ends the lists and tables of larger columns, and a value that never came."""
        nonlocal waits
        found = "null" if waits and open_ else ""
        waits = False
        while open_ and open_[-1][0] > column:
            found += open_.pop()[1]
        return found

    for number, line in enumerate(text.splitlines(), start=1):
        plain = _COMMENT.sub("", line).rstrip()
        column, said = len(plain) - len(plain.lstrip()), ""
        plain = plain.lstrip()
        while mark := _MARK.match(plain):
            closer = "]" if mark[1] else "}"
            if not open_ or open_[-1][0] < column or (open_[-1] == (column, "}") and closer == "]" and waits):
                if not waits:
                    raise SchemeFormatError("a value in the place of an item", line=number)
                open_.append((column, closer))
                said += "[" if mark[1] else "{"
            else:
                lines[last] += close(column)
                if closer == "}" and open_[-1:] == [(column, "]")]:
                    lines[last] += open_.pop()[1]
                if open_[-1:] != [(column, closer)]:
                    raise SchemeFormatError("an item in no list", line=number)
                lines[last] += ","
            if mark[2]:
                key = mark[2].strip('"')
                said += f"{json.dumps(key)}: "
            waits = True
            column, plain = column + mark.end(), plain[mark.end() :]
        if plain:
            if not waits or not open_:
                raise SchemeFormatError(f"{plain[:40]!r} is no item of a list", line=number)
            said += plain if _AS_IT_IS.fullmatch(plain) else json.dumps(plain)
            waits = False
        last = len(lines) if said else last
        lines.append(said)
    return "\n".join(lines) + close(-1)
