"""The one tokenizer and parser of the text dialects: numbers, sums, products, lists, tables by name, and calls.

Sums of named blocks become linear forms while they are read, numbers are computed. What a name or a call
means is not known here, and nothing is ever evaluated as code. Every token is accounted for, or is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from .arithmetic import IMAGINARY_UNIT, decimal, inverse, plus, power, times, unit_in_arrays, unit_in_formulas
from .nodes import (
    Call,
    Inverse,
    Item,
    LinearForm,
    Listed,
    Node,
    ProductNode,
    Rows,
    Table,
    Text,
    Total,
    Transposed,
    described,
    is_number,
    key_of,
    scaled,
    sole_name,
)
from .patterns import pattern

MAX_DEPTH = 40
"""Brackets within brackets."""

_NAME = r"[A-Za-z](?>\[\s*\d+\s*,\s*\d+\s*\]|_\d+_\d+|\d+,\d+)|[A-Za-z_]\w*"
_MODULES = r"(?:np|numpy|torch|tf|jnp|cp|sp|sympy|fractions|math|self|this)\."
_TOKEN = pattern(
    rf"(?P<gap>(?:\s|\.\.\.[^\n]*\n)*)(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{{1,3}}(?!\w))?)(?P<unit>[jJ](?!\w))?"
    rf"|(?:{_MODULES})?(?P<name>{_NAME})|(?P<string>\"(?:[^\"\n\\]|\\.){{0,100000}}+\"|(?<![\w\])}}'])'[^'\n]{{0,4000}}')"
    r"|(?P<symbol>:=|->|\*\*|//|[-+*/@()\[\]{},;:=^.'])|$)"
)
_OPERAND = pattern(r"[ \t]*[A-Za-z(]")
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_FUNCTION = pattern(r"(?!\w*\d$)[A-Za-z_]\w+")
"""A name that, with parentheses right after it, is called: `a(b + c)` is a product, `add(b, c)` is not."""

_BLANKS = r"[ \t\r\n]*"  # what JSON skips; \s is more
_INTEGER = rf"{_BLANKS}-?(?:0|[1-9]\d{{0,17}}){_BLANKS}"


def _plain_rows(start: str, end: str) -> str:
    """The pattern of a list of lists of integers."""
    row = rf"{start}{_INTEGER}(?:,{_INTEGER})*{end}"
    return rf"{start}{_BLANKS}{row}{_BLANKS}(?:,{_BLANKS}{row}{_BLANKS})*{end}"


_PLAIN_ROWS = {"[": pattern(_plain_rows(r"\[", r"\]"), re.ASCII), "{": pattern(_plain_rows(r"\{", r"\}"), re.ASCII)}
_AS_JSON = str.maketrans("{}", "[]")


class Parser:
    """Recursive descent over a text from a position on; at the end `start` is that of the token not used.

    With `lines` a statement outside of brackets ends with its line.
    """

    def __init__(
        self,
        text: str,
        position: int = 0,
        unit: Callable[[str], Coefficient | None] = unit_in_arrays,
        lines: bool = False,
    ) -> None:
        self.text, self.position, self.unit_of, self.lines = text, position, unit, lines
        self.kind = self.token = self.gap = ""
        self.imaginary = False
        self.start = position
        self.depth = 0
        self.take()

    def fault(self, message: str) -> SchemeFormatError:
        return SchemeFormatError(message, line=self.text.count("\n", 0, self.start) + 1)

    def unexpected(self, wanted: str) -> SchemeFormatError:
        return self.fault(f"{wanted} expected, not {self.token[:12] or 'the end'!r}")

    def take(self) -> str:
        """Step to the next token; the one just passed is returned."""
        passed = self.token
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position : self.position + 1000].lstrip()
            self.kind, self.token, self.gap = "other", rest[:12], ""
            self.start = self.position
            return passed
        kind = match.lastgroup or "gap"
        self.imaginary = kind == "unit"
        self.kind = "number" if kind == "unit" else "end" if kind == "gap" else kind
        self.gap = match.group("gap")
        self.token = "" if self.kind == "end" else match.group(self.kind)
        self.start, self.position = match.end("gap"), match.end()
        return passed

    def at(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.token in symbols

    def accept(self, *symbols: str) -> str | None:
        return self.take() if self.at(*symbols) else None

    def ended(self) -> bool:
        """Return whether the statement ends here, where it may."""
        return self.kind == "end" or (self.lines and not self.depth and "\n" in self.gap)

    def whole(self) -> Node:
        """The value that all of the text is.

        Raises:
            SchemeFormatError: with the line; something is no value, or is left over.
        """
        node = self.value()
        if self.kind != "end":
            raise self.unexpected("the end")
        return node

    def value(self, in_row: bool = False) -> Node:
        """A sum; `in_row` between brackets, where a blank may part two items."""
        node = self.product(in_row)
        parts: list[Node] = [node]
        while self.at("+", "-") and not self.ended():
            if in_row and self.gap and not self.text[self.position : self.position + 1].isspace():
                break
            sign = -1 if self.take() == "-" else 1
            parts.append(scaled(self.product(in_row), sign))
        if len(parts) == 1:
            return node
        form: LinearForm = {}
        others: list[Node] = []
        for part in parts:
            if isinstance(part, dict) and not isinstance(part, Table):
                for name, value in part.items():
                    form[name] = plus(form[name], value) if name in form else value
            elif is_number(part):
                form[""] = plus(form.get("", 0), part)
            else:
                others.append(part)
        if all(map(is_number, parts)):
            return form[""]
        form = {name: value for name, value in form.items() if value}
        return Total((*others, form) if form else tuple(others)) if others else form

    def product(self, in_row: bool) -> Node:
        """Factors joined by a sign of multiplication or side by side, divided by numbers."""
        scalar: Coefficient = 1
        factors: list[Node] = []
        beside = False
        while self.at("+", "-"):
            scalar = times(scalar, -1 if self.take() == "-" else 1)
        while True:
            grouped = self.at("(")
            node = self.signed(in_row)
            if grouped and is_number(node) and not node:
                node = {}  # (0)(b11) is a product, of an empty sum
            if is_number(node):
                scalar = times(scalar, node)
            elif isinstance(node, ProductNode):
                scalar, beside = times(scalar, node.scalar), False
                factors += node.factors
            else:
                factors.append(node)
                beside = False
            while self.at("/") and not self.ended():
                self.take()
                divisor = self.signed(in_row)
                if is_number(divisor):
                    scalar = times(scalar, inverse(divisor))
                else:
                    factors.append(Inverse(divisor))
            if self.ended():
                break
            dot = self.at(".") and _OPERAND.match(self.text, self.position) is not None
            if dot or self.at("*", "@", "**"):
                self.take()
                beside = False
                continue
            matrix = self.at("[") and not factors and not in_row  # 1/2 [1 0; 0 1]
            if not (self.kind in ("number", "name") or self.at("(") or matrix) or (in_row and self.gap):
                break
            beside = self.kind == "number"  # 1/2 in (a11)(b11) 1/2 c11 is a factor, a number that ends a line is not
        if beside:
            raise self.fault("a number that stands alone after a product")
        if not factors or factors == [{}]:
            return 0 if factors else scalar
        if not scalar and self.unit_of is unit_in_arrays:
            raise self.fault(f"{described(factors[0])} where a number belongs")
        if len(factors) == 1:
            return scaled(factors[0], scalar)
        return ProductNode(scalar, tuple(factors))

    def signed(self, in_row: bool) -> Node:
        sign = 1
        while self.at("+", "-"):
            sign = -sign if self.take() == "-" else sign
        node = self.powered(in_row)
        return node if sign == 1 else scaled(node, -1)

    def powered(self, in_row: bool) -> Node:
        node = self.atom()
        while not self.ended():
            following = self.text[self.position : self.position + 1]
            if self.at("'") and not self.gap:
                self.take()
                node = Transposed(node)
            elif self.at("^") or (self.at("**") and re.match(r"\s*[-+(]?\d", self.text[self.position :])):
                self.take()
                exponent = self.signed(in_row)
                if not is_number(node):
                    raise self.fault(f"a number belongs here, not {described(node)}")
                node = power(node, exponent)
            elif self.at(".") and not self.gap and following.isalpha() and self.names_method():
                self.take()
                name = self.take()
                node = Transposed(node) if name == "T" else Call(f".{name}", *self.arguments(first=(node,)))
            else:
                break
        return node

    def names_method(self) -> bool:
        return re.match(r"T(?!\w)|[a-z_]{2,}\(", self.text[self.position : self.position + 40]) is not None

    def atom(self) -> Node:
        kind, token, imaginary = self.kind, self.token, self.imaginary
        if kind == "number":
            self.take()
            number = decimal(token)
            return times(number, IMAGINARY_UNIT) if imaginary else number
        if kind == "string":
            self.take()
            return Text(token[1:-1])
        if kind == "name":
            return self.named(token)
        if kind == "symbol" and token in _PLAIN_ROWS and (rows := _PLAIN_ROWS[token].match(self.text, self.start)):
            self.position = rows.end()
            self.take()
            return Listed(json.loads(rows.group().translate(_AS_JSON)), token == "{")
        if kind == "symbol" and token in _CLOSERS:
            return self.bracketed()
        raise self.unexpected("a block, a number or '('")

    def named(self, token: str) -> Node:
        """A name, a call, or a part of an array."""
        following = self.text[self.position : self.position + 1]
        if following == "(" and _FUNCTION.fullmatch(token):
            self.take()
            return Call(token, *self.arguments())
        if following == "[":
            match = re.compile(r"\[[^\[\]\n]{0,200}\]").match(self.text, self.position)
            if match is not None:
                self.position = match.end()
                self.take()
                return Item(token, match.group()[1:-1])
        self.take()
        if (unit := self.unit_of(token)) is not None:
            return unit
        return {re.sub(r"\s", "", token): 1}

    def arguments(self, first: tuple[Node, ...] = ()) -> tuple[tuple[Node, ...], dict[str, Any]]:
        """The arguments of a call between parentheses, and those with names."""
        if not self.accept("("):
            raise self.unexpected("'('")
        found, keywords = list(first), {}
        with_brackets = self.nested()
        while not self.at(")"):
            node = self.value()
            if (name := sole_name(node)) and self.accept("="):
                keywords[name] = self.value()
            else:
                found.append(node)
            if not (self.accept(",") or self.at(")")):
                raise self.unexpected("')' or a comma")
        self.depth = with_brackets
        self.take()
        return tuple(found), keywords

    def nested(self) -> int:
        """Go one bracket deeper; the depth before is returned."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fault("parentheses nested too deep")
        return self.depth - 1

    def bracketed(self) -> Node:
        """A list, a table, rows, or what stands alone in parentheses."""
        opener = self.token
        before = self.nested()
        self.take()
        closer = _CLOSERS[opener]
        rows: list[list[Node]] = [[]]
        keyed = Table()
        commas = blanks = lines = semicolons = 0
        while not self.at(closer):
            item = self.value(in_row=opener == "[")
            if opener == "{" and (name := key_of(item)) is not None and self.accept(":", "->", "="):
                if name in keyed:
                    raise self.fault(f"key {name!r} stands twice in one object")
                keyed[name] = self.value()
            else:
                rows[-1].append(item)
            if self.accept(","):
                commas += 1
            elif opener != "(" and self.accept(";"):
                semicolons += 1
                rows.append([])
            elif self.at(closer):
                break
            elif opener == "[" and "\n" in self.gap:
                lines += 1
                rows.append([])
            elif opener == "[" and self.gap:
                blanks += 1
            else:
                raise self.unexpected(f"{closer!r} or a comma")
        self.depth = before
        self.take()
        rows = [row for row in rows if row]
        if keyed:
            if rows:
                raise self.fault("values with and without names in one table")
            return keyed
        if commas and blanks:
            raise self.fault("items parted by blanks and by commas in one list")
        if opener == "(" and len(rows) == 1 and len(rows[0]) == 1 and not commas:
            return rows[0][0]
        if semicolons or blanks or lines:
            printed = not semicolons and all(len(row) == 1 and isinstance(row[0], list | Rows) for row in rows)
            if not printed:
                return Rows(tuple(map(tuple, rows)))
            return Listed([_printed(row[0]) for row in rows], True)
        return Listed([item for row in rows for item in row], opener == "{")


def _printed(node: Node) -> Node:
    """A row of an array as numpy prints it."""
    return Listed(node.rows[0], True) if isinstance(node, Rows) and len(node.rows) == 1 else node


def formula(text: str) -> Node:
    """The value of a formula, in which i and eps are numbers and all other names stand for themselves.

    Raises:
        SchemeFormatError: something in it is not understood.
    """
    return Parser(text, unit=unit_in_formulas).whole()


def number(text: str) -> Coefficient:
    """One number that stands alone: 3, -1/2, 0.5, 1/2-3i, or of the infinitesimal as in -x, 2*eps, xi, e^-1, (x+x2).

    Raises:
        SchemeFormatError: it is none.
    """
    if len(text) < 18 and text.lstrip("-").isdigit() and text.isascii():
        return int(text) if text.count("-") < 2 else -number(text[1:])  # type: ignore[operator]
    node = Parser(re.sub(r"\^\{(-?\d+)\}", r"^\1", text)).whole()
    if not is_number(node):
        raise SchemeFormatError(f"a number belongs here, not {described(node)}")
    return node  # type: ignore[no-any-return]


def values(text: str) -> list[Node]:
    """Every value on the top level of a text; `name =`, `:=`, commas and semicolons between them are skipped.

    Raises:
        SchemeFormatError: with the line, where something is no value.
    """
    parser = Parser(text)
    found: list[Node] = []
    while parser.kind != "end":
        if parser.accept(",", ";", ":"):
            continue
        node = parser.value()
        if sole_name(node) and parser.accept("=", ":="):
            continue
        found.append(node)
    return found
