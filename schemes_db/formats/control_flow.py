"""The lines of a text of code that a loop, a condition or a function governs: what they set is not known."""

from __future__ import annotations

from .lines import MAX_STATEMENT, numbered
from .patterns import pattern

_CONTROL = pattern(
    r"\s*(?:}\s*)?(?:for\s*\(|for\s+\w+(?:\s*,\s*\w+)*\s*(?:=|in\b|from\b|to\b)|while\b.*[\w)\]:{]$|if\s*\(|if\b.*[:{]\s*$"
    r"|if\b.*\bthen\b|elif\b|elseif\b|else\s+if\b|repeat\b|switch\s*\(|(?:else|try|finally)\s*[:{]|(?:except|catch)\b.*[:{]\s*$"
    r"|with\s+[\w.]+\s*:\s*$|with\b(?=.*\(|.*\bas\b).*:\s*$|(?:match|case)\s+\S+\s*:\s*$)"
)
"""A line that governs the lines that are indented below it, or stand in its braces."""

_LAST_WORDS = 20
"""Characters at the end of a line in which a word may end a block."""

_OPENS = pattern(
    r"\s*(?:(?P<control>(?:if|for|parfor|foreach|while|switch|try|do|repeat|unwind_protect)\b|let\s+(?P<own>\w+)\s*=.*\b(?P=own)\b)"
    r"|(?:\w+\s*:=\s*)?proc\b|(?:function|module)\b|(?:let|begin|quote)\s*$)"
)
_CLOSES = pattern(r"(?:^|[\s;:,])(?:end(?:\s(?:if|for|do|while|try|proc|function)|\w*)|fi|od|until \w+)[;:,.)]*$")
"""The first and the last line of a loop, a condition or a function that a word ends, as in MATLAB, Maple and Julia."""


def controlled_lines(text: str) -> set[int]:
    """The numbers of the lines that a loop or a condition governs: what they do is not known."""
    found = _lines_to_end(text, control=True)
    limit, braces = MAX_STATEMENT, 0
    for number, line in numbered(text):
        indent = len(line) - len(line.lstrip())
        if line.isspace() or not line:
            continue
        if indent <= limit and not braces and line.strip() != "{":
            limit = indent if _CONTROL.match(line) else MAX_STATEMENT
        if limit < MAX_STATEMENT:
            found.add(number)
            braces = max(braces + line.count("{") - line.count("}"), 0)
    return found


def inner_lines(text: str) -> set[int]:
    """The numbers of the lines of functions and modules that a word ends: the names that they set are others."""
    return _lines_to_end(text, control=False)


def _lines_to_end(text: str, control: bool) -> set[int]:
    """The numbers of all lines from one that opens a block to the word that ends it: a loop or a condition, or another.

    A line that opens what nothing ends is prose, or of a language that indents.
    """
    opened: list[tuple[int, bool]] = []
    blocks: list[tuple[int, int]] = []
    for number, line in numbered(text):
        if opens := _OPENS.match(line):
            opened.append((number, opens["control"] is not None))
        if opened and _CLOSES.search(line.rstrip()[-_LAST_WORDS:]):
            start, kind = opened.pop()
            blocks += [(start, number)] if kind == control else []
    found: set[int] = set()
    last = 0
    for start, end in sorted(blocks):
        found.update(range(max(start, last + 1), end + 1))
        last = max(last, end)
    return found
