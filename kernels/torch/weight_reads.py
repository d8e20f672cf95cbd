"""The methods of a module that read the weight of a submodule without calling it, found in their bytecode."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch import nn

_INITIALISERS = re.compile("init|reset")
"""Methods that draw or copy parameters: they run before weights are replaced."""


def weight_reads(module: nn.Module) -> dict[str, str]:
    """Return {NAME: METHOD} for the methods of a module that contain an expression NAME.weight or NAME[...].weight.

    Local names for a submodule are followed. Reads by other expressions, such as the result of a call, are not found.
    """
    classes = [one for one in type(module).__mro__ if one not in (nn.Module, object)]
    found: dict[str, str] = {}
    for members in (vars(module), *map(vars, classes)):
        for name, member in members.items():
            function: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
            function = inspect.unwrap(function) if callable(function) else None
            if inspect.isfunction(function) and not _INITIALISERS.search(name):
                found = dict.fromkeys(_before_weight(function.__code__), name) | found
    return found


def _before_weight(code: CodeType) -> Iterator[str]:
    """Yield each name whose attribute `weight` is read or assigned: of an attribute, or of a local alias for one."""
    aliases: dict[str, str | None] = {}
    last: str | None = None
    for one in dis.get_instructions(code):
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if "_ATTR" in one.opname or one.opname == "LOAD_METHOD":
            if one.argval == "weight" and last is not None:
                yield last
            last = one.argval
        elif one.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            aliases[names[0]] = last
            last = None
        elif one.opname.startswith("LOAD_") and one.opname != "LOAD_CONST":  # a constant is an index: name[0].weight
            last = aliases.get(names[-1])
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            yield from _before_weight(nested)
