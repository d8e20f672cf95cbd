"""Algorithms within a longer text, such as a paper: the lines that each takes, which a refusal of the text names."""

from __future__ import annotations

import dataclasses
import re

from ...errors import SchemeFormatError
from .equations import is_equation

_HEADING = re.compile(r"[\s#*]*(Algorithm\s+\d+)\b", re.IGNORECASE)
_RETURN = re.compile(r"\s*(?:\d+:)?\s*return\b", re.IGNORECASE)
_MIN_EQUATIONS = 3
_MAX_GAP = 3
"""Lines without an equation, within an algorithm that does not end with `return`."""


@dataclasses.dataclass(frozen=True)
class Section:
    """An algorithm of a text: its name, its first and last line (1-based, both included) and its equations."""

    name: str
    first: int
    last: int
    equations: int


def sections(text: str) -> list[Section]:
    """The algorithms of a text, by their headings; a name that also begins a line of prose is taken once."""
    lines = text.splitlines()
    heads = [(at, match[1]) for at, line in enumerate(lines) if (match := _HEADING.match(line))]
    if not heads:
        return []
    ends = [at for at, _ in heads[1:]] + [len(lines)]
    best: dict[str, Section] = {}
    for (start, title), end in zip(heads, ends, strict=True):
        name = " ".join(title.split()).capitalize()
        found = _section(name, lines, start, end)
        if found.equations >= _MIN_EQUATIONS and (name not in best or found.equations > best[name].equations):
            best[name] = found
    return list(best.values())


def _section(name: str, lines: list[str], start: int, end: int) -> Section:
    """The section that begins at a heading: up to its `return`, or to where its equations end."""
    last, count = start, 0
    for at in range(start + 1, end):
        if _RETURN.match(lines[at]):
            last = at
            break
        if is_equation(lines[at]):
            last, count = at, count + 1
        elif count and at - last > _MAX_GAP:
            break
    return Section(name, start + 1, last + 1, count)


def naming_sections(error: SchemeFormatError, text: str) -> SchemeFormatError:
    """The refusal of a text, with the lines to cut out; unchanged if its only algorithm is what is refused."""
    found = sections(text)
    if not found or (len(found) == 1 and _holds(found[0], error.line)):
        return error
    listed = ", ".join(f"{one.name} in lines {one.first}-{one.last}" for one in found)
    cut = f"sed -n {found[0].first},{found[0].last}p FILE | lcma verify -"
    return SchemeFormatError(f"{error.message}; the text has {listed}: cut out one, as {cut}", error.file, error.line)


def _holds(section: Section, line: int | None) -> bool:
    """Return whether a line lies in a section; one that is not known counts as within."""
    return line is None or section.first <= line <= section.last
