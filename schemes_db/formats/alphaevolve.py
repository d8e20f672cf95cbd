"""AlphaEvolve's tuples of three arrays as Python literals: (entries, R) each, columns are products, C transposed.

Coefficients are decimals, complex ones too (`0.5-0.5j`); they must be exact binary fractions. Out of
a Python file or a notebook with more in it, what is read is every `name = (array(..), array(..), array(..))`.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..target import Target
from .candidates import Row, reading_of_rows, shape_of
from .nested import Call, Node, matrix, values
from .reading import C_TRANSPOSED, Reading
from .strict_json import loads

NAME = "alphaevolve"
SUFFIX = ".py"
CONVENTION = C_TRANSPOSED

_START = r"(?:[A-Za-z_]\w*=)?[(\[]{0,4}(?:(?:\w+\.)?array\(|\[[(\[]{0,4}[-+]?[\d.])"
_ASSIGNED = r"=\s*(\(\s*(?:\w+\.)?array\s*\()"
_BLOCK = r"\b[abcABC](?:_?\d|\[\d)"
_COMMENT = r"(?m)#[^\n]*|^[ \t]*(?:import|from)[ \t][^\n]*"

Matrix = list[list[Coefficient]]


def sniff(text: str) -> bool:
    """Return whether it starts as a tuple of arrays or as a list of lists of numbers."""
    if text.lstrip().startswith("{"):
        return '"nbformat"' in text and "array(" in text
    head = "".join(re.sub(_COMMENT, "", text[:20_000]).split())
    return re.match(_START, head) is not None and not re.search(_BLOCK, head)


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes: every tuple of three arrays, or every three arrays one after the other.

    Raises:
        SchemeFormatError: not such arrays, or a coefficient that is rounded.
    """
    matrices: list[Matrix] = []
    code = _code(text)
    plain = re.sub(_COMMENT, "", code)
    for part in _assigned_tuples(plain) or [plain]:
        for node in values(part):
            matrices += _matrices(node, 0)
    if not matrices or len(matrices) % 3:
        raise SchemeFormatError(f"expected tuples of three arrays of numbers, not {len(matrices)} arrays")
    return [_reading(matrices[i : i + 3], target, ring) for i in range(0, len(matrices), 3)]


def _code(text: str) -> str:
    """The text itself, or the code cells of a notebook one after the other."""
    if not text.lstrip().startswith("{"):
        return text
    notebook = loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    sources = []
    for cell in cells if isinstance(cells, list) else []:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            sources.append("".join(map(str, source)) if isinstance(source, list) else str(source))
    return "\n".join(sources)


def _assigned_tuples(code: str) -> list[str]:
    """Every parenthesis that follows a `=` and begins with an array, up to where it closes."""
    found: list[str] = []
    position = 0
    while match := re.compile(_ASSIGNED).search(code, position):
        depth, position = 0, match.end()
        for bracket in re.compile(r"[()]").finditer(code, match.start(1)):
            depth += 1 if bracket.group() == "(" else -1
            position = bracket.end()
            if not depth:
                break
        found.append(code[match.start(1) : position])
    return found


def _matrices(node: Node, depth: int) -> list[Matrix]:
    """The matrices in a node, `array(...)` taken off."""
    if isinstance(node, Call) and node.name.rpartition(".")[2] == "array" and node.arguments:
        node = node.arguments[0]  # what follows is a dtype
    if (rows := matrix(node)) is not None:
        return [rows]
    if isinstance(node, list) and depth < 3:
        return [found for part in node for found in _matrices(part, depth + 1)]
    raise SchemeFormatError("expected tuples of three arrays of numbers with equal rows")


def _reading(matrices: list[Matrix], target: Target | None, ring: Ring | None) -> Reading:
    if len({len(rows[0]) for rows in matrices}) != 1:
        raise SchemeFormatError("the three arrays of a scheme must have one number of columns, one a product")
    a, b, c = (_columns(rows) for rows in matrices)
    shape = shape_of(*(len(rows) for rows in matrices))
    return reading_of_rows(NAME, (a, b, c), shape, C_TRANSPOSED, target, ring)


def _columns(rows: Matrix) -> list[Row]:
    return [[(index, row[r]) for index, row in enumerate(rows) if row[r]] for r in range(len(rows[0]))]
