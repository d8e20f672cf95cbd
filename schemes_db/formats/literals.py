"""Arrays as people write them down: JSON, code that binds names to them, or tables of numbers.

AlphaEvolve's files are tuples of three arrays (entries, R) each, columns are products, C transposed: every
`name = (array(..), array(..), array(..))` of a Python file or a notebook is one scheme.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2, Ring
from ..target import Target
from . import equations, exp
from .arrays import ROLES, Array, as_array, named_factors, reading_of_unlabelled, side_by_side, unstacked
from .bindings import Bindings, read_bindings
from .candidates import reading_of_rows
from .dense import TextReader
from .lines import plain_code
from .parts import HOW
from .patterns import check_setting, pattern
from .reading import C_TRANSPOSED, C, Reading
from .strict_json import loads
from .syntax import Parser, plain
from .tables import has_tables, masks_of, table_count, three_tables

_LISTED = pattern(
    r"(?::(?=\s*\[\[)|=|<-)\s*(?:[-+]?\d[\d./]*\s*\*\s*)?(?:[A-Za-z_][\w.]*\((?:\s*(?:\d+|[A-Z]\w*(?:\(\))?)\s*,)*)*\s*(?:[A-Za-z]\w*|(?:\[\d*\])+\w+|vec!)?\s*[\[({][\[({\s]*[-+]?[\d.\"'F]|matrix\(\s*['\"]\s*[-\d]|=\s*(?:\$\s*)?(?:\\left\W\s*)?\\begin\{"
)
_BEGINS = pattern(r"\s*[\[{(]\s*(?:[\[({\"']|\w+\(\[)")
_FENCE = pattern(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$")
_TUPLES = pattern(r"=\s*\(\s*(?:\w+\.)?array\s*\(")
_SIZES = frozenset(("n", "shape", "size", "sizes", "dims", "dim", "dimensions", "format", "tensor", "target"))


def _body(text: str) -> str:
    """The text between code fences, or the whole text if there are none."""
    parts = _FENCE.split(text)
    return "\n".join(parts[1::2]) if len(parts) > 2 else text


def _sniff(text: str) -> bool:
    """Return whether it has three arrays of numbers under names, or in one list."""
    body = _body(text[:20_000])
    return _BEGINS.match(body) is not None or _LISTED.search(body) is not None or has_tables(_body(text))


def _parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read every scheme of a text.

    Raises:
        SchemeFormatError: no three arrays that could be factors, or something that may change them.
    """
    body = _body(text)
    if (masks := masks_of(body)) is not None:
        return [_modulo_2(*masks, target, ring)]
    value = _whole(body)
    found: Bindings | None = None
    bare = value is None and not re.search(r"[\[({]", body)
    if bare and (tables := three_tables(body)):
        return [reading_of_unlabelled("arrays", tables, target, ring)]
    if value is None:
        found = read_bindings(body)
        value = found.arrays
        found.account(value.keys())
    if value:
        readings = list(_schemes(value, target, ring, 0, found))
        written = _equations(value)
        if readings:
            return [equations.agreeing(one, written) for one in readings]
        if written:
            readings = (equations if "=" in written else exp).parse(written, target, ring)
            return [dataclasses.replace(one, notes=(*one.notes, "equations in JSON")) for one in readings]
    if not bare and not (found and found.faults) and (tables := three_tables(body)):
        return [reading_of_unlabelled("arrays", tables, target, ring)]
    if table_count(body) == 1:
        raise SchemeFormatError(f"one table of numbers; {HOW}")
    names = f" among {', '.join(list(value)[:6])}" if isinstance(value, dict) and value else ""
    if found is not None and found.faults:
        raise next(iter(found.faults.values()))
    raise SchemeFormatError(f"no three arrays of numbers here{names}; name them u, v and w, (R, entries) each")


def _whole(text: str) -> Any:
    """The value that a whole text is, or None: JSON, or code with comments."""
    body = text.strip()
    if body[:1] in ("[", "{"):
        try:
            return _value(body)
        except SchemeFormatError as error:
            if "twice" in error.message:
                raise
    return _value(plain_code(text)) if body[:1] in ("[", "{", "(") else None


def _value(code: str) -> Any:
    parser = Parser(code, Bindings())
    value = parser.value()
    if isinstance(value, dict) and parser.at("{"):  # a product a line
        value = [value]
        while parser.at("{"):
            value.append(parser.value())
    parser.accept(";")
    if parser.kind != "end":
        raise parser.fault(f"unexpected {parser.token[:12]!r} after the end of the value")
    return plain(value)


def _equations(value: Any) -> str:
    """The equations in the strings of nested values, one a line: `"m1": "(a11)(b11)"` is m1 = (a11)(b11)."""
    lines: list[str] = []

    def collect(item: Any, name: str = "") -> None:
        if isinstance(item, dict):
            for key, inner in item.items():
                collect(inner, key)
        elif isinstance(item, list) and not set(map(type, item)) <= {int}:
            for inner in item:
                collect(inner)
        elif isinstance(item, str) and re.search(r"[A-Za-z]_?\d", item):
            whole = "=" in item or exp.sniff(item)
            lines.append(item if whole else f"{name} = {item}" if re.search(r"\d", name) else "")

    collect(value)
    return "\n".join(lines) if len([line for line in lines if line]) > 1 else ""


def _schemes(
    value: Any, target: Target | None, ring: Ring | None, depth: int, found: Bindings | None = None
) -> Iterator[Reading]:
    """The readings of all schemes in nested values; of several ways to find factors the first that fits together."""
    if depth > 3 or not isinstance(value, list | dict) or not value:
        return
    failure: SchemeFormatError | None = None
    for factors, note in _factors(value, found):
        try:
            yield reading_of_unlabelled("arrays", factors, target, ring, (note,))
            return
        except SchemeFormatError as error:
            failure = failure or error
    if failure is not None and isinstance(value, dict):
        raise failure  # of factors that are named no other reading is meant
    some = False
    for item in value.values() if isinstance(value, dict) else value:
        for reading in _schemes(item, target, ring, depth + 1):
            some = True
            yield reading
    if failure is not None and not some:
        raise failure


def _factors(value: list[Any] | dict[str, Any], found: Bindings | None) -> Iterator[tuple[list[Any], str]]:
    """Every way to find three factors in a value, and how.

    Raises:
        SchemeFormatError: one of them is set to something that is not understood, or a setting changes them.
    """
    if isinstance(value, dict):
        yield from _named(value, found)
        return
    if len(value) == 3 and (parts := _arrays(value)) is not None:
        yield parts, "three arrays in the order of the file"
    if (stacked := _by_products(value)) is not None:
        yield stacked, "factors product by product"
    array = as_array(value)
    if array is not None and (one := unstacked(array) or side_by_side(array)):
        yield one, "one array of all three factors"


def _named(value: dict[str, Any], found: Bindings | None) -> Iterator[tuple[list[Any], str]]:
    """The factors among values with names, which no other of them may change."""
    arrays = {name: array for name, item in value.items() if (array := as_array(item)) is not None}
    named = named_factors(arrays)
    for name, fault in (found.faults if found else {}).items():
        roles = [names for names in zip(*ROLES, strict=True) if name.lower() in names]
        if named is None or any(set(names) - {name.lower()} <= {one.lower() for one in arrays} for names in roles):
            raise SchemeFormatError(f"{name}: {fault.message}", line=fault.line)
    rank = next((one for name, one in (found.values if found else value).items() if name.lower() == "rank"), None)
    if named is not None and isinstance(rank, int) and not all(rank in array.shape for array in named[0]):
        raise SchemeFormatError(f"rank {rank}, but no factor has so many products")
    if named is not None:
        _check_sizes(found.values if found else value, named[0])
        known = {name for name, array in arrays.items() if array.ndim > 1} | (found.used if found else set())
        _check_settings(found.values if found else value, known)
        yield named[0], "; ".join(named[1])


def _check_sizes(value: dict[str, Any], factors: list[Any]) -> None:
    """Refuse sizes, such as `shape: [2, 2, 3]`, that are not those of the factors."""
    for name, sizes in value.items():
        if name.lower() not in _SIZES or not isinstance(sizes, list | tuple) or len(sizes) != 3:
            continue
        if not all(type(size) is int and size > 0 for size in sizes):
            continue
        (m, k, n), shapes = sizes, [array.shape for array in factors]
        entries = sorted((m * k, k * n, m * n))
        ranks = set.intersection(*map(set, shapes)) - {0}
        if not any(sorted(math.prod(shape) // rank for shape in shapes) == entries for rank in ranks):
            raise SchemeFormatError(f"{name} {m}, {k}, {n}, but the factors have shapes {', '.join(map(str, shapes))}")


def _check_settings(value: dict[str, Any], known: set[str]) -> None:
    for name in value.keys() - known:
        check_setting(name, value[name])


def _arrays(parts: list[Any]) -> list[Array] | None:
    """Three arrays of numbers, of two or three dimensions each; None where one is none."""
    found = [array for part in parts if (array := as_array(part)) is not None and array.ndim in (2, 3)]
    return found if len(found) == 3 else None


def _by_products(value: list[Any]) -> list[Any] | None:
    """The stacked factors of a list of products, each an object with u, v and w or a list of three."""
    if isinstance(value[0], dict):
        plain_names = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in value[0]}
        roles = next((names for names in zip(*ROLES, strict=True) if set(names) <= set(plain_names)), None)
        if roles is None or not all(isinstance(item, dict) and set(value[0]) == set(item) for item in value):
            return None
        names = [plain_names[role] for role in roles]
        for item in value:
            _check_settings(item, set(names))
        return _arrays([[item[name] for item in value] for name in names])
    if all(isinstance(item, list) and len(item) == 3 for item in value):
        return _arrays([[item[slot] for item in value] for slot in range(3)])
    return None


def _modulo_2(words: list[list[int]], shape: tuple[int, int, int], target: Target | None, ring: Ring | None) -> Reading:
    """The reading of three bit masks a product."""
    u, v, w = (
        [[(j, 1) for j in range(row[slot].bit_length()) if row[slot] >> j & 1] for row in words] for slot in range(3)
    )
    reading = reading_of_rows("arrays", (u, v, w), target.shape if target else shape, C, target, ring or Z2)
    return dataclasses.replace(reading, declared=ring or Z2)


def _sniff_tuples(text: str) -> bool:
    """Return whether a name is set to a tuple of arrays."""
    if text.lstrip().startswith("{"):
        return '"nbformat"' in text and "array(" in text
    return re.search(r"(?:[A-Za-z_]\w*=)?\({1,4}(?:\w+\.)?array\(", re.sub(r"\s", "", text[:20_000])) is not None


def _parse_tuples(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read all schemes: every tuple of three arrays.

    Raises:
        SchemeFormatError: not such arrays, or something that may change them.
    """
    cells = _cells(text)
    if plain_code(cells[0]).lstrip()[:1] == "(":
        cells[0] = f"factors = {plain_code(cells[0]).lstrip()}"
    readings: list[Reading] = []
    every = Bindings()
    for cell in cells:
        lines = {cell.count("\n", 0, match.start()) + 1 for match in _TUPLES.finditer(cell)}
        found = read_bindings(cell if lines or len(cells) == 1 else "")
        if name := next((name for name, fault in found.faults.items() if fault.line in lines), None):
            raise SchemeFormatError(f"{name}: {found.faults[name].message}", line=found.faults[name].line)
        for value in found.arrays.values():
            parts = _arrays(value) if isinstance(value, list) and len(value) == 3 else None
            if parts and all(part.ndim == 2 for part in parts):
                documented = C_TRANSPOSED, "products as columns"
                readings.append(reading_of_unlabelled("alphaevolve", parts, target, ring, (), documented))
            elif isinstance(value, list) and isinstance((value or [0])[0], list) and not _is_matrix(value):
                raise SchemeFormatError(f"expected tuples of three arrays of numbers, not {len(value)} arrays")
        every.values |= found.arrays
        every.unknown += found.unknown if lines else enumerate(plain_code(cell).splitlines(), start=1)
    every.account(every.values.keys())
    if not readings:
        raise SchemeFormatError("expected tuples of three arrays of numbers, not 0 arrays")
    return readings


def _is_matrix(value: list[Any]) -> bool:
    array = as_array(value)
    return array is not None and array.ndim == 2


def _cells(text: str) -> list[str]:
    """The text itself, or the code cells of a notebook."""
    if not text.lstrip().startswith("{"):
        return [text]
    notebook = loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    sources = [
        cell.get("source", "")
        for cell in (cells if isinstance(cells, list) else [])
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    return ["".join(map(str, one)) if isinstance(one, list) else str(one) for one in sources] or [""]


arrays = TextReader("arrays", ".json", C, _sniff, _parse)
alphaevolve = TextReader("alphaevolve", ".py", C_TRANSPOSED, _sniff_tuples, _parse_tuples)
