"""The JSON of the FastMatrixMultiplication database: dense rows u, v, w, the third factor by C transposed."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

from ...errors import LcmaError, SchemeFormatError
from ..factor import Factor
from ..ring import Z2, Q, Ring
from ..scheme import Scheme
from ..target import Target
from . import equations
from .candidates import Row, reading_of_rows
from .expression import block_name, render_linear
from .reading import (
    C_TRANSPOSED,
    Reading,
    parse_coefficient,
    refuse_gaussian,
    render_coefficient,
)
from .strict_json import loads, need
from .tables import check_setting

NAME = "fmm-json"
SUFFIX = ".json"
CONVENTION = C_TRANSPOSED

_TEXT_FIELDS = ("multiplications", "elements", "complexity")


def sniff(text: str) -> bool:
    """Return whether this is a JSON object with sizes n and rows u."""
    return text.lstrip().startswith("{") and all(f'"{key}"' in text for key in ("n", "m", "u"))


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one full scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: a field is missing, rows are ragged, or sizes disagree.
    """
    data = loads(text)
    if not isinstance(data, dict):
        raise SchemeFormatError("a scheme must be a JSON object")
    sizes = need(data, "n", list)
    if len(sizes) != 3 or not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        raise SchemeFormatError('field "n" must be three sizes, such as [2, 2, 2]')
    try:
        shape = Target.general(*sizes)
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None
    if target is not None and target.shape != shape.shape:
        raise SchemeFormatError(f"the file says {shape}, not {target}")
    rank = need(data, "m", int)
    m, k, n = shape.shape
    u, v, w = (_rows(data, key, rank, size) for key, size in (("u", m * k), ("v", k * n), ("w", m * n)))
    ring = ring or (Z2 if data.get("z2") is True else None)
    known = {"n", "m", "z2", "u", "v", "w", *_TEXT_FIELDS}
    for key in data.keys() - known:
        check_setting(key, data[key])
    notes = tuple(f"unknown field {key!r} ignored" for key in data if key not in known)
    reading = reading_of_rows(NAME, (u, v, w), shape.shape, CONVENTION, target, ring, notes)
    reading = equations.agreeing(reading, equations.listed_text(data, "multiplications", "elements"))
    return [dataclasses.replace(reading, declared=ring or (Q if data.get("z2") is False else None))]


def _rows(data: dict[str, Any], key: str, rank: int, size: int) -> list[Row]:
    rows = need(data, key, list)
    if len(rows) != rank:
        raise SchemeFormatError(f"{key} has {len(rows)} rows, but the rank m is {rank}")
    result: list[Row] = []
    for r, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != size:
            found = len(row) if isinstance(row, list) else "no list"
            raise SchemeFormatError(f"{key} row {r + 1} must have {size} entries, not {found}")
        if set(map(type, row)) != {int}:
            row = [parse_coefficient(value, f"{key} row {r + 1}") for value in row]
        result.append([(index, value) for index, value in enumerate(row) if value])
    return result


def render(scheme: Scheme) -> str:
    """The scheme in this format, C transposed.

    Raises:
        SchemeFormatError: the target is not a general one, which the format cannot say.
    """
    if not scheme.target.is_general:
        raise SchemeFormatError(
            f"{NAME} knows general targets only, not {scheme.target}; write {scheme.target} as lcma-json"
        )
    refuse_gaussian(scheme, NAME)
    wide = max(scheme.target.shape) > 9
    factors = dict(zip("uvw", (scheme.u, scheme.v, scheme.w.transposed()), strict=True))
    named = {
        key: [_named(factor, r, letter, wide) for r in range(scheme.rank)]
        for (key, factor), letter in zip(factors.items(), "abc", strict=True)
    }
    products = [f"m{r + 1} = ({named['u'][r]}) * ({named['v'][r]})" for r in range(scheme.rank)]
    outputs: dict[int, list[tuple[str, Fraction]]] = {}
    for r in range(scheme.rank):
        for index, value in scheme.w.terms(r):
            outputs.setdefault(index, []).append((f"m{r + 1}", Fraction(value, scheme.w.denominator)))
    elements = [
        f"{block_name('c', *divmod(index, scheme.target.n), wide)} = {render_linear(outputs[index])}"
        for index in sorted(outputs)
    ]
    head = {
        "n": list(scheme.target.shape),
        "m": scheme.rank,
        "z2": scheme.ring == Z2,
        "multiplications": products,
        "elements": elements,
    }
    parts = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, factor in factors.items():
        rows = ",\n".join("        " + json.dumps(row) for row in _dense(factor))
        parts.append(f"    {json.dumps(key)}: [\n{rows}\n    ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _named(factor: Factor, r: int, letter: str, wide: bool) -> str:
    return render_linear(
        [
            (block_name(letter, *divmod(index, factor.cols), wide), Fraction(value, factor.denominator))
            for index, value in factor.terms(r)
        ]
    )


def _dense(factor: Factor) -> list[list[int | str]]:
    rows: list[list[int | str]] = []
    for r in range(factor.rank):
        row: list[int | str] = [0] * factor.blocks
        for index, value in factor.coefficients(r):
            row[index] = render_coefficient(value)
        rows.append(row)
    return rows
