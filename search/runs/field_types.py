"""Checks of the values that files state for the fields of a class."""

from __future__ import annotations

from collections.abc import Mapping

_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "str": (str,),
}
"""Types of JSON values by the annotation of a field; fields of other annotations are checked where they are read."""

MAX_INT = 1 << 62
"""Integers reach compiled code, where they have 64 bits."""


def check_field_types(kind: type, values: Mapping[str, object]) -> None:
    """Check values by the annotations of a dataclass or a NamedTuple.

    Raises:
        TypeError: a value is of another type, or an integer is too large.
    """
    for name, value in values.items():
        stated = kind.__annotations__.get(name, "")
        annotation = str(getattr(stated, "__forward_arg__", stated))  # as a NamedTuple holds it
        allowed = _TYPES.get(annotation)
        if allowed is None:
            continue
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise TypeError(f"{name} must be {annotation}, not {str(value)[:40]!r}")
        if isinstance(value, int) and abs(value) > MAX_INT:
            raise TypeError(f"{name} is too large: {str(value)[:40]}")
