"""Kauers and Moosbauer's .exp: one product a line, `(a11+a22)*(b11+b22)*(c11+c22)`, C transposed.

The third factor names blocks of the dual of C, so that the scheme is the trilinear form
sum a_ij b_jk c_ki. Factors may lack parentheses, a line may start with a sign and end in `/3`.
Comments start with `#`; those of a `header` are read, and written for targets that are not general.
"""

from __future__ import annotations

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import Target
from .candidates import reading_of_terms
from .expression import LinearForm, block_name, block_of, parse_product, render_linear, times
from .header import parse_header, render_header
from .lines import statements
from .reading import C_TRANSPOSED, Reading, Term

NAME = "exp"
SUFFIX = ".exp"
CONVENTION = C_TRANSPOSED


def sniff(text: str) -> bool:
    """Whether the first line that says something is a product with a block of A and one of C in it."""
    _, statement = next(statements(text[:20_000]), (0, ""))
    return "=" not in statement and all(letter in statement.lower() for letter in "abc")


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line.
    """
    products: list[list[list[Term]]] = []
    for number, statement in statements(text):
        if len(products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products", line=number)
        try:
            products.append(_product(statement))
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, line=number) from None
    if not products:
        raise SchemeFormatError("no products here")
    header = parse_header(text)
    a, b, c = ([product[i] for product in products] for i in range(3))
    return [reading_of_terms(NAME, a, b, c, CONVENTION, target or header.target, ring or header.ring)]


def _product(text: str) -> list[list[Term]]:
    """The terms of the three factors of one line; the scalar goes to the third."""
    product = parse_product(text)
    if len(product.forms) != 3:
        raise SchemeFormatError(
            f"expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22), not {len(product.forms)}"
        )
    return [
        _block_terms(form, letter, product.scalar if letter == "c" else 1)
        for form, letter in zip(product.forms, "abc", strict=True)
    ]


def _block_terms(form: LinearForm, letter: str, scale: Coefficient) -> list[Term]:
    terms: list[Term] = []
    for name, value in form.items():
        block = block_of(name)
        if block is None or block[0] != letter:
            raise SchemeFormatError(f"{name} is not a block of {letter.upper()}")
        terms.append((block[1], block[2], value if scale == 1 else times(value, scale)))
    return terms


def render(scheme: Scheme) -> str:
    """The scheme in this format, C transposed; a header only where the products don't say what they compute."""
    wide = max(scheme.target.shape) > 9
    dual = scheme.w.transposed()
    plain = scheme.target.is_general and not scheme.ring.characteristic
    lines = [] if plain else render_header(scheme)
    for r in range(scheme.rank):
        parts = []
        for factor, letter in ((scheme.u, "a"), (scheme.v, "b"), (dual, "c")):
            terms = [
                (block_name(letter, *divmod(index, factor.cols), wide), value)
                for index, value in factor.coefficients(r)
            ]
            parts.append(f"({render_linear(terms).replace(' ', '')})")
        lines.append("*".join(parts))
    return "\n".join(lines) + "\n"
