"""Linear forms and their products, as papers and scheme files print them: `-2*a11 + b_1_2/3`.

A hand-written tokenizer and a recursive parser; nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...errors import SchemeFormatError
from ..gaussian import MAX_BITS, Gaussian, Number, bits, gaussian
from ..inexact import Coefficient, Inexact, inexact

LinearForm = dict[str, Coefficient]
"""Name -> coefficient, without zeros."""

IMAGINARY = "i"
"""The name of the imaginary unit, which no block and no sum may bear."""

_NAME = r"[A-Za-z](?>\[\s*\d+\s*,\s*\d+\s*\]|_\d+_\d+|\d+,\d+|_?\w*)"
_TOKEN = rf"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>{_NAME})|(?P<symbol>[-+*/()]))"
_PLAIN_TERM = rf"\s*(?:(\d{{1,18}})\s*\*\s*)?({_NAME})\s*"
_PLAIN_SUM = rf"\s*[-+]?{_PLAIN_TERM}(?:[-+]{_PLAIN_TERM})*"
_EPSILON = ("eps", "epsilon")
_RESERVED = {IMAGINARY, *_EPSILON}
_SYNONYMS = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00b7": "*", "\u22c5": "*", "\u00d7": "*"})
_BLOCK = r"([abcxyzABCXYZ])(?:(\d)(\d)|\[\s*(\d+)\s*,\s*(\d+)\s*\]|_(\d+)_(\d+)|(\d+),(\d+))"


MAX_BINARY_PLACES = 20
"""Binary places up to which a decimal is an exact fraction."""

FAST = 1 << 62
"""Products of two integers below this need no look at their size."""

MAX_DIGITS = 1_000
"""Digits of one number: few enough to be cheap."""


@dataclass(frozen=True)
class ProductForm:
    """A scalar times a sequence of linear forms."""

    scalar: Coefficient
    forms: tuple[LinearForm, ...]


def times(x: Coefficient, y: Coefficient) -> Coefficient:
    """The product of two numbers of any kind.

    Raises:
        SchemeFormatError: it has more than MAX_BITS bits.
    """
    if type(x) is int and type(y) is int and -FAST < x < FAST and -FAST < y < FAST:
        return x * y
    if isinstance(x, Inexact) or isinstance(y, Inexact):
        return inexact(x) * y
    product = gaussian(x) * y if isinstance(x, Gaussian) or isinstance(y, Gaussian) else x * y
    if bits(product) > MAX_BITS:
        raise SchemeFormatError(f"a coefficient or denominator beyond 2^{MAX_BITS}")
    return product


def plus(x: Coefficient, y: Coefficient) -> Coefficient:
    """The sum of two numbers of any kind."""
    if isinstance(x, Inexact) or isinstance(y, Inexact):
        return inexact(x) + y
    return gaussian(x) + y if isinstance(x, Gaussian) or isinstance(y, Gaussian) else x + y


@lru_cache(maxsize=1024)
def decimal(text: str) -> int | Fraction | Inexact:
    """A number as it is written: exact if it is an integer or a small binary fraction, else a rounded one."""
    if text.isdigit():
        return int(text)
    number = Fraction(text)
    if number.denominator & (number.denominator - 1) or number.denominator > 1 << MAX_BINARY_PLACES:
        return Inexact(complex(float(text)))
    return int(number) if number.denominator == 1 else number


@lru_cache(maxsize=1 << 16)
def block_of(name: str) -> tuple[str, int, int] | None:
    """(letter, row, column), as written, of a block's name: a11, a[10,2], a_10_2 or a10,2; None if it is not one.

    Raises:
        SchemeFormatError: a name such as a112, which could be two blocks.
    """
    if match := re.fullmatch(_BLOCK, name):
        row, col = (int(group) for group in match.groups()[1:] if group is not None)
        return match.group(1).lower(), row, col
    if name[0] in "abcABC" and re.fullmatch(r"\d{3,}", name[1:]):
        raise SchemeFormatError(f"block {name} is ambiguous; write {name[0]}[i,j]")
    return None


def unit_of(name: str) -> Coefficient | None:
    """The number that a name is: the imaginary unit, or the infinitesimal; None for any other name."""
    if name == IMAGINARY:
        return Gaussian(Fraction(0), Fraction(1))
    return Inexact(Fraction(1), 1) if name in _EPSILON else None


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of every token; kinds are number, name and symbol.

    Raises:
        SchemeFormatError: a character that no token starts with.
    """
    text = text.translate(_SYNONYMS).rstrip()
    position, matched = 0, re.compile(_TOKEN).match
    while position < len(text):
        match = matched(text, position)
        if not match:
            raise SchemeFormatError(f"unexpected {text[position:].lstrip()[:12]!r}")
        position = match.end()
        for kind, value in match.groupdict().items():
            if value is not None:
                yield kind, value


class Parser:
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

    def number(self) -> int | Fraction | Inexact:
        kind, text = self.take()
        if kind != "number" or len(text) > MAX_DIGITS:
            raise SchemeFormatError(f"a number of at most {MAX_DIGITS} digits expected, not {text[:12]!r}")
        return decimal(text)

    def inverse(self) -> Coefficient:
        """One over the number, or the power of e, that follows a '/'."""
        if self.peek()[1] in _EPSILON:
            self.take()
            return Inexact(Fraction(1), -1)
        if not (divisor := self.number()):
            raise SchemeFormatError("division by 0")
        return inexact(divisor).inverse() if isinstance(divisor, Inexact) else Fraction(1) / divisor

    def linear(self) -> LinearForm:
        """Sum of terms up to a closing parenthesis or the end; a number has the name ""."""
        sign = -1 if self.accept("+", "-") == "-" else 1
        return self.sum_from(self.product(), sign)

    def group(self) -> ProductForm:
        """Parse the content of parentheses: a sum, a number, or a whole product of sums, which may be negated."""
        sign = -1 if self.accept("+", "-") == "-" else 1
        term = self.product()
        if len(term.forms) > 1 and self.peek()[1] == ")":
            return ProductForm(times(term.scalar, sign), term.forms)
        form = self.sum_from(term, sign)
        if set(form) == {""}:
            return ProductForm(form[""], ())
        if "" in form:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return ProductForm(1, (form,))

    def sum_from(self, term: ProductForm, sign: int) -> LinearForm:
        """The sum that begins with a term."""
        total: LinearForm = {}
        while True:
            if len(term.forms) > 1:
                raise SchemeFormatError("a product of sums where a sum of blocks belongs")
            for name, value in (term.forms[0] if term.forms else {"": 1}).items():
                total[name] = plus(total.get(name, 0), times(times(term.scalar, value), sign))
            if not (symbol := self.accept("+", "-")):
                break
            sign = -1 if symbol == "-" else 1
            term = self.product()
        return {name: value for name, value in total.items() if value}

    def sum_of_blocks(self) -> LinearForm:
        """A linear form in which no number stands alone."""
        form = self.linear()
        if "" in form:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return form

    def product(self) -> ProductForm:
        """Factors side by side or joined by '*', divided by numbers."""
        scalar: Coefficient = 1
        forms: list[LinearForm] = []
        expected = True
        while True:
            kind, value = self.peek()
            if kind == "number":
                scalar = times(scalar, self.number())
            elif kind == "name":
                self.take()
                if (unit := unit_of(value)) is not None:
                    scalar = times(scalar, unit)
                else:
                    forms.append({value: 1})
            elif self.accept("("):
                inner = self.group()
                scalar = times(scalar, inner.scalar)
                forms += inner.forms
                if not self.accept(")"):
                    raise SchemeFormatError(f"')' expected, not {self.peek()[1]!r}")
            elif expected:
                raise SchemeFormatError(f"a block, a number or '(' expected, not {value or 'the end'!r}")
            else:
                break
            expected = False
            while self.accept("/"):
                scalar = times(scalar, self.inverse())
            if self.accept("*"):
                expected = True
        return ProductForm(scalar, tuple(forms))


def plain_sum(text: str) -> LinearForm | None:
    """The linear form of a text with nothing but names, integers before them and signs; None for any other text.

    Almost all sums in scheme files are of this kind, and the parser takes ten times as long.
    """
    if not re.fullmatch(_PLAIN_SUM, text):
        return None
    terms = re.findall(rf"([-+]?){_PLAIN_TERM}", text)
    total = {name: int(f"{sign}{size or 1}") if size else -1 if sign == "-" else 1 for sign, size, name in terms}
    if len(total) != len(terms):
        total = dict.fromkeys(total, 0)
        for sign, size, name in terms:
            total[name] += int(f"{sign}{size or 1}")
    if not _RESERVED.isdisjoint(total):
        return None
    return {name: value for name, value in total.items() if value}


def plain_product(text: str) -> ProductForm | None:
    """The product form of plain sums in parentheses side by side, or joined by '*'; None for any other text."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return None
    forms = [plain_sum(part) for part in re.split(r"\)\s*\*?\s*\(", text[1:-1])]
    found = tuple(form for form in forms if form)  # an empty sum is a fault, which the parser reports
    return ProductForm(1, found) if len(found) == len(forms) else None


def parse_linear(text: str) -> LinearForm:
    """The linear form of `a11 + 2*a22 - a12/3`.

    Raises:
        SchemeFormatError: not a linear form.
    """
    if (plain := plain_sum(text)) is not None:
        return plain
    parser = Parser(text)
    form = parser.sum_of_blocks()
    if parser.peek()[0] != "end":
        raise SchemeFormatError(f"unexpected {parser.peek()[1]!r}")
    return form


def parse_products(text: str) -> Iterator[ProductForm]:
    """The product forms that `-(a11 + a22)*(b11 + b22)/2 + ...` adds up, of any number of factors.

    Raises:
        SchemeFormatError: not products of linear forms.
    """
    parser = Parser(text)
    sign = -1 if parser.accept("+", "-") == "-" else 1
    while True:
        form = parser.product()
        yield ProductForm(times(form.scalar, sign), form.forms)
        symbol = parser.accept("+", "-")
        if not symbol:
            break
        sign = -1 if symbol == "-" else 1
    if parser.peek()[0] != "end":
        raise SchemeFormatError(f"unexpected {parser.peek()[1]!r}")


def block_name(letter: str, row: int, col: int, wide: bool) -> str:
    """The name of a block, 0-based in, 1-based out; `wide` where an index of the scheme exceeds 9."""
    return f"{letter}[{row + 1},{col + 1}]" if wide else f"{letter}{row + 1}{col + 1}"


def render_linear(terms: Iterable[tuple[str, Number]]) -> str:
    """The text of a linear form, such as `a11 - 2*a22 + (1/2-i)*a12`; `0` for none."""
    text = ""
    for name, value in terms:
        if isinstance(value, Gaussian) and value.imag:
            text += f"{' + ' if text else ''}({value})*{name}"
            continue
        number = value.real if isinstance(value, Gaussian) else value
        sign = "-" if number < 0 else "+" if text else ""
        size = abs(number)
        text += f"{' ' if text else ''}{sign}{' ' if text else ''}{'' if size == 1 else f'{size}*'}{name}"
    return text or "0"
