"""The JSON of the FastMatrixMultiplication database, the third factor by C transposed.

In full files u, v and w are dense rows. Reduced files are a program with shared sums, expanded to U, V, W: `u_fresh`
are sums that get indices from n1 n2 on, `u` the m left factors over blocks and fresh sums; `v` alike. `w_fresh` and the
n3 n1 rows of `w` are sums over products and fresh sums.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from ...errors import SchemeFormatError
from ..ring import Z2, Q
from .arrays import Array, array_of_rows, reading_of_unlabelled
from .candidates import reading_of_rows, sizes_and_rank, target_of
from .linear_program import MAX_TERMS, LinearProgram, Statement, expanded_rows
from .listed import agreeing, listed_text
from .patterns import check_setting, pattern
from .reading import C_TRANSPOSED, Reading, Wanted, parse_coefficient
from .strict_json import loads, need

_SIZES = pattern(r'"n"\s*:\s*(?!\s|\d)')
_FIELDS = {"n", "m", "z2", "multiplications", "elements", "complexity", *"uvw"}


def parse(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme; both conventions become candidates.

    Raises:
        SchemeFormatError: a field is missing, rows are ragged, sizes disagree, a sum names what is not there yet, or
            sums grow without end.
    """
    data = loads(text)
    if not isinstance(data, dict):
        raise SchemeFormatError("a scheme must be a JSON object")
    (m, k, n), rank = sizes_and_rank(data, "n", "m")
    sides = (("u", m * k), ("v", k * n), ("w", m * n))
    fresh = {f"{key}_fresh" for key in "uvw"} if wanted.format == "fmm-reduced" else set()
    for key in data.keys() - _FIELDS - fresh:
        check_setting(key, data[key])
    wanted = dataclasses.replace(wanted, ring=wanted.ring or (Z2 if data.get("z2") is True else None))
    if not fresh:
        arrays = [_array(data, key, rank, size) for key, size in sides]
        chosen = dataclasses.replace(wanted, target=target_of((m, k, n), wanted.target))
        reading = reading_of_unlabelled(chosen, arrays, (C_TRANSPOSED, ""))
    elif rows := expanded_rows([_program(data, key, size, rank) for key, size in sides], rank):
        reading = reading_of_rows(wanted, rows, (m, k, n), C_TRANSPOSED)
    else:
        raise SchemeFormatError(f"the sums have more than {MAX_TERMS} terms once expanded")
    reading = agreeing(reading, listed_text(data))
    reading = reading.noting(*(f"unknown field {key!r} ignored" for key in data if key not in _FIELDS | fresh))
    over_q = wanted.ring is None and data.get("z2") is False
    return [dataclasses.replace(reading, declared=Q if over_q else wanted.ring)]


def _array(data: dict[str, Any], key: str, rank: int, size: int) -> Array:
    rows = need(data, key, list)
    if len(rows) != rank or not all(isinstance(row, list) and len(row) == size for row in rows):
        raise SchemeFormatError(f"{key} must have {rank} rows of {size} entries")
    return array_of_rows(
        [[parse_coefficient(value, f"{key} row {at}") for value in row] for at, row in enumerate(rows, 1)]
    )


def _program(data: dict[str, Any], key: str, size: int, rank: int) -> LinearProgram:
    """The sums of a key as a program: of u and v from entries to products, of w from products to entries."""
    inputs, count = (rank, size) if key == "w" else (size, rank)
    fresh, rows = data.get(f"{key}_fresh", []), need(data, key, list)
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
        if type(index) is not int or not 0 <= index < known:
            raise SchemeFormatError(f"{where} names value {index!r}, which is not there yet")
        terms.append((parse_coefficient(item["value"], where), index))
    return tuple(terms)


def _has(fields: tuple[str, ...], text: str) -> bool:
    """Return whether this is a JSON object with these fields, and with the three sizes as a list."""
    sizes = text.lstrip().startswith("{") and _SIZES.search(text)
    return bool(sizes) and all(f'"{key}"' in text for key in fields)


sniff, sniff_reduced = partial(_has, ("m", "u")), partial(_has, ("m", "u_fresh"))
