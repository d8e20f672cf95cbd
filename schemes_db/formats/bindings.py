"""The arrays that names are bound to in Python, MATLAB, Julia, Maple, Mathematica, C and LaTeX text.

Scalings and transposes are applied. A statement that may change an array and is not understood makes the file
unreadable; imports, checks and prose are passed over. Nothing is ever evaluated as code.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...errors import SchemeFormatError
from ..gaussian import parse_number
from ..inexact import Coefficient
from .account import only_looks
from .arithmetic import IMAGINARY_UNIT, LinearForm, inverse, plus, times
from .arrays import Array, as_array
from .control_flow import controlled_lines, inner_lines
from .lines import MAX_SPLIT, plain_code, statements
from .patterns import ANYTHING, DECORATOR, changes_something, pattern, says_change
from .syntax import BY_COLUMNS, Meaning, Parser, Table, Value, name_of, number_in, plain, transposed

_CONTROL = "for|if|while|with|try|finally|else|elif|in|return|def|class|case|switch|do|and|or|not|except|lambda"
_ENDS = pattern(r"\s*(?:(?:return|raise|throw|quit|exit)\b|(?:sys\.exit|Quit|Abort|Return|error)\s*[(\[])")
"""Statements after which a program, or a function, is not executed further."""

_TYPED = pattern(r"^(?:Int|Float|Rational)\w*(?:\{\w+\})?(?=\[)")
"""The type of an array of Julia before its values."""

_STATEMENT = pattern(
    r"[ \t>,;.]*(?:[*-][ \t]+)?"
    rf"(?P<words>(?:(?!(?:{_CONTROL})\b)[A-Za-z_](?:[\w:]*\w)?(?:<[\w:<>, ]{{1,80}}>)?[ \t*&]+){{0,5}}"
    r"|integer(?:[ \t]*,[ \t]*\w+)*[ \t]*::[ \t]*)"
    rf"(?P<names>(?!(?:{_CONTROL})\b)[A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)"
    r"(?P<number>\{\d{1,4}\}|\(:,[ \t]*:,[ \t]*\d{1,4}\))?(?P<sizes>(?:\[[\w \t*]*\])*|\(\d{1,4}(?:,[ \t]*\d{1,4})+\))"
    r"[ \t]*(?::(?!=)[ \t]*[\w.]{1,40}(?:\[\w[\w.\[\], ]{1,80}\])?[ \t]*)?"
    r"(?P<sign>=(?!=)|:=|<-|:(?=\s*\[\[)|(?=\{\{))\s*(?=\S)"
)
_SIZE = pattern(r"[\w \t*]+|(?<=\[)(?=\])")
_ARRAY_SIZE = pattern(r",\s*(\w+)\s*>")
"""The sizes of an array of C or Fortran, and of a std::array."""

_OF_INTEGERS = pattern(r"\^|(?<![\d.])\d+\s*/\s*\d+(?![\d.])")
"""What C rounds down, and where it does not raise to a power."""

_TYPES = pattern(r"(?:int|float|double|short|long|char|integer|array|\bint\d+_t)\b")
"""Types of entries, of whose arrays the sizes are those of all entries; an array of others may be one of structures."""

_UNSIGNED = pattern(r"\b(?:unsigned|u_?int\w*|(?:std::)?uint\d+_t|u(?:char|short|long)|size_t|_?[Bb]ool(?:ean)?)\b")
"""Types of C that hold no negative numbers."""

_DECLARED = pattern(r"\s*#define\s+(\w+)\s+(\d{1,9})\s*|\s*[\w, \t]+::[ \t\[\]\w.>-]+")
"""A number of the preprocessor of C, and the types of names in Haskell."""
_LOOSE = pattern(r"\s*(?:[\[({]\s*(?:[\[({\"]|[\w.]+\()|Triad(?:Set)?\s*\()")
"""The start of an array or a list of arrays without a name."""

_BITS = pattern(r"(?<![\w.])0(?:[xX][\da-fA-F]{1,100}|[bB][01]{1,400})(?![\w.])")
"""A number in hexadecimal or binary, which is one among arrays; among blocks 0b11 is 0 times b11."""

_WORD = pattern(r"[A-Za-z_]\w*")
_ANYTHING = pattern(r"\s*(?:exec|eval|evalin|load|source|from\s+\S+\s+import\s*\*)(?!\w)")
"""Statements of code that may set any name, whatever follows; ANYTHING are those that may stand beside prose."""
_CLEARED = pattern(r"\s*clear(?:vars)?\s+(?!(?:all|variables|global)\b)[A-Za-z]\w*(?:\s+[A-Za-z]\w*)*\s*;?\s*")
"""A statement that forgets the names that it lists."""

_FUNCTION = pattern(r"(\s*(?:async\s+)?def\s+(\w+))\s*\(((?:[^()]|\([^()]*\))*)\)[^:]*:?(.*)", re.DOTALL)
_ALIAS = pattern(r"\s*(?:for\s+([\w\s,]+?)\s+in\b([^:]*)|([\w\s,]+?)=(?!=)([\w\s.,:\[\]]*)$)")
_CHANGED_WITHIN = pattern(
    r"\b([A-Za-z_]\w*)(?:\.\w+|\[[^\]]*\])*\s*(?:\[[^=]*\]\s*[-+*/%@]*=(?!=)|[-+*/%@]+=(?!=)"
    r"|\.(?:fill|sort|put|append|insert|extend|pop|remove|clear|reverse|resize|itemset|partition|set\w+|__\w+__)\()"
    r"|\bout\s*=\s*(\w+)|\b(?:global|nonlocal)\s+(\w+)"
)
"""What a statement may change: by an index, a sign before `=`, a method, as the place of a result, or anyhow."""

_EMPTY = pattern(r"\s*(\w+) = (?:cell|zeros)\([\d,\s]*\)")
"""Room of MATLAB for matrices that are set one after the other."""

_SCRIPT = pattern(r"(?:\s|[%#][^\n]*\n)*1;")
"""The first statement of an Octave script, which tells it from a file of one function."""

_OPENED = pattern(r"\bopen\([^()]*\)")
_ARRAYS = ("array", "asarray", "tensor", "Matrix", "matrix", "list", "tuple", "stack", "Array", "TriadSet", "Triad")
_DTYPE = pattern(r"(?:u?int|float|double|complex|bool|object)(?:\d+|_)?")
_NO_NUMBERS = pattern(r"bool|str|bytes|void|datetime|timedelta|\?$|b1$|[SUVMm]\d*$")
"""Types of numpy that hold no numbers, or 0 and 1 alone."""

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
    numbered: dict[str, int] = field(default_factory=dict)
    """The lines where a matrix with a number is set, as in `U{1} = ..`, by its name without the number."""

    first: float = math.inf
    """The line of the first array."""

    controlled: set[int] = field(default_factory=set)
    """The lines that a loop or a condition governs."""

    apart: set[int] = field(default_factory=set)
    """The lines in which a name is not that of the lines before: of functions, and after the end of a program."""

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
        said = str(name_of(arguments[1]) or arguments[1]) if len(arguments) == 2 else ""
        if name in (*_ARRAYS, ".astype") and _DTYPE.fullmatch(said):
            dtype, arguments = said, arguments[:1]
        lists = [one for one in arguments if isinstance(one, list | np.ndarray)]
        sizes = [one for one in arguments if isinstance(one, int)]
        if not keywords and arguments and name in _NUMBERS:
            return _number(name, [number_in(one, name) for one in arguments])
        if not keywords and lists:
            if name.lower().endswith("transpose") and len(arguments) == 1:
                return transposed(arguments[0])
            if "reshape" in name:
                order: Any = "F" if name == BY_COLUMNS else "C"
                return _reshaped(lists[0], sizes or (plain(lists[1]) if len(lists) == 2 else []), order)
            if len(lists) == 1 and name in _CASTS and len(arguments) == 1 + len(sizes) and min(sizes, default=1) > 0:
                rows = name == "matrix" and len(sizes) == 1  # of Sage
                if name.startswith("Triad") and isinstance(lists[0], list):
                    return list(lists[0])  # 2 times a triad is not 2 times each of its matrices
                return _cast(lists[0], [*sizes, -1] if rows else sizes, dtype)
        return super().called(name, arguments, keywords)

    def bind(self, names: list[str], text: str, line: int, sizes: Sequence[str] | None = None) -> None:
        """Bind names to the values of a text, arrays of a type of C of these sizes; without names they are `loose`."""
        try:
            parser = Parser(_BITS.sub(lambda number: str(int(number[0], 0)), _TYPED.sub("", text)), self)
            values = [parser.value()]
            while parser.accept(",") and parser.kind != "end":
                values.append(parser.value())
            if parser.kind != "end":
                raise parser.unexpected("the end")
            if len(names) == 1 and len(values) > 1:
                values = [values]
            if len(names) > 1 and len(values) == 1 and isinstance(values[0], list | np.ndarray):
                values = list(values[0])
            if len(names) == len(values) == 1 and name_of(values[0]) in _RINGS:
                self.values[names[0]] = values[0]
                return
            if names and len(names) != len(values):
                raise SchemeFormatError(f"{len(names)} names for {len(values)} values")
            if sizes is not None and _OF_INTEGERS.search(text):
                raise SchemeFormatError("a quotient, or a sign ^, among integers of C")
            if sizes and (array := as_array(plain(values[0]), 8)) is not None:
                values[0] = _sized(array, list(map(self.size, sizes)))
            listed = list(map(plain, values))
        except SchemeFormatError as error:
            self.unknown.append((line, f"{', '.join(names)} = {text}" if names else text))
            self.faults.update(dict.fromkeys(names or [""], SchemeFormatError(error.message, line=line)))
            return
        for name, value in zip(names, values, strict=False):
            controlled, known = line in self.controlled, _is_array(self.values.get(name))
            again = known and (len(names) > 1 or name not in _WORD.findall(text) or line in self.apart)
            if again or (controlled and _is_array(value)):
                how = "set in a loop or under a condition" if controlled else "set twice"
                raise SchemeFormatError(f"{name} is {how}", line=line)
        self.values.update(zip(names, values, strict=False))
        self.first = min(self.first, line if any(map(_is_array, values)) else math.inf)
        self.loose += [] if names else listed

    def size(self, text: str) -> int:
        """The size that a text says, such as 7 or RANK * 4; -1 where it is not known."""
        factors = [self.values.get(part.strip(), part.strip()) for part in text.split("*")]
        sizes = [int(one) for one in factors if isinstance(one, int) or one.isdecimal()]
        return math.prod(sizes) if len(sizes) == len(factors) else -1

    def account(self, names: Set[str]) -> None:
        """Check that no statement that is not understood may change an array of these names.

        Raises:
            SchemeFormatError: one may.
        """
        changing: set[str] = set()
        own: dict[str, set[str]] = {}
        for line, text, function, parameters in self.inner:
            given = own.setdefault(function, set(_WORD.findall(parameters)))
            changed = {name for found in _CHANGED_WITHIN.findall(text[:MAX_SPLIT]) for name in found}
            if others := changed & names - given:
                raise SchemeFormatError(f"{text.strip()[:40]!r} may change {min(others)} when it is called", line=line)
            if (alias := _ALIAS.match(text)) and not given.isdisjoint(_WORD.findall(alias[2] or alias[4] or "")):
                given.update(_WORD.findall(alias[1] or alias[3]))
            if len(text) > MAX_SPLIT or not given.isdisjoint(changed):
                changing.add(function)
                if not names.isdisjoint(_WORD.findall(parameters.partition("=")[2])):
                    raise SchemeFormatError(f"{function} may change what its parameters are set to", line=line)
        for name, line in self.numbered.items():
            if self.loose or plain(self.values.get(name, [])) not in ([], {}):
                raise SchemeFormatError(f"a matrix of {name} is set", line=line)
        names = names | self.numbered.keys()
        for line, text in self.unknown:
            if (empty := _EMPTY.fullmatch(text)) and line < self.numbered.get(empty[1], 0):
                self.faults.pop(empty[1], None)
                continue
            said = "def" not in text.split() and says_change(text)  # the head of a function says nothing
            if (said and (names or self.loose)) or (self.loose and changes_something(text)):
                raise SchemeFormatError(f"{text.strip()[:40]!r} is no statement and no prose", line=line)
            if line < self.first and DECORATOR.fullmatch(text):
                raise SchemeFormatError(f"what {text.strip()[:40]!r} does to a function is not known", line=line)
            cleared = _CLEARED.fullmatch(text)
            if line > self.first and (_ANYTHING.match(text) or (ANYTHING.match(text) and not cleared)):
                raise SchemeFormatError(f"{text.strip()[:40]!r} may set any name", line=line)
            named = names & set(_WORD.findall(_OPENED.sub("", text)))
            if named and (cleared or not changing.isdisjoint(_WORD.findall(text)) or not only_looks(text, names)):
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
    code = plain_code(text)
    found = Bindings(controlled=controlled_lines(code), apart=inner_lines(code))
    function, name, parameters = -1, "", ""
    aliases: dict[str, str] = {}
    ended = False
    for line, statement in statements(text, code=True):
        ended = ended or (function < 0 and _ENDS.match(statement) is not None)
        if ended:
            found.apart.add(line)
        indent = len(statement) - len(statement.lstrip())
        if indent <= function:
            function = -1
        match = _STATEMENT.match(statement)
        if re.match(r"\s*function\b", statement) or (statement == "1" and not found.values and _SCRIPT.match(text)):
            continue  # the head of a function of MATLAB, whose values are set in it; how a script of Octave starts
        if function >= 0:
            found.inner.append((line, statement, name, parameters))
        elif head := _FUNCTION.match(statement):
            found.unknown.append((line, head[1]))
            function, name, parameters = -1 if within else indent, head[2], head[3]
            if head[4].strip():
                found.inner.append((line, head[4], name, parameters))
        elif match and _binds(match):
            names, value, sizes = re.findall(r"\w+", match["names"]), statement[match.end() :], match["sizes"]
            if number := match["number"] or (not match["words"] and sizes):
                found.numbered.setdefault(names[0], line)
                names, sizes = [names[0] + re.sub(r"\D", "", number)], ""
            types = " ".join(aliases.get(word, word) for word in match["words"].split())
            if types == "using":
                aliases[names[0]] = value
            said = [*_SIZE.findall(sizes), *reversed(_ARRAY_SIZE.findall(types))]
            found.bind(names, value, line, said if _TYPES.search(types) else None)
            if _UNSIGNED.search(types) and any(_has_negatives(found.values.get(one)) for one in names):
                raise SchemeFormatError(f"negative numbers of type {types}", line=line)
        elif declared := _DECLARED.fullmatch(statement):
            if declared[1]:
                found.bind([declared[1]], declared[2], line)
        elif _LOOSE.match(statement):
            found.bind([], statement, line)
        else:
            found.unknown.append((line, statement))
    return found


def _has_negatives(value: Value) -> bool:
    """Return whether a value is an array with a negative integer."""
    array = as_array(plain(value), 8)
    return array is not None and any(isinstance(one, int) and one < 0 for one in array.ravel().tolist())


def _binds(match: re.Match[str]) -> bool:
    """Return whether a statement sets names, or one matrix of several with a number, and no part of an array."""
    single = "," not in match["names"] or not (match["number"] or match["sizes"])
    if match["sizes"][:1] == "(":
        return single and "::" in match["words"]
    whole = match["sign"] and (not match["sizes"] or re.fullmatch(r"\[\d{1,4}\]", match["sizes"]))
    return single and bool(match["words"] or whole)


def _number(name: str, numbers: list[Coefficient]) -> Coefficient:
    if len(numbers) > _NUMBERS[name] or (name == "int" and not isinstance(numbers[0], int)):
        raise SchemeFormatError(f"{name}(...) is not understood")
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
    raise SchemeFormatError("an array that is given another number of entries")


def _sized(array: Array, sizes: list[int]) -> Array:
    """An array, or a list of its entries, with the sizes that it has by its declaration, -1 where that is not known.

    Brackets around one item count for nothing: a std::array has a pair more.
    """
    if array.ndim == 1:
        return _reshaped(array, sizes)
    if array.ndim == len(sizes) and all(known in (-1, size) for size, known in zip(array.shape, sizes, strict=True)):
        return array
    if [size for size in array.shape if size != 1] != [size for size in sizes if size != 1]:
        raise SchemeFormatError("a matrix of other sizes than it claims")
    return array.reshape(sizes)


def _cast(value: Value, sizes: list[int], dtype: str) -> Value:
    """An array of numbers of a type of numpy; refused where the type does not hold them, or the sizes are others."""
    array = as_array(plain(value))
    if array is None:
        return value
    array = _sized(array, sizes) if sizes else array
    unsigned = re.match(r"u(?:int|byte|short|long|\d)|[BHILQ]$", dtype)
    whole = unsigned or re.match(r"int|byte|(?:long)*long|short|i\d|[bhilq]$", dtype)
    low = 0 if unsigned else -127
    if _NO_NUMBERS.match(dtype) or (
        whole and not all(isinstance(one, int) and low <= one <= 127 for one in array.ravel().tolist())
    ):
        raise SchemeFormatError(f"an array cast to {dtype}")
    return array
