"""Linear forms and their products, as papers and scheme files print them: `-2*a11 + b_1_2/3`.

A hand-written tokenizer and a recursive parser; nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ...errors import SchemeFormatError

LinearForm = dict[str, Fraction]
"""Name -> coefficient, without zeros."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z](?:\[\s*\d+\s*,\s*\d+\s*\]|_\d+_\d+|\d+,\d+|_?\w*))|(?P<symbol>[-+*/()]))"
)
_SYNONYMS = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00b7": "*", "\u22c5": "*", "\u00d7": "*"})
_BLOCK = re.compile(r"([abcABC])(?:(\d)(\d)|\[\s*(\d+)\s*,\s*(\d+)\s*\]|_(\d+)_(\d+)|(\d+),(\d+))")


MAX_DIGITS = 40
"""Digits of one number: more than any coefficient that fits the ring's limit, few enough to be cheap."""


@dataclass(frozen=True)
class ProductForm:
    """A scalar times a sequence of linear forms."""

    scalar: Fraction
    forms: tuple[LinearForm, ...]


def block_of(name: str) -> tuple[str, int, int] | None:
    """(letter, row, column), 0-based, of a block's name: a11, a[10,2], a_10_2 or a10,2; None if it is not one.

    Raises:
        SchemeFormatError: a name such as a112, which could be two blocks, or an index 0.
    """
    if match := _BLOCK.fullmatch(name):
        row, col = (int(group) for group in match.groups()[1:] if group is not None)
        if not (row and col):
            raise SchemeFormatError(f"block {name}: indices start at 1")
        return match.group(1).lower(), row - 1, col - 1
    if name[0] in "abcABC" and re.fullmatch(r"\d{3,}", name[1:]):
        raise SchemeFormatError(f"block {name} is ambiguous; write {name[0]}[i,j]")
    return None


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of every token; kinds are number, name and symbol.

    Raises:
        SchemeFormatError: a character that no token starts with.
    """
    text = text.translate(_SYNONYMS)
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if not match:
            raise SchemeFormatError(f"unexpected {text[position:].lstrip()[:12]!r}")
        position = match.end()
        for kind, value in match.groupdict().items():
            if value is not None:
                yield kind, value


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.items = list(tokens(text))
        self.position = 0

    def peek(self) -> tuple[str, str]:
        return self.items[self.position] if self.position < len(self.items) else ("end", "")

    def take(self) -> tuple[str, str]:
        item = self.peek()
        self.position += 1
        return item

    def accept(self, *symbols: str) -> str | None:
        kind, value = self.peek()
        if kind == "symbol" and value in symbols:
            self.position += 1
            return value
        return None

    def number(self) -> int:
        kind, text = self.take()
        if kind != "number" or len(text) > MAX_DIGITS:
            raise SchemeFormatError(f"a number of at most {MAX_DIGITS} digits expected, not {text[:12]!r}")
        return int(text)

    def linear(self) -> LinearForm:
        """Sum of terms up to a closing parenthesis or the end."""
        total: LinearForm = {}
        sign = -1 if self.accept("+", "-") == "-" else 1
        while True:
            term = self.product()
            if len(term.forms) != 1 and (term.forms or term.scalar):
                raise SchemeFormatError("a sum of products, or a bare number, where a sum of blocks belongs")
            for form in term.forms:
                for name, value in form.items():
                    total[name] = total.get(name, Fraction(0)) + sign * term.scalar * value
            if not (symbol := self.accept("+", "-")):
                break
            sign = -1 if symbol == "-" else 1
        return {name: value for name, value in total.items() if value}

    def product(self) -> ProductForm:
        """Factors side by side or joined by '*', divided by numbers."""
        scalar, forms = Fraction(1), []
        expected = True
        while True:
            kind, value = self.peek()
            if kind == "number":
                scalar *= self.number()
            elif kind == "name":
                self.take()
                forms.append({value: Fraction(1)})
            elif self.accept("("):
                forms.append(self.linear())
                if not self.accept(")"):
                    raise SchemeFormatError(f"')' expected, not {self.peek()[1]!r}")
            elif expected:
                raise SchemeFormatError(f"a block, a number or '(' expected, not {value or 'the end'!r}")
            else:
                break
            expected = False
            while self.accept("/"):
                if not (divisor := self.number()):
                    raise SchemeFormatError("division by 0")
                scalar /= divisor
            if self.accept("*"):
                expected = True
        return ProductForm(scalar, tuple(forms))


def parse_linear(text: str) -> LinearForm:
    """The linear form of `a11 + 2*a22 - a12/3`.

    Raises:
        SchemeFormatError: not a linear form.
    """
    parser = _Parser(text)
    form = parser.linear()
    if parser.peek()[0] != "end":
        raise SchemeFormatError(f"unexpected {parser.peek()[1]!r}")
    return form


def parse_product(text: str) -> ProductForm:
    """The product form of `-(a11 + a22)*(b11 + b22)/2`, of any number of factors.

    Raises:
        SchemeFormatError: not a product of linear forms.
    """
    parser = _Parser(text)
    sign = -1 if parser.accept("+", "-") == "-" else 1
    form = parser.product()
    if parser.peek()[0] != "end":
        raise SchemeFormatError(f"unexpected {parser.peek()[1]!r}")
    return ProductForm(sign * form.scalar, form.forms)


def block_name(letter: str, row: int, col: int, wide: bool) -> str:
    """The name of a block, 0-based in, 1-based out; `wide` where an index of the scheme exceeds 9."""
    return f"{letter}[{row + 1},{col + 1}]" if wide else f"{letter}{row + 1}{col + 1}"


def render_linear(terms: list[tuple[str, Fraction]]) -> str:
    """The text of a linear form, such as `a11 - 2*a22`; `0` for none."""
    text = ""
    for name, value in terms:
        sign = "-" if value < 0 else "+" if text else ""
        size = abs(value)
        text += f"{' ' if text else ''}{sign}{' ' if text else ''}{'' if size == 1 else f'{size}*'}{name}"
    return text or "0"
