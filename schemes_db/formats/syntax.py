"""The one tokenizer and parser of text, which computes while it reads: numbers, forms, lists, matrices, tables, calls.

A `Meaning` defines the values of names, calls and products of linear forms; nothing is evaluated as code. Every token
is accounted for, or is a fault.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from .arithmetic import (
    IMAGINARY_UNIT,
    LinearForm,
    decimal,
    inverse,
    is_number,
    power,
    times,
    total,
    unit_in_arrays,
)
from .arrays import Array
from .patterns import pattern

Value = Any
"""A number, a LinearForm, a str, a list, a Table or an array."""

MAX_DEPTH = 40
"""Brackets within brackets."""

_NAME = r"[A-Za-z]+\[\s*\d+\s*,\s*\d+\s*\]|[A-Za-z](?>_\d+_\d+|\d+,\d+)|[A-Za-z_]\w*"
_MODULES = r"(?:np|numpy|torch|tf|jnp|cp|sp|sympy|fractions|math)\."
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3}(?=[ijIJ]?(?!\w)))?"
_TOKEN = pattern(
    rf"(?P<gap>\s*(?:\.\.\.[^\n]*\n\s*)*)(?:(?P<number>{_NUMBER}(?:[jJ](?!\w))?)(?:(?<=\.\d)[fF](?!\w))?"
    rf"|(?:{_MODULES})?(?P<name>{_NAME})|(?P<string>\"(?:[^\"\n\\]|\\.){{0,100000}}+\"|(?<![\w\])}}'])'[^'\n]{{0,4000}}')"
    r"|(?P<symbol>:=|->|\.'|\*\*|//|[-+*/@()\[\]{}<>|,;:=^.'])|(?P<end>$)|(?P<other>.{1,12}))"
)
_USED = pattern(rf"{_NUMBER}(?:[jJ](?!\w))?|\.(?:T(?!\w)|[a-z_]{{2,}}\()|(?:{_MODULES})?({_NAME})(\()?")
_INTEGERS = r"\s*-?\d{1,18}\s*(?:,\s*-?\d{1,18}\s*)+"
_ROW = pattern(rf"(?a)\[{_INTEGERS}\]|\{{{_INTEGERS}\}}")
"""A list of integers, read at once as almost all lists of files are so."""

_OPERAND = pattern(r"[ \t]*[A-Za-z(]")
_CLOSERS = {"[": "]", "(": ")", "{": "}", "<": ">"}
_SIGNS = ("+", "-")
_TIMES = ("*", "@", "**")
_AFTER_ATOM = frozenset(("'", ".'", "^", "**", "."))
_WITHIN_PRODUCT = frozenset(("/", "//", ".", "(", "[", *_TIMES))
"""Symbols that go on with an atom, and with a product."""

_FUNCTION = pattern(r"(?!\w*\d$)[A-Za-z_]\w+")
"""A name that, with parentheses right after it, is called: `a(b + c)` is a product, `add(b, c)` is not."""

_EXPONENT = pattern(r"\s{0,40}[-+(]?\d")
_METHOD = pattern(r"T(?!\w)|[a-z_]{2,}\(")
_BRACE = pattern(r"\s*\{")
_PART = pattern(r"\[[^\[\]\n]{0,200}\]")
BY_COLUMNS = "reshape by columns"
"""The call `reshape(..)` of Fortran, MATLAB and Julia; that of numpy has a module or an array before it."""

_KEYWORD = pattern(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*([\w.\"']*)\s*(?=[,)])")


class Table(dict[str, Value]):
    """The values of `{name: value, ...}`."""


class Braces(list[Value]):
    """The items of a list in braces, which a number before it multiplies; it repeats a list in brackets."""


class Joined(np.ndarray):
    """A matrix of rows that blanks or semicolons part: a list of such is one matrix, as in MATLAB."""


class Meaning:
    """Defines the values of names, calls and products: imaginary units are numbers, other names variables."""

    zero: Value = 0
    """What (0) is: a number, or an empty sum."""

    unit = staticmethod(unit_in_arrays)

    def named(self, name: str) -> Value:
        unit = self.unit(name)
        return LinearForm({name: 1}) if unit is None else unit

    def text(self, text: str) -> Value:
        return text

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        raise SchemeFormatError(f"{name.lstrip('.')}(...) is not understood")

    def multiplied(self, left: Value, right: Value) -> Value:
        """The product of two values that are no numbers."""
        raise SchemeFormatError(f"a product of {described(left)} and {described(right)} is not understood")


NUMBERS = Meaning()


class Parser:
    """Recursive descent over a text from a position on; `mark` is the token if it is a symbol, else nothing."""

    def __init__(self, text: str, meaning: Meaning = NUMBERS, position: int = 0) -> None:
        self.text, self.meaning, self.position = text, meaning, position
        self.kind = self.token = self.mark = ""
        self.depth = 0
        self.take()

    def unexpected(self, wanted: str) -> SchemeFormatError:
        return SchemeFormatError(f"{wanted} expected, not {self.token[:12] or 'the end'!r}")

    def take(self) -> str:
        """Step to the next token; the one just passed is returned."""
        passed = self.token
        match: Any = _TOKEN.match(self.text, self.position)  # anything is a token, if only one of kind "other"
        self.match, self.kind, self.position = match, match.lastgroup, match.end()
        self.token = match[self.kind]
        self.mark = self.token if self.kind == "symbol" else ""
        return passed

    @property
    def start(self) -> int:
        """Where the token begins."""
        return int(self.match.end("gap"))

    @property
    def gap(self) -> str:
        """The blanks before the token."""
        return str(self.match["gap"])

    def accept(self, *symbols: str) -> str | None:
        return self.take() if self.mark in symbols else None

    def whole(self) -> Value:
        """The value that all of the text is.

        Raises:
            SchemeFormatError: something is no value, or is left over.
        """
        value = self.value()
        if self.kind != "end":
            raise self.unexpected("the end")
        return value

    def value(self, in_row: bool = False) -> Value:
        """A sum; `in_row` between brackets, where a blank may part two items."""
        parts = [self.product(in_row)]
        while self.mark in _SIGNS:
            if in_row and self.gap and not self.text[self.position : self.position + 1].isspace():
                break
            sign = -1 if self.take() == "-" else 1
            part = self.product(in_row)
            parts.append(part if sign == 1 else scaled(part, sign))
        return parts[0] if len(parts) == 1 else total(parts)

    def product(self, in_row: bool) -> Value:
        """Factors joined by a sign of multiplication or side by side, divided by numbers."""
        scalar: Coefficient = 1
        result: Value = None
        beside = False
        while True:
            grouped = self.mark == "("
            value = self.factor(in_row)
            if grouped and is_number(value) and not value:
                value = self.meaning.zero
            if is_number(value):
                scalar = times(scalar, value)
            else:
                result, beside = value if result is None else self.meaning.multiplied(result, value), False
            if self.mark and self.mark not in _WITHIN_PRODUCT:
                break
            while self.accept("/") or (in_row and is_number(value) and self.accept("//")):
                scalar = times(scalar, inverse(number_in(self.factor(in_row), "a divisor")))
            dot = self.mark == "." and _OPERAND.match(self.text, self.position) is not None
            if dot or self.mark in _TIMES:
                self.take()
                beside = False
                continue
            matrix = self.mark == "[" and result is None and not in_row  # 1/2 [1 0; 0 1]
            if not (self.kind in ("number", "name") or self.mark == "(" or matrix) or (in_row and self.gap):
                break
            beside = self.kind == "number"  # 1/2 in (a11)(b11) 1/2 c11 is a factor, a number that ends a line is not
        if beside:
            raise SchemeFormatError("a number that stands alone after a product")
        return scalar if result is None else scaled(result, scalar)

    def factor(self, in_row: bool) -> Value:
        """An atom with signs before it, and transposes, powers and methods after it."""
        sign = 1
        while self.mark in _SIGNS:
            sign = -sign if self.take() == "-" else sign
        value = self.atom()
        while (mark := self.mark) in _AFTER_ATOM:
            if mark in ("'", ".'") and not self.gap:
                self.take()
                value = transposed(value)
            elif mark == "^" or (mark == "**" and _EXPONENT.match(self.text, self.position)):
                self.take()
                value = power(number_in(value, described(value)), self.factor(in_row))
            elif mark == "." and not self.gap and _METHOD.match(self.text, self.position):
                self.take()
                name = self.take()
                value = transposed(value) if name == "T" else self.call(f".{name}", [value])
            else:
                break
        return value if sign == 1 else scaled(value, sign)

    def atom(self) -> Value:
        kind, token = self.kind, self.token
        if kind == "name":
            return self.name(token)
        if kind == "number":
            self.take()
            return times(decimal(token[:-1]), IMAGINARY_UNIT) if token[-1] in "jJ" else decimal(token)
        if kind == "string":
            self.take()
            return self.meaning.text(token[1:-1])
        if kind == "symbol" and (row := _ROW.match(self.text, self.start)):
            self.position = row.end()
            self.take()
            return (Braces if token == "{" else list)(map(int, row.group()[1:-1].split(",")))
        if self.mark in _CLOSERS:
            return self.bracketed()
        raise self.unexpected("a block, a number or '('")

    def name(self, token: str) -> Value:
        """A name, or a call; a part of an array is not understood."""
        after = self.text[self.position : self.position + 1]
        if (after == "(" and _FUNCTION.fullmatch(token)) or (after == "[" and token == "Transpose"):
            bare = self.text.startswith(token, self.start)
            self.take()
            return self.call(BY_COLUMNS if bare and token == "reshape" else token, [])
        if token == "matrix" and _BRACE.match(self.text, self.position):  # of Macaulay2
            self.take()
            return self.meaning.called(token, [self.atom()], {})
        if after == "[" and (part := _PART.match(self.text, self.position)):
            raise SchemeFormatError(f"{token}{part.group()[:22]} is not understood")
        self.take()
        return self.meaning.named("".join(token.split()) if "[" in token else token)

    def call(self, name: str, arguments: list[Value]) -> Value:
        """A call, from its opening parenthesis or bracket on."""
        keywords: dict[str, str] = {}
        if self.mark not in ("(", "["):
            raise self.unexpected("'('")
        closer = _CLOSERS[self.token]
        self.nested()
        while self.mark != closer:
            if keyword := _KEYWORD.match(self.text, self.start):
                keywords[keyword[1]] = keyword[2].strip("\"'").rpartition(".")[2]
                self.position = keyword.end()
                self.take()
            else:
                arguments.append(self.value())
            if not (self.accept(",") or self.mark == closer):
                raise self.unexpected(f"{closer!r} or a comma")
        self.depth -= 1
        self.take()
        return self.meaning.called(name, arguments, keywords)

    def nested(self) -> None:
        """Go into a bracket."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SchemeFormatError("parentheses nested too deep")
        self.take()

    def bracketed(self) -> Value:
        """A list, a table, rows, or what stands alone in parentheses."""
        opener = self.token
        self.nested()
        closer = _CLOSERS[opener]
        rows: list[list[Value]] = [[]]
        keyed = Table()
        marks: set[str] = set()
        while self.mark != closer:
            key = self.token[1:-1] if self.kind == "string" else None
            item = self.value(in_row=opener == "[")
            key = name_of(item) or None if key is None else key
            if opener == "{" and key is not None and self.accept(":", "->", "="):
                if key in keyed:
                    raise SchemeFormatError(f"key {key!r} stands twice in one object")
                keyed[key] = self.value()
            else:
                rows[-1].append(item)
            if self.mark == closer:
                break
            mark = self.accept(",") or self.accept("|" if opener == "<" else ";" if opener != "(" else ",")
            if mark is None and opener == "[" and self.gap:
                mark = "\n" if "\n" in self.gap else " "
            if mark is None:
                raise self.unexpected(f"{closer!r} or a comma")
            marks.add(mark)
            if mark in (";", "\n"):
                rows.append([])
        self.depth -= 1
        self.take()
        rows = [row for row in rows if row]
        if keyed:
            if rows:
                raise SchemeFormatError("values with and without names in one table")
            return keyed
        if opener == "<":  # of Maple: < a | b > is a row, < a, b > a column
            if len(marks) > 1:
                raise SchemeFormatError("columns and rows in one pair of angle brackets")
            return joined([[item] for item in rows[0]] if "," in marks else rows).view(np.ndarray)
        if marks >= {",", " "}:
            raise SchemeFormatError("items parted by blanks and by commas in one list")
        if opener == "(" and len(rows) == 1 and len(rows[0]) == 1 and "," not in marks:
            return rows[0][0]
        if marks - {","}:
            printed = ";" not in marks and all(len(row) == 1 and isinstance(row[0], list | Joined) for row in rows)
            if not printed:
                return joined(rows)
            return Braces(
                row[0][0].tolist() if isinstance(row[0], Joined) and len(row[0]) == 1 else row[0] for row in rows
            )
        items = [item for row in rows for item in row]
        if items and all(isinstance(item, Joined) for item in items):
            return joined([items])
        return Braces(items) if opener == "{" else items


def scaled(value: Value, factor: Coefficient) -> Value:
    """A number times a value."""
    if type(factor) is int and factor == 1:
        return value
    if is_number(value):
        return times(value, factor)
    if isinstance(value, LinearForm):
        return LinearForm({key: new for key, old in value.items() if (new := times(old, factor))})
    if isinstance(value, Braces | np.ndarray):
        return np.frompyfunc(lambda entry: scaled(entry, factor), 1, 1)(grid(value))
    raise SchemeFormatError(f"a number times {described(value)}, which some languages scale and others repeat")


def grid(value: Value) -> Array:
    """A list of numbers or forms, or of such lists of one length, as an array; an empty one for other things."""
    try:
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    except ValueError:  # ragged lists
        return np.array(())
    return np.array(()) if array.size and isinstance(array.flat[0], list) else array


def transposed(value: Value) -> Value:
    """A matrix with rows and columns exchanged."""
    if grid(value).ndim != 2:
        raise SchemeFormatError("a transpose of something that is no matrix")
    return grid(value).T


def joined(rows: list[list[Value]]) -> Array:
    """The matrix of rows of numbers or forms, or of matrices beside and below each other."""
    try:
        return np.block([[np.atleast_2d(grid(item)) for item in row] for row in rows]).view(Joined)
    except ValueError:
        raise SchemeFormatError("rows of unlike lengths, or matrices of unlike heights beside each other") from None


def plain(value: Value) -> Value:
    """A value with its arrays as nested lists.

    Raises:
        SchemeFormatError: a name or a call in it has no value.
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, LinearForm):
        raise SchemeFormatError(f"{described(value)} is {'no number' if name_of(value) else 'not understood'}")
    if isinstance(value, dict):
        return Table({name: plain(item) for name, item in value.items()})
    simple = not isinstance(value, list) or all(
        type(item) is int or (type(item) is list and set(map(type, item)) <= {int}) for item in value
    )
    return value if simple else [plain(item) for item in value]


def name_of(value: Value) -> str:
    """The name that a value is, or nothing."""
    return str(next(iter(value))) if isinstance(value, LinearForm) and list(value.values()) == [1] else ""


def described(value: Value) -> str:
    """What a value is, in a few words."""
    return name_of(value)[:20] or ("a number" if is_number(value) else "a list, a text, or a sum or product of names")


def number_in(value: Value, where: str) -> Coefficient:
    """A value that must be a number.

    Raises:
        SchemeFormatError: it is none.
    """
    if not is_number(value):
        raise SchemeFormatError(f"{where} is no number")
    return value


def number(text: str) -> Coefficient:
    """One number that stands alone: 3, -1/2, 0.5, 1/2-3i, or of the infinitesimal as in -x, 2*eps, xi, e^-1, (x+x2).

    Raises:
        SchemeFormatError: it is none.
    """
    if len(text) < 18 and text.lstrip("-").isdigit() and text.isascii():
        return int(text) if text.count("-") < 2 else -number(text[1:])  # type: ignore[operator]
    value = Parser(re.sub(r"\^\{(-?\d+)\}", r"^\1", text)).whole()
    if not is_number(value):
        raise SchemeFormatError(f"a number belongs here, not {described(value)}")
    return value


def words(text: str) -> list[str]:
    """The names in a text, in order, without those of calls."""
    return [name for name, called in _USED.findall(text) if name and not (called and _FUNCTION.fullmatch(name))]
