"""The one check of the types of arguments: public functions call it before anything else."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from types import UnionType
from typing import Any, get_args

from .errors import ArgumentError

INTEGER, NUMBER, PATH = Integral, Real, str | PathLike

_MENDS = {
    "Integral": "a whole number",
    "Real": "a number",
    "bool": "True or False",
    "str": "a text",
    "PathLike": "a path",
    "Callable": "a function",
    "tuple": "a tuple",
    "list": "a list",
    "Scheme": "a Scheme, as lcma.resolve(name)[0] gives",
    "Program": "a Program, as lcma.program_of(scheme) gives",
    "Certificate": "a Certificate, as lcma.certify(scheme) gives",
    "Target": "a Target, as lcma.parse_target(name) gives",
    "Ring": "a Ring, as lcma.parse_ring(name) gives",
    "FactoredMatrix": "a FactoredMatrix, as FactoredMatrix.of(patterns, factors) or load(path) gives",
    "BlockLowRank": "a LowRank, Monarch or Blast of lcma.block_low_rank",
    "ndarray": "an array of numpy",
    "Module": "a torch module",
    "Tensor": "a torch tensor",
    "NoneType": "None",
}


def shown(value: object) -> str:
    """A value that is short and plain as it is written, else its type, with the shape of an array."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    plain = type(value).__module__ == "builtins" and len(text) <= 60 and text.isprintable() and " at 0x" not in text
    return text if plain else f"a {type(value).__name__}"


def need(kinds: Any, *, least: float | None = None, **values: Any) -> None:
    """Check that arguments are of a type or a union of types, and numbers at least `least`.

    Raises:
        ArgumentError: one is not; the message says what it must be.
    """
    for name, value in values.items():
        flag = kinds is bool and (isinstance(value, Integral) or type(value).__name__ in ("bool", "bool_"))  # numpy's
        if not (flag or isinstance(value, kinds)):
            options = get_args(kinds) if isinstance(kinds, UnionType) else (kinds,)
            wanted = " or ".join(_MENDS.get(one.__name__, f"a {one.__name__}") for one in options)
            raise ArgumentError(f"{name} must be {wanted}, not {shown(value)}")
        if least is not None and value is not None and not value >= least:
            raise ArgumentError(f"{name} must be at least {least}, not {value}")
