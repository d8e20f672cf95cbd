"""AlphaEvolve's tuples of three arrays as Python literals: (entries, R) each, columns are products, C transposed.

Coefficients are decimals, complex ones too (`0.5-0.5j`); they must be exact binary fractions. Out of
a Python file or a notebook with more in it, what is read is every `name = (array(..), array(..), array(..))`.
"""

from __future__ import annotations

import re
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Ring
from ..target import Target
from .arrays import Array, as_array
from .bindings import Bindings, plain_code, read_bindings
from .candidates import reading_of_rows, shape_of
from .reading import C_TRANSPOSED, Reading
from .strict_json import loads

NAME = "alphaevolve"
SUFFIX = ".py"
CONVENTION = C_TRANSPOSED

_START = r"(?:[A-Za-z_]\w*=)?\({1,4}(?:\w+\.)?array\("


def sniff(text: str) -> bool:
    """Return whether a name is set to a tuple of arrays."""
    if text.lstrip().startswith("{"):
        return '"nbformat"' in text and "array(" in text
    return re.search(_START, re.sub(r"\s", "", text[:20_000])) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes: every tuple of three arrays.

    Raises:
        SchemeFormatError: not such arrays, or something that may change them.
    """
    cells = _cells(text)
    if plain_code(cells[0]).lstrip()[:1] == "(":
        cells[0] = f"factors = {plain_code(cells[0]).lstrip()}"
    matrices: list[Array] = []
    every = Bindings()
    for cell in cells:
        if len(cells) > 1 and not _tuples(cell):
            every.unknown += list(enumerate(plain_code(cell).splitlines(), start=1))
            continue
        found = read_bindings(cell)
        for name, fault in found.faults.items():
            if fault.line in _tuples(cell):
                raise SchemeFormatError(f"{name}: {fault.message}", line=fault.line)
        matrices += [rows for value in found.arrays.values() for rows in _matrices(value)]
        every.values.update(found.arrays)
        every.unknown += found.unknown
    every.account()
    if not matrices or len(matrices) % 3:
        raise SchemeFormatError(f"expected tuples of three arrays of numbers, not {len(matrices)} arrays")
    return [_reading(matrices[i : i + 3], target, ring) for i in range(0, len(matrices), 3)]


def _tuples(code: str) -> set[int]:
    """The lines on which a name is set to a tuple of arrays."""
    return {code.count("\n", 0, match.start()) + 1 for match in re.finditer(r"=\s*\(\s*(?:\w+\.)?array\s*\(", code)}


def _cells(text: str) -> list[str]:
    """The text itself, or the code cells of a notebook."""
    if not text.lstrip().startswith("{"):
        return [text]
    notebook = loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    sources = []
    for cell in cells if isinstance(cells, list) else []:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            sources.append("".join(map(str, source)) if isinstance(source, list) else str(source))
    return sources or [""]


def _matrices(value: Any) -> list[Array]:
    """The three matrices of a tuple; none of any other value.

    Raises:
        SchemeFormatError: a tuple of other things than matrices.
    """
    if not value or not isinstance(value, list) or not isinstance(value[0], list):
        return []
    parts = [array for part in value if (array := as_array(part)) is not None and array.ndim == 2]
    if len(parts) == 3 == len(value):
        return parts
    if (whole := as_array(value)) is not None and whole.ndim == 2:
        return []
    raise SchemeFormatError(f"expected tuples of three arrays of numbers with equal rows, not {len(value)} arrays")


def _reading(matrices: list[Array], target: Target | None, ring: Ring | None) -> Reading:
    if len({array.shape[1] for array in matrices}) != 1:
        raise SchemeFormatError("the three arrays of a scheme must have one number of columns, one a product")
    u, v, w = ([[(i, x) for i, x in enumerate(column) if x] for column in array.T.tolist()] for array in matrices)
    return reading_of_rows(NAME, (u, v, w), shape_of(*map(len, matrices)), C_TRANSPOSED, target, ring)
