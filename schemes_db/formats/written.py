"""Schemes written as text: equations, trilinear products, the database's JSON, Maple's triads, sparse matrices."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...errors import SchemeFormatError
from ..factor import Factor
from ..gaussian import Gaussian, Number, simplest
from ..ring import Z2
from ..scheme import Scheme
from .reading import render_coefficient


def header(scheme: Scheme) -> list[str]:
    """The comment lines that `header.parse_header` reads back."""
    lines = [f"# target: {scheme.target.name}", f"# ring: {scheme.ring.name}"]
    return [*lines, f"# name: {scheme.name}"] if scheme.name else lines


def equations(scheme: Scheme) -> str:
    """The equations of a scheme; what `equations.parse` reads back as the same scheme."""
    products, outputs = _formulas(scheme, "m{} = ({})({})")
    return "\n".join([*header(scheme), *products, *outputs]) + "\n"


def exp(scheme: Scheme) -> str:
    """The products with C transposed; a header only where they don't say what they compute."""
    plain = scheme.target.is_general and not scheme.ring.characteristic
    sums = zip(*_sums(scheme, (scheme.u, scheme.v, scheme.w.transposed())), strict=True)
    products = ["*".join(f"({form.replace(' ', '')})" for form in forms) for forms in sums]
    return "\n".join([*([] if plain else header(scheme)), *products]) + "\n"


def fmm_json(scheme: Scheme) -> str:
    """The JSON of the FastMatrixMultiplication database, C transposed.

    Raises:
        SchemeFormatError: the target is not a general one, which the format cannot say, or a coefficient is not real.
    """
    _require_plain(scheme, "fmm-json")
    products, outputs = _formulas(scheme, "m{} = ({}) * ({})")
    head = {
        "n": list(scheme.target.shape),
        "m": scheme.rank,
        "z2": scheme.ring == Z2,
        "multiplications": products,
        "elements": outputs,
    }
    parts = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, factor in zip("uvw", (scheme.u, scheme.v, scheme.w.transposed()), strict=True):
        rows = ",\n".join("        " + json.dumps(_dense(factor, r)) for r in range(factor.rank))
        parts.append(f"    {json.dumps(key)}: [\n{rows}\n    ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def maple(scheme: Scheme) -> str:
    """A Maple triad set, one triad a line.

    Raises:
        SchemeFormatError: the target is not a general one, or a coefficient is not real.
    """
    _require_plain(scheme, "maple")
    triads = []
    for r in range(scheme.rank):
        parts = []
        for factor in (scheme.u, scheme.v, scheme.w.transposed()):
            entries, cols = [str(value) for value in _dense(factor, r)], factor.cols
            rows = ",".join(f"[{','.join(entries[at : at + cols])}]" for at in range(0, len(entries), cols))
            parts.append(f"Matrix({factor.rows}, {cols}, [{rows}])")
        triads.append(f"Triad([{', '.join(parts)}])")
    return "Tensor:=TriadSet([\n" + ",\n".join(triads) + "\n]):\n"


def sms(scheme: Scheme) -> str:
    """The three sparse matrices L, R and P of a scheme, one after the other.

    Raises:
        SchemeFormatError: the target is not a general one, or a coefficient is not real.
    """
    _require_plain(scheme, "sms")
    lines: list[str] = []
    for label, factor in zip("LRP", scheme.factors, strict=True):
        entries = [((r + 1, at + 1), value) for r in range(scheme.rank) for at, value in factor.coefficients(r)]
        sizes = (scheme.rank, factor.blocks)
        if label == "P":
            entries = sorted(((place[::-1], value) for place, value in entries), key=lambda entry: entry[0])
            sizes = sizes[::-1]
        lines += [f"# {label} of {scheme.target}, {scheme.rank} products", f"{sizes[0]} {sizes[1]} R"]
        lines += [f"{row} {col} {render_coefficient(value)}" for (row, col), value in entries]
        lines.append("0 0 0")
    return "\n".join(lines) + "\n"


def _require_plain(scheme: Scheme, format: str) -> None:
    """Raise SchemeFormatError for a scheme that a format of real numbers and general targets can't say."""
    if scheme.gaussian:
        raise SchemeFormatError(f"{format} can't write coefficients that are not real; write {scheme!r} as lcma-json")
    if not scheme.target.is_general:
        raise SchemeFormatError(f"{format} knows general targets only; write {scheme.target} as lcma-json")


def _formulas(scheme: Scheme, product: str) -> tuple[list[str], list[str]]:
    """The products, each in the given spelling, and the outputs as sums of them."""
    left, right = _sums(scheme, (scheme.u, scheme.v))
    products = [product.format(r + 1, *sums) for r, sums in enumerate(zip(left, right, strict=True))]
    outputs: dict[int, list[tuple[str, Number]]] = {}
    for r in range(scheme.rank):
        for index, value in scheme.w.coefficients(r):
            outputs.setdefault(index, []).append((f"m{r + 1}", value))
    names = _names("c", scheme.w, scheme)
    return products, [f"{names[index]} = {render_linear(outputs[index])}" for index in sorted(outputs)]


def _sums(scheme: Scheme, factors: Iterable[Factor]) -> list[list[str]]:
    """The sums of blocks of every product, for factors of A, B and C."""
    found = []
    for factor, letter in zip(factors, "abc", strict=False):
        names = _names(letter, factor, scheme)
        forms = ([(names[index], value) for index, value in factor.coefficients(r)] for r in range(scheme.rank))
        found.append(list(map(render_linear, forms)))
    return found


def _names(letter: str, factor: Factor, scheme: Scheme) -> list[str]:
    """The names of a factor's blocks, with brackets where an index of the scheme exceeds 9."""
    name = "{}[{},{}]" if max(scheme.target.shape) > 9 else "{}{}{}"
    return [name.format(letter, i + 1, j + 1) for i in range(factor.rows) for j in range(factor.cols)]


def _dense(factor: Factor, r: int) -> list[int | str]:
    row: list[int | str] = [0] * factor.blocks
    for index, value in factor.coefficients(r):
        row[index] = render_coefficient(value)
    return row


def render_linear(terms: Iterable[tuple[str, Number]]) -> str:
    """The text of a linear form, such as `a11 - 2*a22 + (1/2-i)*a12`; `0` for none."""
    text = ""
    for name, value in terms:
        number = simplest(value)
        if isinstance(number, Gaussian):
            text += f"{' + ' if text else ''}({number})*{name}"
            continue
        sign = "-" if number < 0 else "+" if text else ""
        size = abs(number)
        text += f"{' ' if text else ''}{sign}{' ' if text else ''}{'' if size == 1 else f'{size}*'}{name}"
    return text or "0"
