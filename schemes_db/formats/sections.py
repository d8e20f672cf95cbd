"""Algorithms within a longer text, such as a paper: the lines that each takes, which a refusal of the text names."""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from .equations import is_equation
from .patterns import pattern

_HEADING = pattern(r"(?i)[\s#*]*(Algorithm\s+\d+)\b")
_RETURN = pattern(r"(?i)\s*(?:\d+:)?\s*return\b")
_MIN_EQUATIONS = 3


def sections(text: str) -> dict[str, tuple[int, int]]:
    """First and last line (1-based, both included) of the algorithms of a text, by their headings.

    An algorithm ends with its `return`, or where its equations end; of headings with one name, as where a line of
    prose begins with it, that with the most equations counts.
    """
    lines = text.splitlines()
    heads = [(at, match[1]) for at, line in enumerate(lines) if (match := _HEADING.match(line))]
    best: dict[str, tuple[int, int, int]] = {}
    for (start, title), end in zip(heads, [*(at for at, _ in heads[1:]), len(lines)], strict=False):
        stop = next((at for at in range(start, end) if _RETURN.match(lines[at])), end)
        found = [at for at in range(start, stop) if is_equation(lines[at])]
        name = " ".join(title.split()).capitalize()
        if len(found) >= max(_MIN_EQUATIONS, best.get(name, (0,))[0] + 1):
            best[name] = (len(found), start + 1, 1 + (stop if stop < end else found[-1]))
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
