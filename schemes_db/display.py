"""Objects as one line of text, for a prompt or a log, and as a table in HTML, for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LIMIT = 100
"""The most characters of a line."""


def line(text: str) -> str:
    """`<text>` on one line of at most `LIMIT` characters: cut at its end, with white space joined."""
    flat = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return f"<{flat if len(flat) <= LIMIT - 2 else flat[: LIMIT - 5] + '...'}>"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML below its title; every text is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<p>{escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
