"""Nested lists of exact numbers, as Python, Mathematica and Maple print them: `[[1, -1/2], [0.5+0.5j, 0]]`.

A tokenizer and a recursive parser of bounded depth; nothing is ever evaluated as code.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...errors import SchemeFormatError
from ..gaussian import Gaussian, gaussian, simplest
from ..inexact import EPSILON, MAX_POWER, Coefficient, Inexact
from .expression import MAX_DIGITS, decimal, plus, times
from .patterns import pattern

MAX_DEPTH = 10

_TOKEN = (
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)(?P<unit>[ijIJ]\b)?"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<symbol>:=|\*\*|[\[\]{}(),=+\-*/:;^]))"
)
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_UNITS = ("i", "j", "I", "J")

_BLANKS = r"[ \t\r\n]*"  # what JSON skips; \s is more
_INTEGER = rf"{_BLANKS}-?(?:0|[1-9]\d{{0,17}}){_BLANKS}"


def _plain_rows(start: str, end: str) -> str:
    """The pattern of a list of lists of integers."""
    row = rf"{start}{_INTEGER}(?:,{_INTEGER})*{end}"
    return rf"{start}{_BLANKS}{row}{_BLANKS}(?:,{_BLANKS}{row}{_BLANKS})*{end}"


_LISTS = _plain_rows(r"\[", r"\]")
_PLAIN_ROWS = {
    "[": pattern(_LISTS, re.ASCII),
    "{": pattern(_plain_rows(r"\{", r"\}"), re.ASCII),
}
_SIZE = rf"{_BLANKS}(\d{{1,4}}){_BLANKS}"
_PLAIN_MATRIX = pattern(rf"\({_SIZE},{_SIZE},{_BLANKS}({_LISTS}){_BLANKS}\)", re.ASCII)
"""The arguments of `Matrix(2, 2, [[1,0],[0,1]])`, which are most of a Maple file."""

_NUMBERS = {int, Fraction, Gaussian, Inexact}
_POWER = rf"([-+]?(?:\d[\d./]{{0,30}}\*?)?)({'|'.join(EPSILON)})(?:\^\{{?(-?\d{{1,2}})\}}?)?"
_AS_JSON = str.maketrans("{}", "[]")


@dataclass(frozen=True)
class Call:
    """A name, with its arguments where it has any; keyword arguments are left out."""

    name: str
    arguments: tuple[Node, ...] = ()


Node = Coefficient | list["Node"] | Call


def values(text: str) -> list[Node]:
    """Every value on the top level of a text; `name =`, `:=`, commas and semicolons around them are skipped.

    Raises:
        SchemeFormatError: with the line, where something is no value.
    """
    return _Parser(text).top()


def first_value(text: str, position: int) -> tuple[Node, int]:
    """The value that begins at a position of a text, and the position after it.

    Raises:
        SchemeFormatError: with the line, where something is no value.
    """
    parser = _Parser(text, position)
    node = parser.factor(0)
    return node, parser.start if parser.kind != "end" else len(text)


class _Parser:
    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.match = re.compile(_TOKEN).match
        self.position = position
        self.kind = self.token = self.unit = ""
        self.start = 0
        self.take()

    def fault(self, message: str) -> SchemeFormatError:
        return SchemeFormatError(message, line=self.text.count("\n", 0, self.start) + 1)

    def take(self) -> tuple[str, str]:
        """Step to the next token; the one just passed is returned."""
        passed = self.kind, self.token
        match = self.match(self.text, self.position)
        if match:
            kind = match.lastgroup or ""
            self.unit = match.group("unit") or ""
            self.kind = "number" if kind == "unit" else kind
            self.token = match.group(self.kind)
            self.start, self.position = match.start(self.kind), match.end()
            return passed
        rest = self.text[self.position : self.position + 1000].lstrip()
        if rest or self.text[self.position :].strip():
            self.start = self.position
            raise self.fault(f"unexpected {(rest or '?')[:12]!r}")
        self.kind = self.token = "end"
        return passed

    def top(self) -> list[Node]:
        found: list[Node] = []
        while self.kind != "end":
            if self.token in (",", ";", ":") and self.kind == "symbol":
                self.take()
                continue
            value = self.value(0)
            if self.token in ("=", ":=") and isinstance(value, Call) and not value.arguments:
                self.take()
                continue
            found.append(value)
        return found

    def value(self, depth: int) -> Node:
        """A list, a call, or a sum of products of numbers."""
        if depth > MAX_DEPTH:
            raise self.fault("brackets nested too deep")
        sign = self.sign()
        node = self.product(depth)
        if depth and self.token != "=":
            node = self.powered(node)
        if sign == 1 and (self.kind != "symbol" or self.token not in "+-"):
            return node
        total = _scaled(self.number(node), sign)
        while self.kind == "symbol" and self.token in "+-":
            sign = self.sign()
            total = _plain(plus(total, _scaled(self.number(self.product(depth)), sign)))
        return total

    def sign(self) -> int:
        sign = 1
        while self.kind == "symbol" and self.token in ("+", "-"):
            sign = -sign if self.take()[1] == "-" else sign
        return sign

    def number(self, node: Node) -> Coefficient:
        node = self.powered(node)
        if isinstance(node, list | Call):
            what = "a list" if isinstance(node, list) else f"{node.name}{'(...)' if node.arguments else ''}"
            raise self.fault(f"a number belongs here, not {what}")
        return node

    def product(self, depth: int) -> Node:
        node = self.factor(depth)
        while self.kind == "symbol" and self.token in ("*", "/"):
            operator = self.take()[1]
            left, right = self.number(node), self.number(self.factor(depth))
            if operator == "/":
                if not right:
                    raise self.fault("division by 0")
                right = (right if isinstance(right, Inexact) else gaussian(right)).inverse()
            node = _plain(times(left, right))
        return node

    def factor(self, depth: int) -> Node:
        """A value that may be raised to a whole power."""
        node = self.base(depth)
        if self.kind == "symbol" and self.token in ("^", "**"):
            self.take()
            power = self.number(self.base(depth) if self.token == "(" else self.signed_number(depth))
            if not isinstance(power, int) or abs(power) > MAX_POWER:
                raise self.fault(f"a power must be a whole number of at most {MAX_POWER}")
            base = self.number(self.powered(node))
            if not base and power < 0:
                raise self.fault("division by 0")
            node = _power(base, power)
        return node

    def signed_number(self, depth: int) -> Node:
        sign = self.sign()
        return _scaled(self.number(self.base(depth)), sign)

    def powered(self, node: Node) -> Node:
        """A name of the infinitesimal as the number it is."""
        if isinstance(node, Call) and not node.arguments and node.name in EPSILON:
            return Inexact(Fraction(1), EPSILON[node.name])
        return node

    def base(self, depth: int) -> Node:
        kind, token, unit = self.kind, self.token, self.unit
        if kind == "number":
            self.take()
            number = self.exact(token)
            return _imaginary(number) if unit else number
        if kind == "name":
            if arguments := _PLAIN_MATRIX.match(self.text, self.position):
                self.position = arguments.end()
                self.take()
                rows, cols, entries = arguments.groups()
                return Call(token, (int(rows), int(cols), json.loads(entries)))
            self.take()
            if self.kind == "symbol" and self.token == "(":
                return Call(token, tuple(self.items(depth)))
            return Gaussian(Fraction(0), Fraction(1)) if token in _UNITS else Call(token)
        if kind == "symbol" and token in _PLAIN_ROWS and (rows := _PLAIN_ROWS[token].match(self.text, self.start)):
            self.position = rows.end()
            self.take()
            integers: list[Node] = json.loads(rows.group().translate(_AS_JSON))
            return integers
        if kind == "symbol" and token in _CLOSERS:
            trailing = len(items := self.items(depth)) == 1 and token == "("
            return items[0] if trailing else items
        raise self.fault(f"a number or a bracket expected, not {token!r}")

    def items(self, depth: int) -> list[Node]:
        """The items between an opening bracket and its closing one, separated by commas."""
        closer = _CLOSERS[self.take()[1]]
        found: list[Node] = []
        while not (self.kind == "symbol" and self.token == closer):
            node = self.value(depth + 1)
            if self.kind == "symbol" and self.token == "=":
                self.take()
                self.value(depth + 1)
            else:
                found.append(node)
            if self.kind == "symbol" and self.token == ",":
                self.take()
            elif not (self.kind == "symbol" and self.token == closer):
                raise self.fault(f"{closer!r} or a comma expected, not {self.token!r}")
        self.take()
        return found

    def exact(self, token: str) -> int | Fraction | Inexact:
        """A number as it is written; a decimal that is no small binary fraction is a rounded one."""
        if len(token) > MAX_DIGITS:
            raise self.fault(f"a number of more than {MAX_DIGITS} digits")
        return decimal(token)


def _power(base: Coefficient, power: int) -> Coefficient:
    result: Coefficient = 1
    factor = base if power >= 0 else (base if isinstance(base, Inexact) else gaussian(base)).inverse()
    for _ in range(abs(power)):
        result = times(result, factor)
    return _plain(result)


def _scaled(value: Coefficient, sign: int) -> Coefficient:
    return value if sign == 1 else _plain(times(value, -1))


@lru_cache(maxsize=1024)
def _imaginary(value: Coefficient) -> Coefficient:
    return _plain(times(value, Gaussian(Fraction(0), Fraction(1))))


def _plain(value: Coefficient) -> Coefficient:
    """The simplest form of an exact number; an inexact one as it is."""
    return value if isinstance(value, Inexact) else simplest(value)


def matrix(node: Node) -> list[list[Coefficient]] | None:
    """The rows of a node that is a matrix of numbers with equal rows, else None."""
    if not isinstance(node, list) or not node:
        return None
    rows: list[list[Coefficient]] = []
    for row in node:
        if not isinstance(row, list) or not row:
            return None
        if not set(map(type, row)) <= _NUMBERS or (rows and len(row) != len(rows[0])):
            return None
        rows.append(row)  # type: ignore[arg-type]  # numbers only: the types are checked at once, which is faster
    return rows


def number(text: str) -> Coefficient:
    """One number that stands alone: 3, -1/2, 0.5, 1/2-3i, or a power of the infinitesimal as in -x, 2*eps, xi, e^-1.

    Raises:
        SchemeFormatError: it is none.
    """
    if match := re.fullmatch(_POWER, text):
        scale, name, power = match.groups()
        factor = number(f"{scale}1" if scale in ("", "+", "-") else scale.rstrip("*"))
        return times(factor, Inexact(Fraction(1), EPSILON[name] * int(power or 1)))
    found = values(text)
    if len(found) != 1 or isinstance(found[0], list | Call):
        raise SchemeFormatError(f"{text[:20]!r} is not a number")
    return found[0]
