"""Our own JSON: one product a line, blocks by 1-based "row,column", and provenance and certificate beside them."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from ...errors import LcmaError, SchemeFormatError
from ..certificate import Certificate
from ..factor import Factor
from ..gaussian import Number
from ..names import checked_name
from ..provenance import Provenance
from ..ring import Ring, parse_ring
from ..scheme import Scheme
from ..target import Target, parse_target
from .patterns import check_setting
from .reading import C, Entries, Reading, Wanted, factor_of, on_line, parse_coefficient, render_coefficient
from .strict_json import loads, need

NAME = "lcma-json"
_AS_IT_SAYS = Wanted(NAME)

FIELDS = ("lcma_scheme", "name", "target", "ring", "rank", "products", "provenance", "certificate")


def sniff(text: str) -> bool:
    """Return whether this is a JSON object with our marker."""
    return text.lstrip().startswith("{") and '"lcma_scheme"' in text


def parse(text: str, wanted: Wanted = _AS_IT_SAYS) -> list[Reading]:
    """Read one scheme; an override of target or ring is refused unless it agrees.

    Raises:
        SchemeFormatError: a field is missing, of the wrong type, or does not fit the others.
    """
    try:
        data = loads(text)
    except SchemeFormatError:
        first = text.lstrip().partition("\n")[0].rstrip()
        if not (first.startswith("{") and first.endswith("}")):
            raise
        return _parse_lines(text, wanted)
    return [_held(data, wanted)]


def _parse_lines(text: str, wanted: Wanted) -> list[Reading]:
    """The schemes of a file of finds, an object a line."""
    readings: list[Reading] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            with on_line(number):
                readings.append(_held(loads(line), wanted))
    return readings


def _held(data: Any, wanted: Wanted) -> Reading:
    """The scheme that a value is, or holds as `scheme`, as what `lcma show --json` and the finds of a search are."""
    if not isinstance(data, dict):
        raise SchemeFormatError("a scheme must be a JSON object")
    inner = data if "lcma_scheme" in data else data.get("scheme", data.get("origin"))
    if not isinstance(inner, dict):
        raise SchemeFormatError("an object without a scheme in it")
    return _reading(inner, wanted)


def _reading(data: dict[str, Any], wanted: Wanted) -> Reading:
    version, said, over = need(data, "lcma_scheme", int), need(data, "target", str), need(data, "ring", str)
    own_target, own_ring = checked_head(version, said, over, wanted)
    products = need(data, "products", list)
    if need(data, "rank", int) != len(products):
        raise SchemeFormatError(f"rank is {data['rank']}, but there are {len(products)} products")
    m, k, n = own_target.shape
    u, v, w = (
        factor_of(Entries.of([_terms(product, key, r) for r, product in enumerate(products)]), rows, cols, key.upper())
        for key, rows, cols in (("u", m, k), ("v", k, n), ("w", m, n))
    )
    if not isinstance(name := data.get("name", ""), str):
        raise SchemeFormatError("name must be a string")
    reading = reading_of_own(NAME, (own_target, u, v, w, own_ring), name, data)
    for key in data.keys() - set(FIELDS):
        check_setting(key, data[key])
    return reading.noting(*(f"unknown field {key!r} ignored" for key in data if key not in FIELDS))


def checked_head(version: int, target_text: str, ring_text: str, wanted: Wanted) -> tuple[Target, Ring]:
    """The target and the ring that a file of ours says.

    Raises:
        SchemeFormatError: they mean nothing, are others than the user's, or the version is not known.
    """
    if version != 1:
        raise SchemeFormatError(f"lcma_scheme version {version} is not known; this lcma reads version 1")
    try:
        own_target, own_ring = parse_target(target_text, files=False), parse_ring(ring_text)
    except LcmaError as error:
        raise error if isinstance(error, SchemeFormatError) else SchemeFormatError(str(error)) from None
    for mine, given in ((own_target, wanted.target), (own_ring, wanted.ring)):
        if given is not None and given != mine:
            raise SchemeFormatError(f"the file says {mine}, not {given}")
    return own_target, own_ring


def reading_of_own(
    format: str, parts: tuple[Target, Factor, Factor, Factor, Ring], name: str, origin: dict[str, Any]
) -> Reading:
    """The reading of a file of ours: the parts of a scheme, and the provenance and the certificate beside them.

    Raises:
        SchemeFormatError: one of them is damaged, or the name is none.
    """
    provenance = Provenance.from_json(origin["provenance"]) if "provenance" in origin else Provenance()
    certificate = Certificate.from_json(origin["certificate"]) if "certificate" in origin else None
    scheme = Scheme(*parts, checked_name(name), provenance)
    others = certificate is not None and certificate.digest != scheme.digest
    notes = ("its certificate is of another scheme and is ignored",) if others else ()
    return Reading(format, ((C, scheme),), None if others else certificate, notes, declared=scheme.ring)


def _terms(product: object, key: str, r: int) -> list[tuple[int, int, Number]]:
    where = f"product {r + 1}"
    if not isinstance(product, dict) or set(product) != {"u", "v", "w"}:
        raise SchemeFormatError(f'{where} must be an object with "u", "v" and "w"')
    factor = product[key]
    if not isinstance(factor, dict):
        raise SchemeFormatError(f'{where}: {key} must be an object such as {{"1,1": 1, "2,2": -1}}')
    terms: list[tuple[int, int, Number]] = []
    for block, value in factor.items():
        place = _place(block)
        if place is None:
            raise SchemeFormatError(f'{where}: {key} has key {block!r}; write a block as "row,column", from 1')
        number = value if type(value) is int else parse_coefficient(value, f"{where}, {key}[{block}]")
        terms.append((*place, number))
    return terms


@lru_cache(maxsize=4096)
def _place(block: str) -> tuple[int, int] | None:
    """The 0-based row and column that a key such as 2,1 names."""
    match = re.fullmatch(r"([1-9]\d{0,3}),([1-9]\d{0,3})", block)
    return (int(match.group(1)) - 1, int(match.group(2)) - 1) if match else None


def to_json(scheme: Scheme, certificate: Certificate | None = None) -> dict[str, Any]:
    """The scheme as JSON values."""
    products = [
        {key: _factor_to_json(factor, r) for key, factor in zip("uvw", scheme.factors, strict=True)}
        for r in range(scheme.rank)
    ]
    data: dict[str, Any] = {
        "lcma_scheme": 1,
        "name": scheme.name,
        "target": scheme.target.name,
        "ring": scheme.ring.name,
        "rank": scheme.rank,
        "products": products,
    }
    if origin := scheme.provenance.to_json():
        data["provenance"] = origin
    if certificate is not None:
        data["certificate"] = certificate.to_json()
    return data


def _factor_to_json(factor: Factor, r: int) -> dict[str, int | str]:
    result: dict[str, int | str] = {}
    for index, value in factor.coefficients(r):
        row, col = divmod(index, factor.cols)
        result[f"{row + 1},{col + 1}"] = render_coefficient(value)
    return result


def render(scheme: Scheme, certificate: Certificate | None = None) -> str:
    """The scheme as text, one product a line, so that a change of one product is a change of one line."""
    data = to_json(scheme, certificate)
    lines = []
    for key, value in data.items():
        if key == "products":
            rows = ",\n".join("  " + json.dumps(product) for product in value)
            lines.append(f' "products": [\n{rows}\n ]')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
