"""Linear forms of blocks and their products, as papers and scheme files print them: `-2*a11 + b_1_2/3`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ...errors import SchemeFormatError
from .arithmetic import unit_in_formulas
from .nodes import LinearForm, Node, ProductNode, Table, Total, described, is_number, scaled
from .syntax import formula

_NAME = r"[A-Za-z](?>\[\s*\d+\s*,\s*\d+\s*\]|_\d+_\d+|\d+,\d+|_?\w*)"
_PLAIN_TERM = rf"\s*(?:(\d{{1,18}})\s*\*\s*)?({_NAME})\s*"
_PLAIN_SUM = rf"\s*[-+]?{_PLAIN_TERM}(?:[-+]{_PLAIN_TERM})*"
_BLOCK = r"([abcxyzABCXYZ])(?:(\d)(\d)|\[\s*(\d+)\s*,\s*(\d+)\s*\]|_(\d+)_(\d+)|(\d+),(\d+))"


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
    if any(unit_in_formulas(name) is not None for name in total):
        return None
    return {name: value for name, value in total.items() if value}


def plain_product(text: str) -> ProductNode | None:
    """The product form of plain sums in parentheses side by side, or joined by '*'; None for any other text."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return None
    forms = [plain_sum(part) for part in re.split(r"\)\s*\*?\s*\(", text[1:-1])]
    found = tuple(form for form in forms if form)  # an empty sum is a fault, which the parser reports
    return ProductNode(1, found) if len(found) == len(forms) else None


def parse_linear(text: str) -> LinearForm:
    """The linear form of `a11 + 2*a22 - a12/3`.

    Raises:
        SchemeFormatError: not a linear form.
    """
    return plain if (plain := plain_sum(text)) is not None else checked_form(formula(text))


def checked_form(node: Node) -> LinearForm:
    """A node that must be a sum of names.

    Raises:
        SchemeFormatError: it is not.
    """
    if is_number(node) or (isinstance(node, dict) and "" in node):
        raise SchemeFormatError("a bare number where a sum of blocks belongs")
    if isinstance(node, ProductNode | Total):
        raise SchemeFormatError("a product of sums where a sum of blocks belongs")
    if not isinstance(node, dict) or isinstance(node, Table):
        raise SchemeFormatError(f"a sum of blocks expected, not {described(node)}")
    return node


def products_of(node: Node) -> Iterator[ProductNode]:
    """The product forms that a node adds up, of any number of factors.

    Raises:
        SchemeFormatError: not products of linear forms.
    """
    if isinstance(node, Total):
        for part in node.parts:
            yield from products_of(part)
    elif isinstance(node, ProductNode) and len(node.factors) == 1 and isinstance(node.factors[0], Total):
        for part in node.factors[0].parts:
            yield from products_of(scaled(part, node.scalar))
    elif isinstance(node, ProductNode):
        yield ProductNode(node.scalar, tuple(map(checked_form, node.factors)))
    else:
        yield ProductNode(1, (checked_form(node),))


def parse_products(text: str) -> Iterator[ProductNode]:
    """The product forms that `-(a11 + a22)*(b11 + b22)/2 + ...` adds up, of any number of factors.

    Raises:
        SchemeFormatError: not products of linear forms.
    """
    plain = plain_product(text)
    return iter((plain,)) if plain is not None else products_of(formula(text))
