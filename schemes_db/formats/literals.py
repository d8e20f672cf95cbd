"""Arrays as people write them down: JSON, code that binds names to them, or tables of numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2, Ring
from ..target import Target
from . import equations
from .arrays import ROLES, as_array, named_factors, reading_of_unlabelled, side_by_side, unstacked
from .bindings import Bindings, body_of, evaluated, nested, plain_code, read_bindings
from .candidates import reading_of_rows
from .parts import HOW
from .patterns import pattern
from .reading import C, Reading
from .syntax import Parser
from .tables import check_setting, has_tables, masks_of, table_count, three_tables

NAME = "arrays"
SUFFIX = ".json"
CONVENTION = C

_LISTED = pattern(
    r"(?:=|<-)\s*(?:[-+]?\d[\d./]*\s*\*\s*)?(?:[A-Za-z_][\w.]*\((?:\s*\d+\s*,)*)*\s*[\[({][\[({\s]*[-+]?[\d.\"'F]|matrix\(\s*['\"]\s*[-\d]|=\s*(?:\$\s*)?(?:\\left\W\s*)?\\begin\{"
)
_BEGINS = pattern(r"\s*[\[{(]\s*(?:[\[({\"']|\w+\(\[)")


def sniff(text: str) -> bool:
    """Return whether it has three arrays of numbers under names, or in one list."""
    plain = body_of(text[:20_000])
    return _BEGINS.match(plain) is not None or _LISTED.search(plain) is not None or has_tables(plain)


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read every scheme of a text.

    Raises:
        SchemeFormatError: no three arrays that could be factors, or something that may change them.
    """
    body = body_of(text)
    if (masks := masks_of(body)) is not None:
        return [_modulo_2(*masks, target, ring)]
    value = _whole(body)
    found: Bindings | None = None
    if value is None:
        found = read_bindings(body)
        value = found.arrays
    if value:
        readings = list(_schemes(value, target, ring, 0, found))
        written = _equations(value)
        if readings:
            return [equations.agreeing(one, written) for one in readings]
        if written:
            readings = equations.parse(written, target, ring)
            return [dataclasses.replace(one, notes=(*one.notes, "equations in JSON")) for one in readings]
    if (factors := three_tables(body)) is not None:
        arrays = [array for part in factors if (array := as_array(part)) is not None]
        if len(arrays) != 3:
            raise SchemeFormatError("tables with rows of unlike lengths")
        return [reading_of_unlabelled(NAME, arrays, target, ring)]
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
    parser = Parser(code)
    value = evaluated(parser.value(), Bindings())
    if isinstance(value, dict) and parser.at("{"):  # a product a line
        value = [value]
        while parser.at("{"):
            value.append(evaluated(parser.value(), Bindings()))
    parser.accept(";")
    if parser.kind != "end":
        raise parser.fault(f"unexpected {parser.token[:12]!r} after the end of the value")
    return nested(value)


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
            lines.append(item if "=" in item else f"{name} = {item}" if re.search(r"\d", name) else "")

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
            yield reading_of_unlabelled(NAME, factors, target, ring, (note,))
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
        arrays = {name: array for name, item in value.items() if (array := as_array(item)) is not None}
        named = named_factors(arrays)
        if named is None and found is None:
            return
        for name, fault in (found.faults if found else {}).items():
            roles = [names for names in zip(*ROLES, strict=True) if name.lower() in names]
            if named is None or any(set(names) - {name.lower()} <= {one.lower() for one in arrays} for names in roles):
                raise SchemeFormatError(f"{name}: {fault.message}", line=fault.line)
        if named is not None:
            if found is None:
                for name, item in value.items():
                    if name not in arrays:
                        check_setting(name, item)
            yield named[0], "; ".join(named[1])
        return
    if len(value) == 3:
        parts = [part for item in value if (part := as_array(item)) is not None and part.ndim in (2, 3)]
        if len(parts) == 3:
            yield parts, "three arrays in the order of the file"
    if (stacked := _by_products(value)) is not None:
        yield stacked, "factors product by product"
    array = as_array(value)
    if array is not None and (one := unstacked(array) or side_by_side(array)):
        yield one, "one array of all three factors"


def _by_products(value: list[Any]) -> list[Any] | None:
    """The stacked factors of a list of products, each an object with u, v and w or a list of three."""
    if isinstance(value[0], dict):
        plain = {re.sub(r"[^a-z0-9]", "", str(name).lower()): name for name in value[0]}
        names = next((names for names in zip(*ROLES, strict=True) if set(names) <= set(plain)), None)
        if names is None or not all(isinstance(item, dict) and set(value[0]) == set(item) for item in value):
            return None
        for item in value:
            for name, inner in item.items():
                if name not in {plain[one] for one in names}:
                    check_setting(str(name), inner)
        columns = [[item[plain[name]] for item in value] for name in names]
    elif all(isinstance(item, list) and len(item) == 3 for item in value):
        columns = [[item[slot] for item in value] for slot in range(3)]
    else:
        return None
    stacked = [as_array(column) for column in columns]
    found = [array for array in stacked if array is not None and array.ndim in (2, 3)]
    return found if len(found) == 3 else None


def _modulo_2(words: list[list[int]], shape: tuple[int, int, int], target: Target | None, ring: Ring | None) -> Reading:
    """The reading of three bit masks a product."""
    u, v, w = (
        [[(j, 1) for j in range(row[slot].bit_length()) if row[slot] >> j & 1] for row in words] for slot in range(3)
    )
    reading = reading_of_rows(NAME, (u, v, w), target.shape if target else shape, CONVENTION, target, ring or Z2)
    return dataclasses.replace(reading, declared=ring or Z2)
