"""Plain equations, as papers print them: `m1 = (a11 + a22)(b11 + b22)` and `c11 = m1 + m4 - m5 + m7`.

Intermediate sums may have names too (`s1 = a21 + a22`). Comment lines start with `#`; those of a
`header` say what can't be seen from the equations.
"""

from __future__ import annotations

import re

from ...errors import LcmaError, SchemeFormatError
from ..factor import Factor
from ..gaussian import Number
from ..inexact import Coefficient
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import Target
from .candidates import any_inexact, approximate, flat_rows
from .expression import (
    IMAGINARY,
    LinearForm,
    block_name,
    block_of,
    parse_linear,
    parse_product,
    plain_product,
    plus,
    render_linear,
    times,
)
from .header import parse_header, render_header
from .reading import C, Reading, Term, factor_of, ring_of

NAME = "equations"
SUFFIX = ".txt"
CONVENTION = C

Block = tuple[str, int, int]
Form = dict[Block, Coefficient]
"""A linear form over blocks ("a" or "b", row, col) or over products ("m", r, 0)."""


def sniff(text: str) -> bool:
    """Whether some line is an assignment."""
    return any("=" in line and not line.lstrip().startswith("#") for line in text.splitlines()[:200])


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme of equations.

    Raises:
        SchemeFormatError: with the line, where something is not an equation or a name has no value.
    """
    header = parse_header(text)
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        statement = line.split("#", 1)[0].strip().rstrip(";,")
        if not statement:
            continue
        try:
            reader.statement(statement)
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, error.file, number) from None
    try:
        target = target or header.target or reader.inferred_target()
    except SchemeFormatError:
        raise
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None
    return [reader.reading(target, ring or header.ring, header.name)]


class _Reader:
    """The values of names, line by line."""

    def __init__(self) -> None:
        self.values: dict[str, Form] = {}
        self.products: list[tuple[Form, Form]] = []
        self.outputs: dict[tuple[int, int], Form] = {}

    def statement(self, text: str) -> None:
        if text.count("=") != 1:
            raise SchemeFormatError("expected one equation a line, such as m1 = (a11 + a22)(b11 + b22)")
        name, _, right = (part.strip() for part in text.replace(":=", "=").partition("="))
        if not re.fullmatch(r"[A-Za-z][\w\[\], ]*", name):
            raise SchemeFormatError(f"{name!r} is not a name")
        if name == IMAGINARY:
            raise SchemeFormatError("i is the imaginary unit and can't be set")
        block = block_of(name)
        if block and block[0] in "ab":
            raise SchemeFormatError(f"{name} is a block of an operand and can't be set")
        value = self.expression(right)
        if block and block[0] == "c":
            if block[1:] in self.outputs:
                raise SchemeFormatError(f"{name} is set twice")
            if any(kind != "m" for kind, _, _ in value):
                raise SchemeFormatError(f"{name} must be a sum of products")
            self.outputs[block[1:]] = value
        elif name in self.values:
            raise SchemeFormatError(f"{name} is set twice")
        else:
            self.values[name] = value

    def expression(self, text: str) -> Form:
        """The form of a right side; one that multiplies an A sum by a B sum is a new product."""
        product = plain_product(text)
        if product is None or len(product.forms) == 1:
            try:
                linear = parse_linear(text)
            except SchemeFormatError as linear_error:
                try:
                    product = parse_product(text)
                except SchemeFormatError:
                    raise linear_error from None
            else:
                return self.resolved(linear)
        if len(product.forms) != 2:
            raise SchemeFormatError(f"a product must have two factors, not {len(product.forms)}")
        left, right = (self.resolved(form) for form in product.forms)
        if {kind for kind, _, _ in left} - {"a"} or {kind for kind, _, _ in right} - {"b"}:
            raise SchemeFormatError("the left factor must be a sum of blocks of A, the right one of B")
        if len(self.products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products")
        self.products.append(({block: times(value, product.scalar) for block, value in left.items()}, right))
        return {("m", len(self.products) - 1, 0): 1}

    def resolved(self, form: LinearForm) -> Form:
        """A linear form with every name replaced by its value."""
        total: Form = {}
        for name, coefficient in form.items():
            if name in self.values:
                part = self.values[name]
            elif (block := block_of(name)) and block[0] in "ab":
                part = {block: 1}
            else:
                raise SchemeFormatError(f"{name} has no value yet")
            for key, value in part.items():
                total[key] = plus(total.get(key, 0), times(coefficient, value))
        return {key: value for key, value in total.items() if value}

    def inferred_target(self) -> Target:
        """The general target whose grids hold every block that is named."""
        if not (self.products and self.outputs):
            raise SchemeFormatError("no scheme here: products such as m1 = (a11)(b11), and outputs such as c11 = m1")
        sizes = {"a": [0, 0], "b": [0, 0], "c": [0, 0]}
        named = [block for pair in self.products for form in pair for block in form]
        for letter, row, col in [*named, *(("c", row, col) for row, col in self.outputs)]:
            sizes[letter] = [max(sizes[letter][0], row + 1), max(sizes[letter][1], col + 1)]
        m, k, n = (
            max(sizes[x][i], sizes[y][j]) for x, i, y, j in (("a", 0, "c", 0), ("a", 1, "b", 0), ("b", 1, "c", 1))
        )
        return Target.general(m, k, n)

    def reading(self, target: Target, ring: Ring | None, name: str) -> Reading:
        m, k, n = target.shape
        outputs: list[list[Term]] = [[] for _ in self.products]
        for (row, col), form in self.outputs.items():
            for (_, r, _), value in form.items():
                outputs[r].append((row, col, value))
        factors = ([_terms(left) for left, _ in self.products], [_terms(right) for _, right in self.products], outputs)
        if any_inexact(value for factor in factors for terms in factor for _, _, value in terms):
            return approximate(NAME, flat_rows(factors, (k, n, n)), (C,), target, ring)
        u, v, w = (
            factor_of(factor, rows, cols, label)
            for factor, rows, cols, label in zip(factors, (m, k, m), (k, n, n), "ABC", strict=True)
        )
        return Reading(NAME, ((C, Scheme(target, u, v, w, ring or ring_of((u, v, w)), name)),))


def _terms(form: Form) -> list[Term]:
    return [(row, col, value) for (_, row, col), value in form.items()]


def render(scheme: Scheme) -> str:
    """The equations of a scheme; what `parse` reads back as the same scheme."""
    wide = max(scheme.target.shape) > 9
    lines = render_header(scheme)
    for r in range(scheme.rank):
        left, right = (
            render_linear(_named_terms(factor, r, letter, wide))
            for factor, letter in ((scheme.u, "a"), (scheme.v, "b"))
        )
        lines.append(f"m{r + 1} = ({left})({right})")
    outputs: dict[int, list[tuple[str, Number]]] = {}
    for r in range(scheme.rank):
        for index, value in scheme.w.coefficients(r):
            outputs.setdefault(index, []).append((f"m{r + 1}", value))
    for index in sorted(outputs):
        lines.append(f"{block_name('c', *divmod(index, scheme.w.cols), wide)} = {render_linear(outputs[index])}")
    return "\n".join(lines) + "\n"


def _named_terms(factor: Factor, r: int, letter: str, wide: bool) -> list[tuple[str, Number]]:
    return [(block_name(letter, *divmod(index, factor.cols), wide), value) for index, value in factor.coefficients(r)]
