"""Numpy object arrays out of a pickle, without unpickling: the opcodes are read, nothing is ever called.

A pickle is a program for a stack machine that can call anything. This one knows the opcodes that
an array of arrays of numbers needs; the three numpy names in such a pickle build plain records,
and the arrays are made from the bytes in them. Whatever else a pickle asks for is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import SchemeFormatError

_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_GLOBALS = {f"{module} _reconstruct" for module in _MODULES} | {"numpy ndarray", "numpy dtype"}
_DTYPES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"f2", "f4", "f8", "c8", "c16"}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "SHORT_BINUNICODE", "BINUNICODE"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}
_MAX_OPCODES = 200_000
_Kind = TypeVar("_Kind")


class _Mark:
    """The stack entry that marks the start of a tuple or a list of several items."""


_NEW: dict[str, Callable[[], object]] = {
    **{"MARK": _Mark, "EMPTY_TUPLE": tuple, "EMPTY_LIST": list},
    **{"NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False},
}
"""What opcodes without an argument put on the stack."""


@dataclass(eq=False)
class _Global:
    name: str


@dataclass(eq=False)
class _Record:
    """An array or a dtype to be: what made it, and the state that was set afterwards."""

    maker: str
    arguments: tuple[object, ...]
    state: tuple[object, ...] = field(default=())


def unpickled(raw: bytes) -> npt.NDArray[np.object_] | list[npt.NDArray[np.generic]]:
    """The number arrays in the object array that a pickle describes, or that array where it holds Python integers.

    Raises:
        SchemeFormatError: the pickle is damaged, or describes anything else.
    """
    root = _run(raw)
    if not isinstance(root, _Record) or len(root.state) != 5:
        raise SchemeFormatError("the pickle does not hold an array")
    shape, dtype, items = root.state[1], root.state[2], root.state[4]
    if not (isinstance(dtype, _Record) and dtype.arguments[:1] in (("O8",), ("O4",)) and isinstance(items, list)):
        raise SchemeFormatError("the pickle does not hold an object array")
    if isinstance(shape, tuple) and items and all(type(item) is int for item in items):
        return _integers(shape, items, bool(root.state[3]))
    if not isinstance(shape, tuple) or len(shape) != 1 or len(items) > 64:
        raise SchemeFormatError("the pickled array is not a short list of arrays")
    return [_array(item) for item in items]


def _integers(shape: tuple[object, ...], items: list[object], fortran: bool) -> npt.NDArray[np.object_]:
    sizes = [size for size in shape if isinstance(size, int) and 0 <= size <= len(items)]
    if len(sizes) != len(shape) or len(shape) > 4 or math.prod(sizes) != len(items):
        raise SchemeFormatError("the pickled array has more or fewer numbers than its shape")
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(sizes, order="F" if fortran else "C")


def _array(item: object) -> npt.NDArray[np.generic]:
    _, shape, dtype, fortran, data = item.state if isinstance(item, _Record) and len(item.state) == 5 else (None,) * 5
    if not (isinstance(dtype, _Record) and dtype.maker == "numpy dtype" and isinstance(data, bytes)):
        raise SchemeFormatError("the pickled array holds something other than arrays of numbers")
    code = dtype.arguments[0] if dtype.arguments else None
    order = dtype.state[1] if len(dtype.state) > 1 else "|"
    if code not in _DTYPES or order not in ("<", ">", "|", "="):
        raise SchemeFormatError(f"the pickled array holds an array of {str(code)[:20]!r}, not of numbers")
    kind = np.dtype(f"{order}{code}")
    sizes = shape if isinstance(shape, tuple) else (-1,)
    if len(sizes) > 4 or any(not isinstance(size, int) or not 0 <= size <= len(data) for size in sizes):
        raise SchemeFormatError("the pickled array holds an array of no sensible shape")
    if math.prod(sizes) * kind.itemsize != len(data):
        raise SchemeFormatError("the pickled array holds an array whose data do not fill its shape")
    return np.ndarray(sizes, kind, data, order="F" if fortran else "C")


def _run(raw: bytes) -> object:
    """Return the value that a pickle leaves on its stack."""
    import pickletools

    stack: list[object] = []
    memo: dict[int, object] = {}
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
            if count > _MAX_OPCODES:
                raise SchemeFormatError("the pickle is too long")
            if opcode.name == "STOP":
                return stack.pop()
            _step(opcode.name, argument, stack, memo)
    except SchemeFormatError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SchemeFormatError(f"the pickle is damaged: {str(error)[:80]}") from None
    raise SchemeFormatError("the pickle is cut short")


def _step(name: str, argument: object, stack: list[object], memo: dict[int, object]) -> None:
    """One opcode of the few that are known."""
    if name in ("PROTO", "FRAME"):
        return
    if name in _LITERALS:
        stack.append(argument)
    elif name in _NEW:
        stack.append(_NEW[name]())
    elif name == "GLOBAL":
        stack.append(_known(str(argument)))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(_known(f"{module} {attribute}"))
    elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
        memo[len(memo) if argument is None else int(str(argument))] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET"):
        stack.append(memo[int(str(argument))])
    elif name == "TUPLE":
        items = _since_mark(stack)
        stack.append(items)
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        stack.append(tuple([stack.pop() for _ in range(int(name[-1]))][::-1]))
    elif name in ("APPEND", "APPENDS"):
        added = _since_mark(stack) if name == "APPENDS" else (stack.pop(),)
        _top(stack, list).extend(added)
    elif name == "REDUCE":
        arguments = _top(stack, tuple)
        del stack[-1]
        stack[-1] = _Record(_top(stack, _Global).name, arguments)
    elif name == "BUILD":
        state = _top(stack, tuple)
        del stack[-1]
        _top(stack, _Record).state = state
    else:
        raise SchemeFormatError(f"the pickle holds more than arrays of numbers (opcode {name}); it is not read")


def _top(stack: list[object], kind: type[_Kind]) -> _Kind:
    """The last item of the stack, which must be of this kind."""
    if not isinstance(item := stack[-1], kind):
        raise TypeError(f"a {type(item).__name__} where another thing belongs")
    return item


def _known(name: str) -> _Global:
    if name not in _GLOBALS:
        raise SchemeFormatError(f"the pickle asks for {name[:60]!r}, which is no array of numbers; it is not read")
    return _Global(name)


def _since_mark(stack: list[object]) -> tuple[object, ...]:
    for position in range(len(stack) - 1, -1, -1):
        if isinstance(stack[position], _Mark):
            items = tuple(stack[position + 1 :])
            del stack[position:]
            return items
    raise IndexError("no mark on the stack")
