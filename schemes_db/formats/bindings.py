"""The arrays that names are bound to in Python, MATLAB, Julia, Maple, Mathematica, C and LaTeX text.

Scalings and transposes are applied. A statement that may change an array and is not understood makes the file
unreadable; imports, checks and prose are passed over. Nothing is ever evaluated as code.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...errors import SchemeFormatError
from ..gaussian import parse_number
from ..inexact import Coefficient
from .account import only_looks
from .arithmetic import IMAGINARY_UNIT, LinearForm, inverse, plus, times
from .arrays import Array, as_array
from .lines import MAX_SPLIT, controlled_lines, plain_code, statements
from .patterns import changes_something, pattern, says_change
from .syntax import BY_COLUMNS, Meaning, NotUnderstoodError, Parser, Table, Value, name_of, number_in, plain, transposed

_CONTROL = "for|if|while|with|else|elif|in|return|def|class|case|switch|do|and|or|not|except|lambda"
_TYPED = pattern(r"^(?:Int|Float|Rational)\w*(?:\{\w+\})?(?=\[)")
"""The type of an array of Julia before its values."""

_STATEMENT = pattern(
    r"[ \t>,;.]*(?:[*-][ \t]+)?"
    rf"(?P<words>(?:(?!(?:{_CONTROL})\b)[A-Za-z_](?:[\w:<>]*[\w>])?[ \t*&]+){{0,5}})"
    r"(?P<names>[A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)"
    r"(?P<sizes>(?:\[\w*\])*)[ \t]*(?::(?!=)[ \t]*[\w.]{1,40}(?:\[\w[\w.\[\], ]{1,80}\])?[ \t]*)?"
    r"(?:=(?!=)|:=|<-|:(?=\s*\[\[))\s*(?=\S)"
)
_LOOSE = pattern(r"\s*(?:[\[({]\s*(?:[\[({\"]|[\w.]+\()|Triad(?:Set)?\s*\()")
"""The start of an array or a list of arrays without a name."""

_WORD = pattern(r"[A-Za-z_]\w*")
_ANYTHING = pattern(r"\s*(?:exec|eval|evalin|load|source|from\s+\S+\s+import\s*\*)(?!\w)")
"""Statements that may set any name."""

_FUNCTION = pattern(r"(\s*(?:async\s+)?def\s+(\w+))\s*\(((?:[^()]|\([^()]*\))*)\)[^:]*:?(.*)", re.DOTALL)
_ALIAS = pattern(r"\s*(?:for\s+([\w\s,]+?)\s+in\b([^:]*)|([\w\s,]+?)=(?!=)([\w\s.,:\[\]]*)$)")
_CHANGED_WITHIN = pattern(
    r"\b([A-Za-z_]\w*)(?:\.\w+|\[[^\]]*\])*\s*(?:\[[^=]*\]\s*[-+*/%@]*=(?!=)|[-+*/%@]+=(?!=)"
    r"|\.(?:fill|sort|put|append|insert|extend|pop|remove|clear|reverse|resize|itemset|__\w+__)\()|\bout\s*=\s*(\w+)"
)
"""What a statement may change: by an index, a sign before `=`, a method, or as the place of a result."""
_CHANGED = pattern(r"\s*(?:(?:global|nonlocal)\s+)?([A-Za-z_]\w*)\s*(?:\[[^=]*=|\.\w+\(|[-+*/@%]=|$)")
_OPENED = pattern(r"\bopen\([^()]*\)")
_ARRAYS = ("array", "asarray", "tensor", "Matrix", "matrix", "list", "tuple", "stack", "Array", "TriadSet", "Triad")
_DTYPE = pattern(r"(?:u?int|float|double|complex|bool|object)(?:\d+|_)?")
_CASTS = frozenset((*_ARRAYS, ".tolist", ".copy", ".astype", ".numpy", ".clone"))
_NUMBERS = {"Fraction": 2, "Rational": 2, "mpq": 2, "complex": 2, "Integer": 1, "QQ": 1, "ZZ": 1, "float": 1, "int": 1}
"""Calls that make a number, and of how many numbers at most."""

_RINGS = ("QQ", "ZZ", "QQbar", "CC", "RR")


@dataclass
class Bindings(Meaning):
    """The values of names, and those without; the statements that were not understood, and those of functions."""

    values: dict[str, Value] = field(default_factory=dict)
    loose: list[Value] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    inner: list[tuple[int, str, str, str]] = field(default_factory=list)
    faults: dict[str, SchemeFormatError] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    first: float = math.inf
    """The line of the first array."""

    @property
    def arrays(self) -> dict[str, Value]:
        return {name: plain(value) for name, value in self.values.items() if _is_array(value)}

    def named(self, name: str) -> Value:
        if name in ("None", "null", "True", "true", "False", "false"):
            return "None" if name in ("None", "null") else name.capitalize()
        self.used.add(name)
        return self.values[name] if name in self.values else super().named(name)

    def text(self, text: str) -> Value:
        """The number that a text says, or the text."""
        with contextlib.suppress(ValueError, ZeroDivisionError):
            return parse_number(text)
        return text

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        """The value of a call that makes an array or a number, or turns or casts an array."""
        dtype = keywords.pop("dtype", "")
        if name in ("Rationals", "Integers", "RationalField", "IntegerRing") and not arguments:
            return LinearForm({"QQ": 1})
        arguments = [one for one in arguments if name_of(one) not in _RINGS]
        if name in _ARRAYS and len(arguments) == 2 and _DTYPE.fullmatch(str(name_of(arguments[1]) or arguments[1])):
            dtype = str(name_of(arguments[1]) or arguments.pop())
            del arguments[1:]
        lists = [one for one in arguments if isinstance(one, list | np.ndarray)]
        sizes = [one for one in arguments if isinstance(one, int)]
        if not keywords and arguments and name in _NUMBERS:
            return _number(name, [number_in(one, name) for one in arguments])
        if name == ".astype" and len(arguments) == 2:
            dtype = name_of(arguments.pop()) or "?"
        if not keywords and lists:
            if name.endswith("transpose") and len(arguments) == 1:
                return transposed(arguments[0])
            if "reshape" in name:
                order: Any = "F" if name == BY_COLUMNS else "C"
                return _reshaped(lists[0], sizes or (plain(lists[1]) if len(lists) == 2 else []), order)
            if len(lists) == 1 and name in _CASTS and (sizes or len(arguments) == 1):
                return _cast(lists[0], sizes, dtype)
        return super().called(name, arguments, keywords)

    def bind(self, names: list[str], text: str, line: int, controlled: bool) -> None:
        """Bind names to the values of a text; without names the values are `loose`."""
        try:
            parser = Parser(_TYPED.sub("", text), self)
            values = [parser.value()]
            while parser.accept(",") and parser.kind != "end":
                values.append(parser.value())
            if parser.kind != "end":
                raise parser.unexpected("the end")
            if len(names) == 1 and len(values) > 1:
                values = [values]
            if len(names) > 1 and len(values) == 1 and isinstance(values[0], list | np.ndarray):
                values = list(values[0])
            if names and len(names) != len(values):
                raise NotUnderstoodError(f"{len(names)} names for {len(values)} values")
            listed = list(map(plain, values))
        except SchemeFormatError as error:
            self.unknown.append((line, f"{', '.join(names)} = {text}" if names else text))
            self.faults.update(dict.fromkeys(names or [""], SchemeFormatError(error.message, line=line)))
            return
        for name, value in zip(names, values, strict=False):
            again = _is_array(self.values.get(name)) and (len(names) > 1 or name not in _WORD.findall(text))
            if again or (controlled and _is_array(value)):
                how = "set in a loop or under a condition" if controlled else "set twice"
                raise SchemeFormatError(f"{name} is {how}", line=line)
        self.values.update(zip(names, values, strict=False))
        self.first = min(self.first, line if any(map(_is_array, values)) else math.inf)
        self.loose += [] if names else listed

    def account(self, names: Set[str]) -> None:
        """Check that no statement that is not understood may change an array of these names.

        Raises:
            SchemeFormatError: one may.
        """
        changing: set[str] = set()
        own: dict[str, set[str]] = {}
        for line, text, function, parameters in self.inner:
            changed = _CHANGED.match(text)
            if changed and changed[1] in names and changed[1] not in parameters:
                raise SchemeFormatError(f"{text.strip()[:40]!r} may change {changed[1]} when it is called", line=line)
            given = own.setdefault(function, set(_WORD.findall(parameters)))
            if (alias := _ALIAS.match(text)) and not given.isdisjoint(_WORD.findall(alias[2] or alias[4] or "")):
                given.update(_WORD.findall(alias[1] or alias[3]))
            long = len(text) > MAX_SPLIT  # not looked at
            if long or not given.isdisjoint(name for found in _CHANGED_WITHIN.findall(text) for name in found):
                changing.add(function)
                if not names.isdisjoint(_WORD.findall(parameters.partition("=")[2])):
                    raise SchemeFormatError(f"{function} may change what its parameters are set to", line=line)
        for line, text in self.unknown:
            said = "def" not in text.split() and says_change(text)  # the head of a function says nothing
            if (said and (names or self.loose)) or (self.loose and changes_something(text)):
                raise SchemeFormatError(f"{text.strip()[:40]!r} is no statement and no prose", line=line)
            if line > self.first and _ANYTHING.match(text):
                raise SchemeFormatError(f"{text.strip()[:40]!r} may set any name", line=line)
            named = names & set(_WORD.findall(_OPENED.sub("", text)))
            if named and (not changing.isdisjoint(_WORD.findall(text)) or not only_looks(text, names)):
                raise SchemeFormatError(
                    f"{text.strip()[:40]!r} may change {min(named)}, and is not understood", line=line
                )


def _is_array(value: Value) -> bool:
    return isinstance(value, list | Table | np.ndarray)


def read_bindings(text: str) -> Bindings:
    """The bindings of a text; of those in functions only where there are no others.

    Raises:
        SchemeFormatError: an array is set twice, or in a loop.
    """
    found = _read(text, within=False)
    return (
        _read(text, within=True) if not (found.arrays or found.loose) and re.search(r"(?m)^\s*def\s", text) else found
    )


def _read(text: str, within: bool) -> Bindings:
    found = Bindings()
    controlled = controlled_lines(plain_code(text))
    function, name, parameters = -1, "", ""
    for line, statement in statements(text, code=True):
        indent = len(statement) - len(statement.lstrip())
        if indent <= function:
            function = -1
        match = _STATEMENT.match(statement)
        if re.match(r"\s*function\b", statement):
            continue  # the head of a function of MATLAB, whose values are set in it
        if function >= 0:
            found.inner.append((line, statement, name, parameters))
        elif head := _FUNCTION.match(statement):
            found.unknown.append((line, head[1]))
            function, name, parameters = -1 if within else indent, head[2], head[3]
            if head[4].strip():
                found.inner.append((line, head[4], name, parameters))
        elif match and (match["words"] or not match["sizes"]):
            names = re.findall(r"\w+", match["names"])
            found.bind(names, statement[match.end() :], line, line in controlled)
        elif _LOOSE.match(statement):
            found.bind([], statement, line, line in controlled)
        else:
            found.unknown.append((line, statement))
    return found


def _number(name: str, numbers: list[Coefficient]) -> Coefficient:
    if len(numbers) > _NUMBERS[name] or (name == "int" and not isinstance(numbers[0], int)):
        raise NotUnderstoodError(f"{name}(...) is not understood")
    first, second = (*numbers, 0 if name == "complex" else 1)[:2]
    return plus(first, times(second, IMAGINARY_UNIT)) if name == "complex" else times(first, inverse(second))


def _reshaped(value: Value, sizes: list[Any], order: Literal["C", "F"] = "C") -> Array:
    """The entries, in their order, as an array of these sizes, by rows or (F) by columns."""
    array = as_array(plain(value))
    try:
        if array is not None and sizes:
            return array.reshape(sizes, order=order)
    except (ValueError, TypeError, OverflowError):
        pass
    raise NotUnderstoodError("an array that is given another number of entries")


def _cast(value: Value, sizes: list[int], dtype: str) -> Value:
    """An array of numbers of a type of numpy; refused where the type does not hold them, or the sizes are others."""
    array = as_array(plain(value))
    if array is None:
        return value
    if sizes and sizes != list(array.shape[:2]):
        if array.ndim != 1:
            raise NotUnderstoodError("a matrix of other sizes than it claims")
        array = _reshaped(array, sizes)
    whole = re.match(r"u?int|long|short", dtype)
    low = 0 if dtype[:1] == "u" else -127
    if dtype in ("bool", "bool_", "?") or (
        whole and not all(isinstance(one, int) and low <= one <= 127 for one in array.ravel().tolist())
    ):
        raise NotUnderstoodError(f"an array cast to {dtype}")
    return array
