"""Choice between two functions by the kind of an arena, at compile time.

A compiled walk contains the code of one kind only; a branch on the kind would take minutes to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..terms.bits import overload
from ..terms.rings import GF2

Lengths = dict[str, int]
"""The lengths of the parts of a `SlotKind`."""


def is_plain(lengths: Lengths) -> bool:
    """Return whether a walk has no symmetry."""
    return lengths["turns"] == 1


def has_dependences(lengths: Lengths) -> bool:
    """Return whether a walk reduces by linear dependences: over GF(2), without symmetry or guard."""
    return (lengths["ring"], lengths["turns"], lengths["guard"]) == (GF2, 1, 1)


def _lengths(of: Any) -> Lengths:
    """Return the lengths of a kind or of that of an arena, also if only their numba type is given."""
    parts = dict(zip(of.fields, of.types, strict=True)) if hasattr(of, "fields") else of._asdict()
    return _lengths(parts["kind"]) if "kind" in parts else {name: len(part) for name, part in parts.items()}


def by_kind(when: Callable[[Lengths], bool], one: Any, other: Any, **options: Any) -> Any:
    """Return a function that is `one` where `when` is true, else `other`: compiled functions of the same signature.

    Their first argument is an arena or its kind. `options` are those of njit.
    """

    def chosen(of: Any) -> Any:
        return one if when(_lengths(of)) else other

    def plain(function: Any) -> Any:
        return getattr(function, "py_func", function)  # under NUMBA_DISABLE_JIT it is plain already

    @wraps(plain(one))
    def function(of: Any, *rest: Any) -> Any:
        return chosen(of)(of, *rest)

    @overload(function, jit_options={"_nrt": False, **options})
    @wraps(plain(one))  # numba compares the signatures
    def _compiled(of: Any, *rest: Any) -> Any:
        return plain(chosen(of))

    return function
