"""JSON as scheme files need it: duplicate keys, NaN and bottomless nesting are refused."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ...errors import SchemeFormatError


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise SchemeFormatError(f"key {twice!r} stands twice in one object")
    return result


def _refuse_constant(text: str) -> None:
    raise SchemeFormatError(f'{text} is not a coefficient; write an integer or "p/q"')


def loads(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        SchemeFormatError: not JSON, or JSON with one of the things above; with the line where it is known.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise SchemeFormatError(f"not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise SchemeFormatError("not a scheme: JSON nested too deep") from None
    except ValueError as error:
        if isinstance(error, SchemeFormatError):
            raise
        raise SchemeFormatError(f"not JSON: {str(error).split(';')[0]}") from None


def need(data: dict[str, Any], key: str, kind: type, where: str = "the scheme") -> Any:
    """data[key], if it is there and of that type.

    Raises:
        SchemeFormatError: it is not.
    """
    if key not in data:
        raise SchemeFormatError(f"{where} has no field {key!r}")
    value = data[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SchemeFormatError(f"field {key!r} must be a {kind.__name__}, not {type(value).__name__}")
    return value
