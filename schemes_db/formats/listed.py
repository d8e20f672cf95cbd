"""Equations in the strings of JSON: read where there are no numbers, else compared with them."""

from __future__ import annotations

import re
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2
from .equations import reading_of, sniff_products
from .formulas import Formulas
from .lines import statements
from .patterns import check_setting
from .reading import Reading, Wanted


def listed_text(value: Any, alone: bool = False) -> str:
    """The equations in the strings of nested values, one a line: `"m1": "(a11)(b11)"` is m1 = (a11)(b11).

    Objects with the sums `left` and `right` are products, called m1, m2, ... if they have no name. Where the equations
    are `alone`, without arrays of numbers, other values are settings.

    Raises:
        SchemeFormatError: a setting would change the numbers.
    """
    lines: list[str] = []
    products: list[dict[str, Any]] = []
    settings: list[tuple[str, Any]] = []

    def collect(item: Any, name: str = "") -> None:
        if isinstance(item, dict) and {type(item.get(side)) for side in ("left", "right")} == {str}:
            products.append(item)
            lines.append(f"{item.get('name', f'm{len(products)}')} = ({item['left']})*({item['right']})")
            settings.extend((key, item[key]) for key in item.keys() - {"left", "right", "name"})
        elif isinstance(item, dict):
            for key, inner in item.items():
                before = len(lines)
                collect(inner, key)
                if not any(lines[before:]):
                    settings.append((key, inner))
        elif isinstance(item, list) and not set(map(type, item)) <= {int}:
            for inner in item:
                collect(inner)
        elif isinstance(item, str) and re.search(r"[A-Za-z]_?\d", item):
            whole = "=" in item or sniff_products(item)
            lines.append(item if whole else f"{name} = {item}" if re.search(r"\d", name) else "")

    collect(value)
    for setting in settings if alone else ():
        check_setting(*setting)
    return "\n".join(lines) if len([line for line in lines if line]) > 1 else ""


def agreeing(reading: Reading, text: str) -> Reading:
    """A reading of numbers whose file also has these equations, once both are found to say the same.

    Raises:
        SchemeFormatError: they do not.
    """
    if not text or not reading.candidates or max(reading.candidates[0][1].target.shape) > 9:
        return reading  # two digits can't be told apart in the names of larger ones
    try:
        found = Formulas(statements(text))
        if found.skipped or not found.outputs:
            return reading  # text for people
        target = reading.candidates[0][1].target
        written = [scheme for _, scheme in reading_of(found, Wanted(reading.format, target)).candidates]
    except SchemeFormatError:
        return reading
    given = {scheme.digest for _, scheme in reading.candidates}
    if reading.candidates[0][1].ring == Z2:
        written = [scheme.over_z2() or scheme for scheme in written]
    if written and given.isdisjoint(scheme.digest for scheme in written):
        raise SchemeFormatError("the equations in the file contradict its numbers")
    return reading
