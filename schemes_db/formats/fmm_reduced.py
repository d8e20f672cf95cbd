"""The reduced JSON of the FastMatrixMultiplication database: a program with shared sums, expanded to U, V, W.

`u_fresh` are sums that get indices from n1 n2 on, `u` the m left factors over blocks and fresh sums;
`v` alike. `w_fresh` and the n3 n1 rows of `w` (C transposed) are sums over products and fresh sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import LcmaError, SchemeFormatError
from ..gaussian import MAX_BITS, Number, bits, gaussian, simplest
from ..ring import Z2, Ring
from ..scheme import MAX_RANK
from ..target import Target
from . import equations
from .candidates import reading_of_rows
from .reading import C_TRANSPOSED, Reading, parse_coefficient
from .strict_json import loads, need
from .tables import check_setting

NAME = "fmm-reduced"
SUFFIX = ".json"
CONVENTION = C_TRANSPOSED

MAX_TERMS = 4_000_000
"""Terms of all sums together once expanded; shared sums of shared sums can double without end."""

Form = dict[int, Number]

_TEXT_FIELDS = ("multiplications", "elements", "complexity", "n", "m", "z2")


def sniff(text: str) -> bool:
    """Return whether this is a JSON object with fresh sums."""
    return text.lstrip().startswith("{") and all(f'"{key}"' in text for key in ("n", "m", "u_fresh"))


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one reduced scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: a field is missing, a sum names what is not there yet, or sums grow without end.
    """
    data = loads(text)
    if not isinstance(data, dict):
        raise SchemeFormatError("a scheme must be a JSON object")
    sizes, rank = need(data, "n", list), need(data, "m", int)
    if len(sizes) != 3 or not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        raise SchemeFormatError('field "n" must be three sizes, such as [2, 2, 2]')
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    try:
        m, k, n = Target.general(*sizes).shape
    except LcmaError as error:
        raise SchemeFormatError(str(error)) from None
    budget = [MAX_TERMS]
    u, v = (_expanded(data, key, inputs, rank, budget) for key, inputs in (("u", m * k), ("v", k * n)))
    outputs = _expanded(data, "w", rank, m * n, budget)
    w: list[list[tuple[int, Number]]] = [[] for _ in range(rank)]
    for entry, form in enumerate(outputs):
        for r, value in form.items():
            w[r].append((entry, value))
    ring = ring or (Z2 if data.get("z2") is True else None)
    known = {*_TEXT_FIELDS, *(f"{key}{end}" for key in "uvw" for end in ("", "_fresh"))}
    for key in data.keys() - known:
        check_setting(key, data[key])
    notes = tuple(f"unknown field {key!r} ignored" for key in data if key not in known)
    rows = ([form.items() for form in u], [form.items() for form in v], w)
    reading = reading_of_rows(NAME, rows, (m, k, n), CONVENTION, target, ring, notes)
    return [equations.agreeing(reading, equations.listed_text(data, "multiplications", "elements"))]


def _expanded(data: dict[str, Any], key: str, inputs: int, count: int, budget: list[int]) -> Sequence[Form]:
    """The sums of a key as forms over the inputs alone."""
    fresh = data.get(f"{key}_fresh", [])
    rows = need(data, key, list)
    if not isinstance(fresh, list) or len(rows) != count:
        raise SchemeFormatError(f"{key} must have {count} rows, not {len(rows)}, and {key}_fresh must be a list")
    made: list[Form] = []
    for number, row in enumerate(fresh):
        made.append(_form(row, made, inputs, f"{key}_fresh row {number + 1}", budget))
    return [_form(row, made, inputs, f"{key} row {number + 1}", budget) for number, row in enumerate(rows)]


def _form(row: object, made: list[Form], inputs: int, where: str, budget: list[int]) -> Form:
    if not isinstance(row, list):
        raise SchemeFormatError(f"{where} must be a list of index and value")
    total: Form = {}
    for item in row:
        if not isinstance(item, dict) or set(item) != {"index", "value"}:
            raise SchemeFormatError(f'{where} must be a list of {{"index": .., "value": ..}}')
        index, value = item["index"], parse_coefficient(item["value"], where)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < inputs + len(made):
            raise SchemeFormatError(f"{where} names value {index!r}, which is not there yet")
        part: Form = {index: 1} if index < inputs else made[index - inputs]
        budget[0] -= len(part) + 1
        if budget[0] < 0:
            raise SchemeFormatError(f"the sums have more than {MAX_TERMS} terms once expanded")
        for place, coefficient in part.items():
            total[place] = _limited(total.get(place, 0), value, coefficient, where)
    return {place: value for place, value in total.items() if value}


def _limited(start: Number, value: Number, coefficient: Number, where: str) -> Number:
    """start + value * coefficient, refused beyond the limit before it grows further."""
    if isinstance(start, int) and isinstance(value, int) and isinstance(coefficient, int):
        result: Number = start + value * coefficient
    else:
        result = simplest(gaussian(start) + gaussian(value) * coefficient)
    if bits(result) > MAX_BITS:
        raise SchemeFormatError(f"{where} has a coefficient or denominator beyond 2^{MAX_BITS}")
    return result
