"""Filters of the catalogue's rows, by every figure that the page of a scheme shows."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import click

from ..errors import did_you_mean
from ..schemes_db import costs, parse_ring, parse_target
from .options import Meaning
from .scheme_record import SchemeRecord

FIELDS: dict[str, Callable[[SchemeRecord], Any]] = {
    "additions": lambda row: row.entry.additions,
    "coefficients": lambda row: ", ".join(map(str, row.scheme.coefficients)),
    "command": lambda row: row.scheme.provenance.command,
    "digest": lambda row: row.entry.digest,
    "exponent": lambda row: costs.exponent(row.scheme),
    "full": lambda row: row.entry.full_products,
    "gap": lambda row: None if row.known is None else row.entry.rank - row.known.rank,
    "growth": lambda row: row.entry.growth,
    "half": lambda row: row.entry.half_products,
    "kind": lambda row: row.scheme.provenance.kind,
    "known": lambda row: row.known and row.known.rank,
    "largest": lambda row: max(abs(factor.values).max() / factor.denominator for factor in row.scheme.factors),
    "name": lambda row: row.entry.name,
    "nonzeros": lambda row: row.entry.nonzeros,
    "one-level": lambda row: float(costs.one_level_cost(row.scheme)),
    "origin": lambda row: row.entry.origin,
    "proof": lambda row: ", ".join(row.certificate.methods),
    "rank": lambda row: row.entry.rank,
    "recursive": lambda row: costs.recursive_cost(row.scheme),
    "ring": lambda row: row.entry.ring,
    "shared": lambda row: row.entry.additions_cse,
    "source": lambda row: row.scheme.provenance.source,
    "target": lambda row: row.entry.target,
    "ternary": lambda row: row.entry.ternary,
}
"""What a filter may name: figures, texts, and `ternary`, which is true or false."""

TEXTS = ("coefficients", "command", "digest", "kind", "name", "origin", "proof", "ring", "source", "target")

PARSED: dict[str, Callable[[str], str]] = {
    "ring": lambda text: parse_ring(text).name,
    "target": lambda text: parse_target(text).name,
}
"""Texts that are written in several ways, or mean nothing."""

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "~": lambda text, part: part.lower() in text.lower(),
}
_FILTER = re.compile(r"\s*([a-z-]+)\s*(?:(<=|>=|!=|=|<|>|~)\s*(.*?)\s*)?", re.S)


def filter_of(text: str) -> Callable[[SchemeRecord], bool]:
    """The filter that FIELD OPERATOR VALUE describes, or a FIELD that is true."""
    found = _FILTER.fullmatch(text)
    if not found:
        raise click.BadParameter(f"{text!r} is no filter; write FIELD<=VALUE, such as rank<=23 or origin=user")
    name, sign, value = found.groups()
    if name not in FIELDS:
        hint = did_you_mean(name, FIELDS) or f"; the fields are {', '.join(FIELDS)}"
        raise click.BadParameter(f"a scheme has no {name!r}{hint}")
    compare = OPERATORS[sign or "="]
    wanted: str | float = value or ""
    if name == "ternary" or sign is None:
        wanted = value not in ("no", "false", "0")
    elif name not in TEXTS:
        try:
            wanted = float(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number, and {name} is one") from None
        if sign == "~":
            raise click.BadParameter(f"{name} is a number; ~ looks for a part of a text")
    elif sign in ("=", "!=") and name in PARSED:
        wanted = PARSED[name](value)
    read = (lambda row: bool(FIELDS[name](row))) if isinstance(wanted, bool) else FIELDS[name]
    return lambda row: (own := read(row)) is not None and compare(own, wanted)


FILTER = Meaning("filter", filter_of)
