"""The reduced JSON of the FastMatrixMultiplication database: a program with shared sums, expanded to U, V, W.

`u_fresh` are sums that get indices from n1 n2 on, `u` the m left factors over blocks and fresh sums;
`v` alike. `w_fresh` and the n3 n1 rows of `w` (C transposed) are sums over products and fresh sums.
"""

from __future__ import annotations

from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2, Ring
from ..scheme import MAX_RANK
from ..target import Target
from . import equations
from .candidates import reading_of_rows
from .linear_program import MAX_TERMS, LinearProgram, Statement, expanded_rows
from .reading import C_TRANSPOSED, Reading, parse_coefficient
from .strict_json import loads, need
from .tables import check_setting

NAME = "fmm-reduced"
SUFFIX = ".json"
CONVENTION = C_TRANSPOSED

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
    m, k, n = sizes_of(data)
    rank = need(data, "m", int)
    if not 1 <= rank <= MAX_RANK:
        raise SchemeFormatError(f"a scheme has 1 to {MAX_RANK} products, not {rank}")
    sides = (("u", m * k, rank), ("v", k * n, rank), ("w", rank, m * n))
    rows = expanded_rows([_program(data, *side) for side in sides], rank)
    if rows is None:
        raise SchemeFormatError(f"the sums have more than {MAX_TERMS} terms once expanded")
    ring = ring or (Z2 if data.get("z2") is True else None)
    known = {*_TEXT_FIELDS, *(f"{key}{end}" for key in "uvw" for end in ("", "_fresh"))}
    reading = reading_of_rows(NAME, rows, (m, k, n), CONVENTION, target, ring, unknown_fields(data, known))
    return [equations.agreeing(reading, equations.listed_text(data, "multiplications", "elements"))]


def sizes_of(data: dict[str, Any]) -> tuple[int, int, int]:
    """The three sizes in field n.

    Raises:
        LcmaError: there are none.
    """
    sizes = need(data, "n", list)
    if len(sizes) != 3 or not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        raise SchemeFormatError('field "n" must be three sizes, such as [2, 2, 2]')
    return Target.general(*sizes).shape


def unknown_fields(data: dict[str, Any], known: set[str]) -> tuple[str, ...]:
    """A note on every field that is not known.

    Raises:
        SchemeFormatError: one may change the numbers.
    """
    for key in data.keys() - known:
        check_setting(key, data[key])
    return tuple(f"unknown field {key!r} ignored" for key in data if key not in known)


def _program(data: dict[str, Any], key: str, inputs: int, count: int) -> LinearProgram:
    """The sums of a key as a program over its inputs."""
    fresh = data.get(f"{key}_fresh", [])
    rows = need(data, key, list)
    if not isinstance(fresh, list) or len(rows) != count:
        raise SchemeFormatError(f"{key} must have {count} rows, not {len(rows)}, and {key}_fresh must be a list")
    first = inputs + len(fresh)
    sums = [_statement(row, inputs + at, f"{key}_fresh row {at + 1}") for at, row in enumerate(fresh)]
    sums += [_statement(row, first, f"{key} row {at + 1}") for at, row in enumerate(rows)]
    return LinearProgram(inputs, tuple(sums), tuple(range(first, first + count)))


def _statement(row: object, known: int, where: str) -> Statement:
    """A sum of the values that are known."""
    terms = []
    for item in row if isinstance(row, list) else (None,):
        if not isinstance(item, dict) or set(item) != {"index", "value"}:
            raise SchemeFormatError(f'{where} must be a list of {{"index": .., "value": ..}}')
        index = item["index"]
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < known:
            raise SchemeFormatError(f"{where} names value {index!r}, which is not there yet")
        terms.append((parse_coefficient(item["value"], where), index))
    return tuple(terms)
