"""Algorithms within a longer text, such as a paper: the lines that each takes, which a refusal of the text names."""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from .equations import is_equation
from .patterns import pattern

_HEADING = pattern(r"(?i)[\s#*]*(Algorithm\s+\d+)\b")
_RETURN = pattern(r"(?i)\s*(?:\d+:)?\s*return\b")
_MIN_EQUATIONS = 3
_MAX_GAP = 3
"""Lines without an equation, within an algorithm that does not end with `return`."""


def sections(text: str) -> dict[str, tuple[int, int]]:
    """First and last line (1-based, both included) of the algorithms of a text, by their headings.

    An algorithm ends with its `return`, or where its equations end; of headings with one name, as where a line of
    prose begins with it, that with the most equations counts.
    """
    lines = text.splitlines()
    heads = [(at, match[1]) for at, line in enumerate(lines) if (match := _HEADING.match(line))]
    best: dict[str, tuple[int, int, int]] = {}
    for (start, title), end in zip(heads, [*(at for at, _ in heads[1:]), len(lines)], strict=False):
        last, count = start, 0
        for at in range(start + 1, end):
            if _RETURN.match(lines[at]):
                last = at
                break
            if is_equation(lines[at]):
                last, count = at, count + 1
            elif count and at - last > _MAX_GAP:
                break
        name = " ".join(title.split()).capitalize()
        if count >= _MIN_EQUATIONS and count > best.get(name, (0,))[0]:
            best[name] = (count, start + 1, last + 1)
    return {name: (first, last) for name, (_, first, last) in best.items()}


def naming_sections(error: SchemeFormatError, text: str) -> SchemeFormatError:
    """The refusal of a text, with the lines to cut out; unchanged if its only algorithm is what is refused."""
    found = sections(text) if re.search(r"(?i)algorithm", text) else {}
    places = list(found.values())
    if not found or (len(found) == 1 and (error.line is None or places[0][0] <= error.line <= places[0][1])):
        return error
    listed = ", ".join(f"{name} in lines {first}-{last}" for name, (first, last) in found.items())
    cut = f"sed -n {places[0][0]},{places[0][1]}p FILE | lcma verify -"
    return SchemeFormatError(f"{error.message}; the text has {listed}: cut out one, as {cut}", error.file, error.line)
