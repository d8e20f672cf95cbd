"""Maple triad sets of the FMM catalogue: `TriadSet([Triad([Matrix(..), Matrix(..), Matrix(..)]), ...])`.

The third matrix of a triad is indexed by C transposed. Entries are numbers, or products, quotients and
powers of them and of an infinitesimal x. What else the file holds (symbolic matrices, a check) is passed over.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .nodes import Call, Node
from .patterns import pattern
from .reading import C_TRANSPOSED, Reading
from .syntax import Parser
from .triads import reading_of_triads

NAME = "maple"
SUFFIX = ".mpl"
CONVENTION = C_TRANSPOSED

_COMMENT = pattern(r"#[^\n]*")
_START = pattern(r"\bTriad(?:Set)?\s*\(")
_BEFORE = pattern(r"(?:^|[:;,\n])\s*(?:(\w+)\s*:=\s*)?$")


def sniff(text: str) -> bool:
    """Return whether triads of matrices are mentioned."""
    return re.search(r"\bTriad\s*\(\s*\[", text) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read every triad set of a file; triads outside of a set make up one scheme, other statements are passed over.

    Raises:
        SchemeFormatError: with the line; not triads of three matrices.
    """
    plain = _COMMENT.sub("", text)
    sets: list[Call] = []
    loose: list[Node] = []
    position = 0
    while match := _START.search(plain, position):
        line = plain.count("\n", 0, match.start()) + 1
        before = _BEFORE.search(plain[max(position - 1, match.start() - 80, 0) : match.start()])
        parser = Parser(plain, match.start())
        node = parser.value()
        if before is None or not (parser.kind == "end" or parser.at(":", ";", ",")) or not isinstance(node, Call):
            raise SchemeFormatError("expected TriadSet([...]) or Triad([...]) and nothing around it", line=line)
        if (name := before[1]) and len(re.findall(rf"\b{name}\s*(?:\[[^\]]*\]\s*)?:=", plain)) > 1:
            raise SchemeFormatError(f"{name} is set twice", line=line)
        position = parser.position
        (sets if node.name == "TriadSet" else loose).append(node)
    groups = [_only_list(node) for node in sets] + ([loose] if loose else [])
    if not groups:
        raise SchemeFormatError("expected TriadSet([Triad([Matrix(..), Matrix(..), Matrix(..)]), ...])")
    return [reading_of_triads(NAME, [_triad(node) for node in group], target, ring) for group in groups]


def _only_list(node: Call) -> list[Node]:
    """The one list among the arguments of a call."""
    lists = [argument for argument in node.arguments if isinstance(argument, list)]
    if len(lists) != 1:
        raise SchemeFormatError(f"{node.name} must have one list, in brackets")
    return lists[0]


def _triad(node: Node) -> Node:
    if not isinstance(node, Call) or node.name != "Triad":
        raise SchemeFormatError("a triad set must hold triads: Triad([Matrix(..), Matrix(..), Matrix(..)])")
    return [_matrix(part) for part in _only_list(node)]


def _matrix(node: Node) -> Node:
    if not isinstance(node, Call) or node.name not in ("Matrix", "matrix"):
        raise SchemeFormatError("a triad must hold three matrices: Matrix(2, 2, [[1,0],[0,1]])")
    rows = _only_list(node)
    sizes = [argument for argument in node.arguments if not isinstance(argument, list)]
    width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    if sizes and sizes != [len(rows), width]:
        raise SchemeFormatError(f"a matrix of {len(rows)} x {width} entries that claims other sizes")
    return rows
