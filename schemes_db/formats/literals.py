"""Arrays as people write them down: JSON, Python literals, or tables of numbers, with the factors under usual names.

A tokenizer and a recursive parser of bounded depth; nothing is ever evaluated as code.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ...errors import SchemeFormatError
from ..gaussian import Gaussian, parse_number
from ..ring import Ring
from ..target import Target
from . import equations
from .arrays import ROLES, as_array, named_factors, reading_of_unlabelled, side_by_side, unstacked
from .expression import MAX_DIGITS, block_of, decimal, plus, times
from .lines import spelled
from .patterns import pattern
from .reading import C, Reading

NAME = "arrays"
SUFFIX = ".json"
CONVENTION = C

MAX_DEPTH = 12

_TOKEN = pattern(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)(?P<unit>[jJ]\b)?"
    r"|(?P<string>\"[^\"\n]{0,200}\"|'[^'\n]{0,200}')|(?P<name>[A-Za-z_][\w.]*)|(?P<symbol>[\[\]{}(),=+\-*/:]))"
)
_ASSIGNED = pattern(
    r"(?m)(?:^|;)[ \t>*-]*(?:[A-Za-z_]\w*[ \t]+){0,4}([A-Za-z_]\w*)(?:\[\d+\])*\s*(?::[^=\n\[{(]*)?=\s*(?=[\[{(A-Za-z])"
)
_LISTED = pattern(r"=\s*(?:[A-Za-z_][\w.]*\((?:\s*\d+\s*,)*)*\s*[\[({][\[({\s]*[-+]?[\d.\"'F]")
_COMMENT = pattern(r"(?m)(?:#|//|%)[^\n]*$")
_FENCE = pattern(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$")
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_TEXT_MATRIX = pattern(r"\b(?:np\.|numpy\.)?matrix\(\s*(['\"])([-+\d\s.,;/]*)\1\s*\)")
_MATRIX_ENDS = pattern(r"\\(begin|end)\{[pbvB]?matrix\}")
_HEADING = pattern(
    r"[\s#%*=-]*(?:(?:the|matrix|factor|array)\s+)*([A-Za-z]+\d?)\s*"
    r"(?:\(?\d{1,4}\s*[x, ]\s*\d{1,4}\)?)?\s*[:=\[\](){}|*]*\s*"
)
_ROW = pattern(r"\s*(?:-\s+)?[\s\[({|]*[-+]?\d[\d./]*(?:[\s,;|&]+[-+]?\d[\d./]*)*[\])}|,;\s\\]*")
_SETTING = pattern(r"\s*[A-Za-z_]\w*\s*[:=]\s*\w+\s*")
"""A line such as `rank: 7`."""

_MATLAB = pattern(r"(?m)^[ \t]*([A-Za-z]\w*)\s*=\s*\[([-+\d\s.,;/]*)\]")
_NUMBER = pattern(r"[-+]?\d[\d./]*")


def sniff(text: str) -> bool:
    """Return whether it has three arrays of numbers under names, or in one list."""
    plain = _body(text[:20_000])
    begins = re.match(r"\s*[\[{(]\s*(?:[\[({\"']|\w+\(\[)", plain) is not None
    return begins or _LISTED.search(plain) is not None or _has_tables(plain)


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read every scheme of a text.

    Raises:
        SchemeFormatError: no three arrays that could be factors.
    """
    plain = _body(text)
    failures: list[SchemeFormatError] = []
    names = ""
    for values in (_whole, _assigned, _matlab, _coefficient_table, _tables):
        try:
            value = values(plain)
            names = names or (", ".join(list(value)[:6]) if isinstance(value, dict) else "")
            if value and (readings := list(_schemes(value, target, ring, 0))):
                return readings
            if value and (told := _equations(value)):
                readings = equations.parse(told, target, ring)
                return [dataclasses.replace(one, notes=(*one.notes, "equations in JSON")) for one in readings]
        except SchemeFormatError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    raise SchemeFormatError(
        f"no three arrays of numbers here{f' among {names}' if names else ''}; name them u, v and w, (R, entries) each"
    )


def _body(text: str) -> str:
    """Return the text between code fences, or the whole text if there are none."""
    if "matrix}" in text:  # LaTeX's as MATLAB's
        text = re.sub(r"\\\\(?:\[[^\]\n]*\])?", ";", _MATRIX_ENDS.sub(lambda end: "[]"[end[1] == "end"], text))
        text = text.replace("&", " ")
    if "matrix(" in text:
        text = _TEXT_MATRIX.sub(r"[\2]", text)
    parts = _FENCE.split(text)
    return "\n".join(parts[1::2]) if len(parts) > 2 else text


def _whole(text: str) -> Any:
    """The value that a whole text is, or None."""
    body = _COMMENT.sub("", text).strip() if text.lstrip()[:1] not in "{" else text.strip()
    if body[:1] not in ("[", "{", "("):
        return None
    parser = _Parser(body, 0)
    value = parser.value(0)
    if isinstance(value, dict) and parser.token == "{":  # a product a line
        value = [value]
        while parser.token == "{":
            value.append(parser.value(0))
    if parser.kind != "end":
        if isinstance(value, list) and parser.token == ",":
            return None
        raise parser.fault(f"unexpected {parser.token[:12]!r} after the end of the value")
    return value


def _equations(value: Any) -> str:
    """The equations in the strings of nested values, one a line: `"m1": "(a11)(b11)"` is m1 = (a11)(b11)."""
    lines: list[str] = []

    def collect(item: Any, name: str = "") -> None:
        if isinstance(item, dict):
            for key, inner in item.items():
                collect(inner, key)
        elif isinstance(item, list):
            for inner in item:
                collect(inner)
        elif isinstance(item, str) and re.search(r"[A-Za-z]_?\d", item):
            lines.append(item if "=" in item else f"{name} = {item}" if re.search(r"\d", name) else "")

    if isinstance(value, dict | list):
        collect(value)
    return "\n".join(lines) if len([line for line in lines if line]) > 1 else ""


def _matlab(text: str) -> dict[str, Any]:
    """Matrices such as U = [1 0 1; 0 1 0], by name."""
    found: dict[str, Any] = {}
    for name, body in _MATLAB.findall(text):
        rows = [[_number(word) for word in _NUMBER.findall(row)] for row in re.split(r"[;\n]", body)]
        found[name] = [row for row in rows if row]
    return found


def _assigned(text: str) -> dict[str, Any]:
    """The values of all names that are set to lists of numbers."""
    plain = _COMMENT.sub("", text)
    found: dict[str, Any] = {}
    failure: SchemeFormatError | None = None
    position = 0
    while match := _ASSIGNED.search(plain, position):
        position = match.end()
        try:
            parser = _Parser(plain, position)
            value = parser.value(0)
        except SchemeFormatError as error:
            failure = failure or error
            continue
        position = max(position, parser.start)
        if isinstance(value, list | dict):
            found[match.group(1)] = value
    if failure is not None and not found:
        raise failure
    return found


def _schemes(value: Any, target: Target | None, ring: Ring | None, depth: int) -> Iterator[Reading]:
    """The readings of all schemes in nested values; of several ways to find factors the first that fits together."""
    if depth > 3 or not isinstance(value, list | dict) or not value:
        return
    failure: SchemeFormatError | None = None
    for factors, note in _factors(value):
        try:
            yield reading_of_unlabelled(NAME, factors, target, ring, (note,))
            return
        except SchemeFormatError as error:
            failure = failure or error
    found = False
    for item in value.values() if isinstance(value, dict) else value:
        for reading in _schemes(item, target, ring, depth + 1):
            found = True
            yield reading
    if failure is not None and not found:
        raise failure


def _factors(value: list[Any] | dict[str, Any]) -> Iterator[tuple[list[Any], str]]:
    """Every way to find three factors in a value, and how."""
    if isinstance(value, dict):
        arrays = {name: array for name, item in value.items() if (array := as_array(item)) is not None}
        if found := named_factors(arrays):
            yield found[0], "; ".join(found[1])
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
        if names is None or not all(isinstance(item, dict) and set(value[0]) <= set(item) for item in value):
            return None
        columns = [[item[plain[name]] for item in value] for name in names]
    elif all(isinstance(item, list) and len(item) == 3 for item in value):
        columns = [[item[slot] for item in value] for slot in range(3)]
    else:
        return None
    stacked = [as_array(column) for column in columns]
    found = [array for array in stacked if array is not None and array.ndim in (2, 3)]
    return found if len(found) == 3 else None


def _has_tables(text: str) -> bool:
    rows = [line for line in text.splitlines() if _ROW.fullmatch(line)]
    return len(rows) >= 3 and (len(_groups(text)) == 3 or _columns(text) is not None)


def _role(line: str) -> int | None:
    """Return the factor that a heading line names."""
    match = _HEADING.fullmatch(line.strip()) if len(line) < 80 else None
    if match is None:
        return None
    name = match.group(1).lower()
    return next((slot for slot, names in enumerate(ROLES) if name in names), None)


def _groups(text: str) -> list[tuple[int | None, list[str]]]:
    """Lines of numbers that stand together, with the factor that the heading above them names."""
    found: list[tuple[int | None, list[str]]] = []
    role: int | None = None
    fresh = True
    for line in text.splitlines():
        if _ROW.fullmatch(line):
            if fresh:
                found.append((role, []))
                fresh = False
            found[-1][1].append(line)
        elif (named := _role(line)) is not None:
            role, fresh = named, True
        elif not line.strip() or set(line.strip()) <= set("-=#*"):
            fresh = True
        elif re.search(r"\d", line) and not _SETTING.fullmatch(line):
            return []  # a row that is none: this is no table of numbers
    return found


def _tables(text: str) -> list[Any] | None:
    """Three tables of numbers, each below a heading that names its factor, or in the order U, V, W."""
    groups = _groups(text)
    if len(groups) != 3:
        return None
    roles = [role for role, _ in groups]
    if sorted(role for role in roles if role is not None) == [0, 1, 2]:
        groups = sorted(groups, key=lambda group: group[0] or 0)
    return [[[_number(word) for word in _NUMBER.findall(line)] for line in lines] for _, lines in groups]


def _columns(text: str) -> list[tuple[str, int, int] | None] | None:
    """The blocks that a table's heading names column by column, such as a11,a12,...,c22; None where there is none."""
    for line in text.splitlines()[:20]:
        cells = re.split(r"\s*[,;|\t]\s*|\s+", line.strip().strip("|").strip())
        blocks = [block_of(spelled(cell)) if re.match(r"[a-cA-C]", cell) else None for cell in cells if cell]
        if len({block[0] for block in blocks if block}) == 3:
            return blocks
    return None


def _coefficient_table(text: str) -> list[Any] | None:
    """A table with a product a row and a block a column."""
    columns = _columns(text)
    if columns is None:
        return None
    rows = [_NUMBER.findall(line) for line in text.splitlines() if _ROW.fullmatch(line)]
    if not rows or any(len(row) != len(columns) for row in rows):
        return None
    base = min(min(row, col) for _, row, col in filter(None, columns))
    factors = []
    for letter in "abc":
        places = {at: block for at, block in enumerate(columns) if block and block[0] == letter}
        height = 1 - base + max(row for _, row, _ in places.values())
        width = 1 - base + max(col for _, _, col in places.values())
        if len(set(places.values())) != height * width or height * width > 1 << 14:
            return None
        order = sorted(places, key=lambda at: places[at])
        factors.append([[_number(row[at]) for at in order] for row in rows])
    return factors


def _number(word: str) -> Any:
    if "/" in word:
        try:
            return parse_number(word)
        except (ValueError, ZeroDivisionError):
            raise SchemeFormatError(f"{word[:20]!r} is not a number") from None
    sign, digits = (-1, word[1:]) if word[0] == "-" else (1, word.lstrip("+"))
    try:
        return times(decimal(digits), sign)
    except ValueError:
        raise SchemeFormatError(f"{word[:20]!r} is not a number") from None


class _Parser:
    """Lists, tuples, objects, strings and numbers; a call such as np.array(...) is its first argument."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.position = text, position
        self.kind = self.token = self.unit = ""
        self.start = position
        self.take()

    def fault(self, message: str) -> SchemeFormatError:
        return SchemeFormatError(message, line=self.text.count("\n", 0, self.start) + 1)

    def take(self) -> str:
        passed = self.token
        match = _TOKEN.match(self.text, self.position)
        if match:
            self.kind = "number" if match.lastgroup == "unit" else match.lastgroup or ""
            self.unit = match.group("unit") or ""
            self.token = match.group(self.kind)
            self.start, self.position = match.start(self.kind), match.end()
            return passed
        self.start = self.position
        if self.text[self.position :].strip():
            self.kind, self.token = "other", self.text[self.position :].lstrip()[:12]
        else:
            self.kind = self.token = "end"
        return passed

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self.fault("brackets nested too deep")
        if self.kind == "string":
            return self.string()
        if self.kind == "symbol" and self.token in ("[", "{"):
            return self.bracketed(depth)
        if self.kind == "name" and self.token not in ("nan", "NaN", "inf", "Infinity"):
            return self.sum(depth, self.call(depth))
        if (self.kind, self.token) == ("symbol", "("):
            return self.sum(depth, self.bracketed(depth))
        return self.sum(depth, None)

    def sum(self, depth: int, first: Any) -> Any:
        """A number, or a sum and product of such; what is no number stands alone."""
        if first is not None and (isinstance(first, list | dict | str) or self.token not in ("+", "-", "*", "/")):
            return first
        total = self.product(depth, first, 1)
        while self.kind == "symbol" and self.token in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            total = plus(total, self.product(depth, None, sign))
        return total

    def product(self, depth: int, first: Any, sign: int) -> Any:
        while first is None and self.kind == "symbol" and self.token in ("+", "-"):
            sign = -sign if self.take() == "-" else sign
        result = times(first if first is not None else self.number(depth), sign)
        while self.kind == "symbol" and self.token in ("*", "/"):
            operator = self.take()
            factor = self.number(depth)
            if operator == "/":
                if not factor:
                    raise self.fault("division by 0")
                factor = Fraction(1) / factor if isinstance(factor, int | Fraction) else factor.inverse()
            result = times(result, factor)
        return result

    def number(self, depth: int) -> Any:
        if (self.kind, self.token) == ("symbol", "("):
            inner = self.bracketed(depth)
            if not isinstance(inner, list | dict | str):
                return inner
        if self.kind == "name" and not isinstance(inner := self.call(depth), list | dict | str):
            return inner
        if self.kind != "number":
            raise self.fault(f"a number or a bracket expected, not {self.token[:12]!r}")
        if len(self.token) > MAX_DIGITS:
            raise self.fault(f"a number of more than {MAX_DIGITS} digits")
        unit = self.unit
        number = decimal(self.take())
        return times(number, Gaussian(Fraction(0), Fraction(1))) if unit else number

    def string(self) -> Any:
        """A text; one that is a number, such as "1/2", is that number."""
        text = self.take()[1:-1]
        try:
            return parse_number(text)
        except (ValueError, ZeroDivisionError):
            return text

    def call(self, depth: int) -> Any:
        name = self.take()
        if (self.kind, self.token) != ("symbol", "("):
            return name if name in ("None", "null", "True", "true", "False", "false") else f"name {name}"
        arguments = self.bracketed(depth)
        items = arguments if isinstance(arguments, list) else [arguments]
        if name.rpartition(".")[2] in ("Fraction", "Rational") and items and not isinstance(items[0], list):
            return (
                Fraction(items[0], items[1] if len(items) > 1 and items[1] else 1)
                if _whole_numbers(items)
                else items[0]
            )
        if name.rpartition(".")[2] in ("array", "asarray", "tensor", "Matrix", "matrix", "list", "tuple"):
            if len(items) == 3 and _whole_numbers(items) and isinstance(items[2], list):  # Matrix(7, 4, [[...]])
                return items[2]
            return items[0] if len(items) == 1 or not isinstance(arguments, list) else arguments
        return {}

    def bracketed(self, depth: int) -> Any:
        """A list, an object, or what stands alone in parentheses."""
        opener = self.take()
        closer = _CLOSERS[opener]
        items: list[Any] = []
        named: dict[str, Any] = {}
        commas = 0
        while (self.kind, self.token) != ("symbol", closer):
            item = self.value(depth + 1)
            if self.kind == "symbol" and self.token in (":", "="):
                self.take()
                key = str(item).removeprefix("name ")
                if key in named:
                    raise self.fault(f"key {key!r} stands twice in one object")
                value = self.value(depth + 1)
                if opener != "(":
                    named[key] = value
            else:
                items.append(item)
            if (self.kind, self.token) == ("symbol", ","):
                commas += 1
                self.take()
            elif (self.kind, self.token) != ("symbol", closer):
                raise self.fault(f"{closer!r} or a comma expected, not {self.token[:12]!r}")
        self.take()
        if opener == "{":
            return named if named else items
        return items[0] if opener == "(" and len(items) == 1 and not commas else items


def _whole_numbers(items: list[Any]) -> bool:
    return all(isinstance(item, int | Fraction) for item in items[:2])
