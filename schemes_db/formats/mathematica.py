"""Mathematica lists: every product is {A, B, C^T}, a matrix a list of rows in braces.

A file may hold the products one after the other, one list of them, or a list of such lists (many
schemes).
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .lines import without_block_comments
from .nodes import Node
from .reading import C_TRANSPOSED, Reading
from .syntax import values
from .triads import reading_of_triads

NAME = "mathematica"
SUFFIX = ".m"
CONVENTION = C_TRANSPOSED

_START = r"\s*(?:[A-Za-z]\w*\s*:?=\s*)?(?:\{\s*){3,5}[-+]?\s*[\d.I]"


def sniff(text: str) -> bool:
    """Return whether it starts with nested braces around a number."""
    return re.match(_START, without_block_comments(text[:20_000])) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: not such lists.
    """
    nodes = values(without_block_comments(text))
    depths = {_depth(node) for node in nodes}
    if depths == {3}:
        schemes: list[list[Node]] = [nodes]
    elif depths == {4}:
        schemes = [node for node in nodes if isinstance(node, list)]
    elif depths == {5}:
        schemes = [part for node in nodes if isinstance(node, list) for part in node if isinstance(part, list)]
    else:
        raise SchemeFormatError("expected products {A, B, C} of matrices in braces, such as {{1,0},{0,1}}")
    return [reading_of_triads(NAME, triads, target, ring) for triads in schemes]


def _depth(node: Node) -> int:
    depth = 0
    while isinstance(node, list):
        depth += 1
        if not node:
            break
        node = node[0]
    return depth
