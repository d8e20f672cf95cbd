"""The arrays that names are bound to in Python, MATLAB, Julia, Maple, C and LaTeX text.

Scalings and transposes are applied. A statement that may change an array and is not understood makes the file
unreadable; imports, checks and prose are passed over. Nothing is ever evaluated as code.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import SchemeFormatError
from ..gaussian import parse_number
from ..inexact import Coefficient
from .arithmetic import IMAGINARY_UNIT, inverse, plus, times
from .arrays import Array, as_array
from .lines import controlled_lines, matrices_as_lists, spelled, without_block_comments, without_comment
from .nodes import (
    Call,
    Inverse,
    Node,
    ProductNode,
    Rows,
    Table,
    Text,
    Total,
    Transposed,
    described,
    is_number,
    names_in,
    sole_name,
)
from .patterns import CHANGES, OPERATOR, pattern
from .syntax import Parser

_STATEMENT = pattern(
    r"[ \t>,;.]*(?:[*-][ \t]+)?(?P<words>(?:[A-Za-z_][\w:<>]*(?:\[\])*[ \t*&]+){0,5})"
    r"(?P<names>[A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)"
    r"(?P<sizes>(?:\[\w*\])*)[ \t]*(?::(?!=)[ \t]*[\w.\[\], ]{1,80})?(?P<sign>=(?!=)|:=|<-)[ \t]*(?=\S|\n[ \t]*[\[{(])"
)
_WORD = pattern(r"[A-Za-z_]\w*")
_HARMLESS = pattern(
    r"\s*(?:import|from|using|include|package|print|assert|disp|display|s?printf|fprintf|console|cout|println|puts|check\w*"
    r"|verify\w*|test\w*|show\w*|raise|pass|end|return\s*[\[({]*\s*\w+(?:\s*,\s*\w+)*\s*[\])}]*\s*;?\s*$)\b"
)
_SET = pattern(r"\s*([A-Za-z_][\w\[\], .:]*?)\s*(?:[-+*/@%]|//|\*\*)?=(?!=)(.*)$")
_CHANGED = pattern(r"\s*(?:(?:global|nonlocal)\s+)?([A-Za-z_]\w*)\s*(?:\[[^=]*=|\.\w+\(|[-+*/@%]=|$)")
_PURE = pattern(
    r"einsum|len|shape|sum|max|min|abs|allclose|array_equal|zeros|dot|matmul|outer|kron|tensordot|range|print|str|dict|list"
    r"|tuple|array|asarray|size|reshape|norm|ones|eye|mod|permute|isequal|matrix_rank|ravel|numel|float|int|round|sqrt|all"
    r"|any|zip|enumerate"
)
"""Functions that do not change their arguments."""

_IDENTITIES = ("array", "asarray", "tensor", "Matrix", "matrix", "list", "tuple", "stack", "sparse", "full", "Array")
_RINGS = ("QQ", "ZZ", "QQbar", "CC", "RR")
_AND = pattern(r"[,.;]?\s+and\s+(?=[A-Za-z]\w*\s*=)")
_FENCE = pattern(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$")


class NotUnderstoodError(SchemeFormatError):
    """A value that is no number and no array of numbers, or a call of which it is not known what it does."""


@dataclass
class Bindings:
    """The values of names, in order; the statements that were not understood, and those of functions, by line."""

    values: dict[str, Any] = field(default_factory=dict)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    inner: list[tuple[int, str, str]] = field(default_factory=list)
    faults: dict[str, SchemeFormatError] = field(default_factory=dict)

    @property
    def arrays(self) -> dict[str, Any]:
        return {name: nested(value) for name, value in self.values.items() if _is_array(value)}

    def account(self) -> None:
        """Check that no statement that is not understood may change an array.

        Raises:
            SchemeFormatError: one may.
        """
        arrays = set(self.arrays)
        for line, text, parameters in self.inner:
            changed = _CHANGED.match(text)
            if changed and changed[1] in arrays and changed[1] not in parameters:
                raise SchemeFormatError(f"{text.strip()[:40]!r} may change {changed[1]} when it is called", line=line)
        for line, text in self.unknown:
            named = arrays.intersection(_WORD.findall(text))
            if not named or _HARMLESS.match(text):
                continue
            loop = re.match(r"\s*for\s+([\w\s,()]+?)\s+in\b[^:]*:\s*$", text)
            if loop is not None:
                arrays.update(_WORD.findall(loop[1]))  # whose changes are changes of what they stand for
                continue
            match = _SET.match(text)
            left, right = match.groups() if match else ("", "")
            bound = set(re.findall(r"(?:^|,)\s*(\w+)", left))
            if bound and not arrays & bound and _is_pure(right, arrays):
                if re.fullmatch(r"\s*\w+(?:\[[^\]]*\])*\s*;?", right):
                    arrays.update(bound)  # another name of an array, or of a part of it
                continue
            if OPERATOR.search(text) or CHANGES.search(text) or re.match(r"\s*(?:del|global|nonlocal)\b", text):
                name = sorted(named)[0]
                raise SchemeFormatError(f"{text.strip()[:40]!r} may change {name}, and is not understood", line=line)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | Table | np.ndarray)


def _is_pure(right: str, arrays: set[str]) -> bool:
    """Return whether the right side of a statement only looks at arrays."""
    called = set(re.findall(r"(\w+)\(", right)) - arrays
    return all(map(_PURE.fullmatch, called)) and not re.search(r"\bout\s*=", right)


def body_of(text: str) -> str:
    """The text between code fences, or the whole text if there are none."""
    parts = _FENCE.split(text)
    return "\n".join(parts[1::2]) if len(parts) > 2 else text


def plain_code(text: str) -> str:
    """The text without comments, with LaTeX's matrices as rows."""
    text = without_block_comments(text)
    if "\\begin{" in text or "\\frac" in text:
        lines = matrices_as_lists(text).splitlines()
        plain = (spelled(without_comment(line).replace("\\\\", " ").replace("&", " ")) for line in lines)
        return "\n".join(_AND.sub(";", line) for line in plain)
    return "\n".join(map(without_comment, text.splitlines()))


def read_bindings(text: str) -> Bindings:
    """The bindings of a text; of those in functions only where there are no others.

    Raises:
        SchemeFormatError: a statement may change an array, and is not understood; or an array is set twice.
    """
    code = plain_code(text)
    found = _read(code, within=False)
    if not found.arrays and re.search(r"(?m)^\s*def\s", code):
        found = _read(code, within=True)
    found.account()
    return found


def _read(code: str, within: bool) -> Bindings:
    found = Bindings()
    controlled = controlled_lines(code)
    position, line, function, parameters = 0, 1, -1, ""
    while position < len(code):
        stop = code.find("\n", position)
        stop = len(code) if stop < 0 else stop
        text = code[position:stop]
        indent = len(text) - len(text.lstrip())
        if text.strip() and function >= 0 and indent <= function:
            function = -1
        after = stop + 1
        if function >= 0:
            found.inner.append((line, text, parameters))
        elif not text.strip():
            pass
        elif re.match(r"\s*(?:async\s+)?def\s", text):
            function, parameters = -1 if within else indent, text.partition("(")[2]
        elif (match := _STATEMENT.match(code, position)) and not (match["sizes"] and not match["words"]):
            names = tuple(name.strip() for name in match["names"].split(","))
            try:
                after = _bind(found, names, code, match.end(), line in controlled)
            except NotUnderstoodError as error:
                found.unknown.append((line, text))
                found.faults.update(dict.fromkeys(names, SchemeFormatError(error.message, line=line)))
        else:
            found.unknown.append((line, text))
        line += code.count("\n", position, after)
        position = after
    return found


def _bind(found: Bindings, names: Sequence[str], code: str, start: int, controlled: bool) -> int:
    """Bind names to the values that follow; the position after them is returned."""
    parser = Parser(code, start, lines=True)
    try:
        nodes = [parser.value()]
        following = None
        while not parser.ended() and parser.accept(",") and parser.kind != "end":
            if (following := _STATEMENT.match(code, parser.start)) is not None:
                break
            nodes.append(parser.value())
    except SchemeFormatError as error:
        raise NotUnderstoodError(error.message, error.file, error.line) from None
    stopped = parser.at(";", ":") or (parser.at(".") and not code[parser.position : parser.position + 1].strip())
    if not (following or parser.ended() or stopped or code[parser.start - 1 : parser.start] == "\n"):
        raise NotUnderstoodError(f"unexpected {parser.token[:12]!r}")
    values: list[Any] = [evaluated(node, found) for node in nodes]
    if len(names) == 1 and len(values) > 1:
        values = [values]
    if len(names) > 1 and len(values) == 1 and isinstance(values[0], list | np.ndarray):
        values = list(values[0])
    if len(names) != len(values):
        raise NotUnderstoodError(f"{len(names)} names for {len(values)} values")
    for name, value, node in zip(names, values, nodes, strict=False):
        again = _is_array(found.values.get(name))
        if (again and name not in set(names_in(node))) or (controlled and _is_array(value)):
            how = "set in a loop or under a condition" if controlled else "set twice"
            raise SchemeFormatError(f"{name} is {how}", line=code.count("\n", 0, start) + 1)
    found.values.update(zip(names, values, strict=True))
    if parser.kind == "end" or following:
        return len(code) if following is None else parser.start
    return parser.position if stopped else max(code.rfind("\n", 0, parser.start) + 1, start)


def evaluated(node: Node, found: Bindings) -> Any:
    """The value of a node: a number, a text, a list, a table, or an array, which a number before it multiplies.

    Raises:
        NotUnderstoodError: it has none that is known.
    """
    if is_number(node):
        return node
    if isinstance(node, Text):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            return parse_number(node.text)
        return node.text
    if isinstance(node, Table):
        return Table({name: evaluated(value, found) for name, value in node.items()})
    if isinstance(node, dict):
        return _sum(node, found)
    if isinstance(node, list):
        plain = all(type(item) is int or (isinstance(item, list) and set(map(type, item)) <= {int}) for item in node)
        items = list(node) if plain else [evaluated(item, found) for item in node]
        if items and all(isinstance(item, _Joined) for item in items):
            return _joined([items])
        return _array(items) if getattr(node, "scales", False) else items
    if isinstance(node, Rows):
        return _joined([[evaluated(item, found) for item in row] for row in node.rows])
    if isinstance(node, ProductNode):
        return _product(node.scalar, [evaluated(factor, found) for factor in node.factors])
    if isinstance(node, Transposed):
        return _matrix(evaluated(node.node, found), "a transpose of something that is no matrix").T.view(np.ndarray)
    if isinstance(node, Call):
        return _called(node, found)
    if isinstance(node, Inverse):
        return inverse(_number(evaluated(node.node, found), "a divisor"))
    if isinstance(node, Total):
        return _total(_number(evaluated(part, found), "a sum of lists") for part in node.parts)
    raise NotUnderstoodError(f"{described(node)} is not understood")


class _Joined(np.ndarray):
    """A matrix of rows that blanks or semicolons part: a list of such is one matrix, as in MATLAB."""


def nested(value: Any) -> Any:
    """A value with its arrays as nested lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return Table({name: nested(item) for name, item in value.items()})
    deep = isinstance(value, list) and any(isinstance(item, list | np.ndarray | dict) for item in value)
    return [nested(item) for item in value] if deep else value


def _array(value: Any) -> Any:
    """Nested lists as an array, or as they are where they are ragged."""
    array = as_array(nested(value))
    return value if array is None else array


def _matrix(value: Any, fault: str, ndim: int = 2) -> Array:
    array = as_array(nested(value))
    if array is None or (ndim and array.ndim != ndim):
        raise NotUnderstoodError(fault)
    return array


def _sum(form: dict[str, Coefficient], found: Bindings) -> Any:
    """A name, or a sum of numbers that have names."""
    name = sole_name(form)
    if name in ("None", "null", "True", "true", "False", "false"):
        return None
    if name in found.values:
        return found.values[name]
    if len(form) == 1 and isinstance(array := found.values.get(next(iter(form))), list | np.ndarray):
        return _product(next(iter(form.values())), [array])
    return _total(times(factor, _number(found.values.get(name), name) if name else 1) for name, factor in form.items())


def _total(numbers: Iterable[Coefficient]) -> Coefficient:
    total: Coefficient = 0
    for number in numbers:
        total = plus(total, number)
    return total


def _number(value: Any, name: str) -> Coefficient:
    if value is None or isinstance(value, list | dict | str | np.ndarray):
        raise NotUnderstoodError(f"{name} is no number")
    return value  # type: ignore[no-any-return]


def _product(scalar: Coefficient, values: Sequence[Any]) -> Any:
    """A number times numbers and one array at most."""
    arrays = [value for value in values if isinstance(value, list | np.ndarray)]
    for value in values:
        if not isinstance(value, list | np.ndarray):
            scalar = times(scalar, _number(value, "a factor"))
    if not arrays:
        return scalar
    if len(arrays) > 1:
        raise NotUnderstoodError("a product of lists is not understood")
    if not isinstance(arrays[0], np.ndarray):
        raise NotUnderstoodError("a number times a list, which some languages scale and others repeat")
    return np.frompyfunc(lambda entry: times(entry, scalar), 1, 1)(arrays[0].view(np.ndarray))


def _joined(rows: list[list[Any]]) -> Array:
    """The matrix of rows of numbers, or of matrices beside and below each other."""
    fault = "matrices of unlike heights beside each other"
    found = []
    for row in rows:
        if not any(isinstance(item, list | np.ndarray) for item in row):
            row = [[row]]
        parts = [_matrix(item if isinstance(item, list | np.ndarray) else [item], fault, 0) for item in row]
        parts = [np.atleast_2d(part) for part in parts]
        if len({part.shape[0] for part in parts}) != 1 or any(part.ndim != 2 for part in parts):
            raise NotUnderstoodError(fault)
        found.append(np.concatenate(parts, axis=1))
    if len({part.shape[1] for part in found}) != 1:
        raise NotUnderstoodError("rows of unlike lengths")
    return np.concatenate(found).view(_Joined)


def _called(node: Call, found: Bindings) -> Any:
    """The value of a call that makes an array or a number, or turns or casts an array."""
    name, keywords = node.name.lstrip("."), dict(node.keywords)
    dtype = sole_name(keywords.pop("dtype", None)) or getattr(node.keywords.get("dtype"), "text", "")
    arguments = [one for one in node.arguments if sole_name(one) not in _RINGS]
    unknown = NotUnderstoodError(f"{described(node)} is not understood")
    if keywords or not arguments:
        raise unknown
    if name in ("Fraction", "Rational", "Integer", "QQ", "ZZ", "mpq", "float", "complex", "int"):
        return _fraction(name, [_number(evaluated(one, found), name) for one in arguments])
    if name == "astype" and len(arguments) == 2:
        dtype = sole_name(arguments.pop()) or "?"
    elif isinstance(arguments[0], Text):
        return _joined_text(arguments[0].text)
    values = [evaluated(one, found) for one in arguments]
    sizes = [value for value in values if isinstance(value, int)]
    lists = [value for value in values if isinstance(value, list | np.ndarray)]
    if name == "transpose" and len(values) == 1:
        return _matrix(values[0], "a transpose of something that is no matrix").T
    if name == "reshape" and lists:
        return _reshaped(lists[0], sizes or (nested(lists[1]) if len(lists) == 2 else []))
    cast = name in (*_IDENTITIES, "tolist", "copy", "astype", "numpy", "clone") and len(lists) == 1
    if cast and not (len(values) == 2 and name in _IDENTITIES and not sizes):
        array = _array(lists[0])
        shape = array.shape if isinstance(array, np.ndarray) else ()
        if sizes and sizes != list(shape[:2]):
            if len(shape) != 1:
                raise NotUnderstoodError("a matrix of other sizes than it claims")
            array = _reshaped(array, sizes)
        return _cast(array, dtype)
    if name in ("list", "tuple", "array", "stack") and len(values) == 1:
        return values[0]
    raise unknown


def _fraction(name: str, numbers: list[Coefficient]) -> Coefficient:
    if name == "complex" and len(numbers) == 2:
        return plus(numbers[0], times(numbers[1], IMAGINARY_UNIT))
    if len(numbers) > 2 or (len(numbers) == 2 and name not in ("Fraction", "Rational", "mpq")):
        raise NotUnderstoodError(f"{name}(...) is not understood")
    if name == "int" and not isinstance(numbers[0], int):
        raise NotUnderstoodError("int(...) of a number that is no integer")
    return times(numbers[0], inverse(numbers[1])) if len(numbers) == 2 else numbers[0]


def _joined_text(text: str) -> Array:
    """The matrix of a text such as '1 0; 0 1'."""
    node = Parser(f"[{text}]").whole() if re.fullmatch(r"[-+\d\s.,;/]*", text) else None
    if not isinstance(node, Rows):
        raise NotUnderstoodError("a text that is no matrix")
    return _joined([list(row) for row in node.rows])


def _reshaped(value: Any, sizes: list[Any]) -> Array:
    """The entries, in their order, as an array of these sizes."""
    array = _matrix(value, "a reshape of something that is no array", 0)
    try:
        return array.reshape(sizes) if sizes else array.reshape(-1, 0)
    except (ValueError, TypeError, OverflowError):
        raise NotUnderstoodError("an array that is given another number of entries") from None


def _cast(value: Any, dtype: str) -> Any:
    """An array of numbers of a type of numpy; refused where the type does not hold them."""
    entries = np.ravel(value).tolist() if isinstance(value, np.ndarray) else [None]
    unsigned = dtype[:1] == "u"
    if dtype in ("bool", "bool_", "?") or (
        re.match(r"u?int|long|short", dtype)
        and any(not isinstance(item, int) or (unsigned and item < 0) or abs(item) > 127 for item in entries)
    ):
        raise NotUnderstoodError(f"an array cast to {dtype}")
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value
