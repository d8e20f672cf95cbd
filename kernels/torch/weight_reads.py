"""The methods and hooks of a module that read the weight of a submodule without calling it, found in their bytecode."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

HOOKS = tuple(name for name in vars(nn.Module()) if name.endswith("_hooks"))
"""The attributes of a module that hold its hooks, by number."""

_INITIALISERS = re.compile("init|reset")
"""Methods that draw or copy parameters: they run before weights are replaced."""


_WITHOUT_VALUE = ("LOAD_CONST", "LOAD_FAST_AND_CLEAR")
"""Instructions after which the name before is still meant: a constant as in NAME["up"].weight, a comprehension."""


ANY = "*"
"""The name of a submodule that only the running method knows."""

_LOOKUPS = frozenset(("getattr", "get_submodule", "_modules", "children", "named_children", "modules", "named_modules"))
"""Names whose results may be any submodule."""


def weight_reads(module: nn.Module) -> dict[str, str]:
    """Return {NAME: METHOD} for the methods and hooks with an expression NAME.weight or NAME[...].weight.

    Local names for a submodule are followed. NAME is ANY where a submodule is looked up, as by `getattr(self, name)`,
    in `forward`, a hook, or what these call. Reads by other expressions, such as results of other calls, are not found.
    """
    found: dict[str, str] = {}
    codes: dict[str, CodeType] = {}
    overridden: set[str] = set()
    for name, member in _members(module):
        code = _code(member)
        if code is not None and name not in overridden and not _INITIALISERS.search(name):
            codes.setdefault(name, code)
            found = dict.fromkeys(_before_weight(code), name) | found
            if name in code.co_names:  # it may call the method of its base class
                continue
        overridden.add(name)
    if found.get(ANY) not in (None, *_called(codes)):
        del found[ANY]
    return found


def _called(codes: dict[str, CodeType]) -> set[str]:
    """Return the names of forward and of the hooks, and of the methods that these name, directly or not."""
    called, waiting = set[str](), [name for name in codes if name == "forward" or name.endswith("]")]
    while waiting:
        name = waiting.pop()
        if name in codes and name not in called:
            called.add(name)
            waiting += codes[name].co_names
    return called


def _members(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the hooks of a module, and its attributes from its own to those of its last base class."""
    for name in HOOKS:
        yield from ((f"{name[1:]}[{place}]", hook) for place, hook in enumerate(getattr(module, name).values()))
    for members in (vars(module), *(vars(one) for one in type(module).__mro__ if one not in (nn.Module, object))):
        yield from members.items()


def _code(member: Any) -> CodeType | None:
    """Return the bytecode of a function, method, property or partial, under its decorators; None for anything else."""
    if isinstance(member, property | partial):
        member = member.fget if isinstance(member, property) else member.func
    if isinstance(member, classmethod | staticmethod | MethodType):
        member = member.__func__
    return getattr(inspect.unwrap(member), "__code__", None) if isinstance(member, FunctionType) else None


def _before_weight(code: CodeType, iterated: str | None = None) -> Iterator[str]:
    """Yield each name whose attribute `weight` is read or assigned: of an attribute, or of a local alias for one.

    `iterated` is the name over which a comprehension runs.
    """
    aliases = {".0": iterated}
    last: str | None = None
    comprehension: CodeType | None = None
    looked_up = False  # whether a call that runs may return any submodule
    unpacked: str | None = None
    for one in dis.get_instructions(code):
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)  # some instructions name two variables
        looked_up |= one.argval in _LOOKUPS if isinstance(one.argval, str) else False
        if "_ATTR" in one.opname or one.opname == "LOAD_METHOD":
            if one.argval == "weight" and last is not None:
                yield ANY if last in _LOOKUPS else last
            last = one.argval
        elif one.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            aliases |= dict.fromkeys(names if one.opname == "STORE_FAST_STORE_FAST" else names[:1], last or unpacked)
            last = aliases.get(names[-1]) if one.opname == "STORE_FAST_LOAD_FAST" else None
            looked_up = False
        elif one.opname == "UNPACK_SEQUENCE":
            unpacked = last
        elif one.opname.startswith("CALL") and looked_up:
            last = "getattr"
        elif isinstance(one.argval, CodeType):
            comprehension = one.argval
        elif one.opname == "GET_ITER" and comprehension is not None:
            yield from _before_weight(comprehension, last)
        elif one.opname.startswith("LOAD_") and one.opname not in _WITHOUT_VALUE and isinstance(names[-1], str):
            last = aliases.get(names[-1])
    for nested in code.co_consts:
        if isinstance(nested, CodeType):
            yield from _before_weight(nested)
