"""Kauers and Moosbauer's .exp: one product a line, `(a11+a22)*(b11+b22)*(c11+c22)`, C transposed.

The third factor names blocks of the dual of C, so that the scheme is the trilinear form
sum a_ij b_jk c_ki. Factors may lack parentheses, a line may start with a sign and end in `/3`.
"""

from __future__ import annotations

from fractions import Fraction

from ...errors import SchemeFormatError
from ..ring import Ring
from ..scheme import MAX_RANK, Scheme
from ..target import Target
from .expression import LinearForm, block_name, block_of, parse_product, render_linear
from .reading import C_TRANSPOSED, C, Reading, Term, factor_of, ring_of

NAME = "exp"
SUFFIX = ".exp"
CONVENTION = C_TRANSPOSED


def sniff(text: str) -> bool:
    """Whether the first line that says something is a product with a block of A and one of C in it."""
    for line in text.splitlines():
        statement = line.split("#", 1)[0].strip()
        if statement:
            return "=" not in statement and all(letter in statement.lower() for letter in "abc")
    return False


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme; both conventions become candidates where the sizes allow both.

    Raises:
        SchemeFormatError: with the line.
    """
    products: list[list[list[Term]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        statement = line.split("#", 1)[0].strip().rstrip(",;")
        if not statement:
            continue
        if len(products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products", line=number)
        try:
            products.append(_product(statement))
        except SchemeFormatError as error:
            raise SchemeFormatError(error.message, line=number) from None
    if not products:
        raise SchemeFormatError("no products here")
    a, b, c = ([product[i] for product in products] for i in range(3))
    sizes = [_extent(factor) for factor in (a, b, c)]
    k = max(sizes[0][1], sizes[1][0])
    m, n = sizes[0][0], sizes[1][1]
    candidates = []
    for convention, (rows, cols) in ((C_TRANSPOSED, (n, m)), (C, (m, n))):
        if target is None and (sizes[2][0] > rows or sizes[2][1] > cols):
            continue
        shape = target or Target.general(m, k, n)
        flipped = convention == C_TRANSPOSED
        outputs = [[(j, i, value) if flipped else (i, j, value) for i, j, value in terms] for terms in c]
        try:
            u, v = factor_of(a, shape.m, shape.k, "A"), factor_of(b, shape.k, shape.n, "B")
            w = factor_of(outputs, shape.m, shape.n, "C")
            candidates.append((convention, Scheme(shape, u, v, w, ring or ring_of((u, v, w)))))
        except SchemeFormatError as error:
            failure = error
    if not candidates:
        if target is not None:
            raise failure
        raise SchemeFormatError(
            f"A is {m} x {k} and B is {k} x {n}, but the third factor has {sizes[2][0]} x {sizes[2][1]} blocks"
        )
    return [Reading(NAME, tuple(candidates))]


def _product(text: str) -> list[list[Term]]:
    """The terms of the three factors of one line; the scalar goes to the third."""
    product = parse_product(text)
    if len(product.forms) != 3:
        raise SchemeFormatError(
            f"expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22), not {len(product.forms)}"
        )
    return [
        _block_terms(form, letter, product.scalar if letter == "c" else Fraction(1))
        for form, letter in zip(product.forms, "abc", strict=True)
    ]


def _block_terms(form: LinearForm, letter: str, scale: Fraction) -> list[Term]:
    terms = []
    for name, value in form.items():
        block = block_of(name)
        if block is None or block[0] != letter:
            raise SchemeFormatError(f"{name} is not a block of {letter.upper()}")
        terms.append((block[1], block[2], value * scale))
    return terms


def _extent(factor: list[list[Term]]) -> tuple[int, int]:
    return tuple(max((term[axis] + 1 for terms in factor for term in terms), default=0) for axis in (0, 1))  # type: ignore[return-value]


def render(scheme: Scheme) -> str:
    """The scheme in this format, C transposed."""
    wide = max(scheme.target.shape) > 9
    dual = scheme.w.transposed()
    lines = []
    for r in range(scheme.rank):
        parts = []
        for factor, letter in ((scheme.u, "a"), (scheme.v, "b"), (dual, "c")):
            terms = [
                (block_name(letter, *divmod(index, factor.cols), wide), Fraction(value, factor.denominator))
                for index, value in factor.terms(r)
            ]
            parts.append(f"({render_linear(terms).replace(' ', '')})")
        lines.append("*".join(parts))
    return "\n".join(lines) + "\n"
