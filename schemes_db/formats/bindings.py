"""The arrays that names are bound to in Python, MATLAB, Julia, Maple, C and LaTeX text.

Scalings and transposes are applied. A statement that may change an array and is not understood makes the file
unreadable; imports, checks and prose are passed over. Nothing is ever evaluated as code.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import SchemeFormatError
from ..gaussian import parse_number
from ..inexact import Coefficient
from .arithmetic import IMAGINARY_UNIT, inverse, plus, times
from .lines import controlled_lines, matrices_as_lists, spelled, without_block_comments, without_comment
from .nodes import (
    Call,
    Inverse,
    Item,
    Listed,
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
from .patterns import pattern
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
_PURE = frozenset(
    (
        *("einsum", "len", "shape", "sum", "max", "min", "abs", "allclose", "array_equal", "zeros", "dot", "matmul"),
        *("outer", "kron", "tensordot", "range", "print", "str", "dict", "list", "tuple", "array", "asarray", "size"),
        *(
            "reshape",
            "norm",
            "ones",
            "eye",
            "mod",
            "permute",
            "isequal",
            "matrix_rank",
            "ravel",
            "numel",
            "float",
            "int",
            "round",
            "sqrt",
            "all",
            "any",
            "zip",
            "enumerate",
        ),
    )
)
"""Functions that do not change their arguments."""

_OPERATOR = pattern(r"[-=+*/@^<>\[\]{}|~!&%?\\]|\w\(")
_CHANGES = pattern(
    r"(?i)\b(?:del|global|nonlocal|negate|swap|exchange|scaled?|halved?|doubled?|divided?|replaced?|transposed?|inverted?|times|half)\b"
)
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
        return {name: value for name, value in self.values.items() if isinstance(value, list | Table)}

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
            if _OPERATOR.search(text) or _CHANGES.search(text):
                name = sorted(named)[0]
                raise SchemeFormatError(f"{text.strip()[:40]!r} may change {name}, and is not understood", line=line)


def _is_pure(right: str, arrays: set[str]) -> bool:
    """Return whether the right side of a statement only looks at arrays."""
    return set(re.findall(r"(\w+)\(", right)) <= _PURE | arrays and not re.search(r"\bout\s*=", right)


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
        values = [Listed(values)]
    if len(names) > 1 and len(values) == 1 and isinstance(values[0], list):
        values = list(values[0])
    if len(names) != len(values):
        raise NotUnderstoodError(f"{len(names)} names for {len(values)} values")
    for name, value, node in zip(names, values, nodes, strict=False):
        again = name in found.values and isinstance(found.values[name], list | Table)
        if (again and name not in set(names_in(node))) or (controlled and isinstance(value, list | Table)):
            how = "set in a loop or under a condition" if controlled else "set twice"
            raise SchemeFormatError(f"{name} is {how}", line=code.count("\n", 0, start) + 1)
    found.values.update(zip(names, values, strict=True))
    if parser.kind == "end" or following:
        return len(code) if following is None else parser.start
    return parser.position if stopped else max(code.rfind("\n", 0, parser.start) + 1, start)


def evaluated(node: Node, found: Bindings) -> Any:
    """The value of a node: a number, a list, a table, or a text.

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
        if all(type(item) is int or (isinstance(item, list) and set(map(type, item)) <= {int}) for item in node):
            return node
        items = [evaluated(item, found) for item in node]
        if all(getattr(item, "joins", False) for item in items):
            return _joined([items])
        return Listed(items, getattr(node, "scales", False))
    if isinstance(node, Rows):
        return _joined([[evaluated(item, found) for item in row] for row in node.rows])
    if isinstance(node, ProductNode):
        return _product(node, found)
    if isinstance(node, Transposed):
        return _transposed(evaluated(node.node, found))
    if isinstance(node, Call):
        return _called(node, found)
    if isinstance(node, Inverse | Item | Total):
        return _scalar(node, found)
    raise NotUnderstoodError(f"{described(node)} is not understood")


def _sum(form: dict[str, Coefficient], found: Bindings) -> Any:
    """A name, or a sum of numbers that have names."""
    name = sole_name(form)
    if name in ("None", "null", "True", "true", "False", "false"):
        return None
    if name in found.values:
        return found.values[name]
    if len(form) == 1 and name == "" and isinstance(found.values.get(next(iter(form))), list):
        ((name, factor),) = form.items()
        return _times(found.values[name], factor)
    total: Coefficient = 0
    for name, factor in form.items():
        total = plus(total, times(factor, 1 if not name else _number(found.values.get(name), name)))
    return total


def _number(value: Any, name: str) -> Coefficient:
    if value is None or isinstance(value, list | dict | str):
        raise NotUnderstoodError(f"{name} is no number")
    return value  # type: ignore[no-any-return]


def _scalar(node: Node, found: Bindings) -> Coefficient:
    if isinstance(node, Inverse):
        return inverse(_number(evaluated(node.node, found), "a divisor"))
    if isinstance(node, Total):
        total: Coefficient = 0
        for part in node.parts:
            total = plus(total, _number(evaluated(part, found), "a sum of lists"))
        return total
    raise NotUnderstoodError(f"{described(node)} is not understood")


def _product(node: ProductNode, found: Bindings) -> Any:
    scalar: Coefficient = node.scalar
    arrays = []
    for factor in node.factors:
        value = evaluated(factor, found)
        if isinstance(value, list):
            arrays.append(value)
        else:
            scalar = times(scalar, _number(value, described(factor)))
    if not arrays:
        return scalar
    if len(arrays) > 1:
        raise NotUnderstoodError("a product of lists is not understood")
    return _times(arrays[0], scalar)


def _times(array: list[Any], factor: Coefficient) -> Any:
    if not getattr(array, "scales", False):
        raise NotUnderstoodError("a number times a list, which some languages scale and others repeat")
    return _each(array, lambda item: times(_number(item, "an entry"), factor))


def _each(array: list[Any], change: Any) -> Listed:
    return Listed([_each(item, change) if isinstance(item, list) else change(item) for item in array], True)


def _transposed(value: Any) -> Listed:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == len(value[0]) for row in value):
        raise NotUnderstoodError("a transpose of something that is no matrix")
    if any(isinstance(item, list) for row in value for item in row):
        raise NotUnderstoodError("a transpose of more than two axes")
    return Listed([Listed(row, True) for row in zip(*value, strict=True)], True)


def _joined(rows: list[list[Any]]) -> Listed:
    """The matrix of rows of numbers, or of matrices beside and below each other."""
    found: list[list[Any]] = []
    for row in rows:
        parts = [
            [list(line) for line in item] if isinstance(item, list) and item and isinstance(item[0], list)
            else [list(item)] if isinstance(item, list) else [[item]]
            for item in row
        ]  # fmt: skip
        if len({len(part) for part in parts}) != 1:
            raise NotUnderstoodError("matrices of unlike heights beside each other")
        found += [[item for line in lines for item in line] for lines in zip(*parts, strict=True)]
    return Listed([Listed(row, True) for row in found], True, True)


def _called(node: Call, found: Bindings) -> Any:
    """The value of a call that makes an array or a number, or turns or casts an array."""
    name, keywords = node.name.lstrip("."), dict(node.keywords)
    dtype = sole_name(keywords.pop("dtype", None)) or getattr(node.keywords.get("dtype"), "text", "")
    arguments = [one for one in node.arguments if sole_name(one) not in _RINGS]
    if keywords or not arguments:
        raise NotUnderstoodError(f"{described(node)} is not understood")
    if name in ("Fraction", "Rational", "Integer", "QQ", "ZZ", "mpq", "float", "complex", "int"):
        return _fraction(name, [evaluated(one, found) for one in arguments])
    if name == "astype" and len(arguments) == 2:
        dtype = sole_name(arguments.pop()) or "?"
    elif isinstance(arguments[0], Text):
        return _joined_text(arguments[0].text)
    values = [evaluated(one, found) for one in arguments]
    sizes = [value for value in values if isinstance(value, int)]
    lists = [value for value in values if isinstance(value, list)]
    if len(values) == 2 and name in _IDENTITIES and len(lists) == 1 and not sizes:
        raise NotUnderstoodError(f"{described(node)} is not understood")
    if name == "transpose" and len(values) == 1:
        return _transposed(values[0])
    if name == "reshape" and lists:
        return _reshaped(lists[0], sizes or (lists[1] if len(lists) == 2 else []))
    if name in (*_IDENTITIES, "tolist", "copy", "astype", "numpy", "clone") and len(lists) == 1:
        array = lists[0]
        if sizes and sizes != [len(array), *([len(array[0])] if array and isinstance(array[0], list) else [])]:
            if any(isinstance(item, list) for item in array):
                raise NotUnderstoodError("a matrix of other sizes than it claims")
            array = _reshaped(array, sizes)
        return _cast(array, dtype)
    if name in ("list", "tuple", "array", "stack") and len(values) == 1:
        return values[0]
    raise NotUnderstoodError(f"{described(node)} is not understood")


def _fraction(name: str, values: list[Any]) -> Coefficient:
    numbers = [_number(value, name) for value in values]
    if name == "complex" and len(numbers) == 2:
        return plus(numbers[0], times(numbers[1], IMAGINARY_UNIT))
    if len(numbers) > 2 or (len(numbers) == 2 and name not in ("Fraction", "Rational", "mpq")):
        raise NotUnderstoodError(f"{name}(...) is not understood")
    if name == "int" and not isinstance(numbers[0], int):
        raise NotUnderstoodError("int(...) of a number that is no integer")
    return times(numbers[0], inverse(numbers[1])) if len(numbers) == 2 else numbers[0]


def _joined_text(text: str) -> Listed:
    """The matrix of a text such as '1 0; 0 1'."""
    if not re.fullmatch(r"[-+\d\s.,;/]*", text):
        raise NotUnderstoodError("a text that is no matrix")
    node = Parser(f"[{text}]").whole()
    if not isinstance(node, Rows):
        raise NotUnderstoodError("a text that is no matrix")
    return _joined([list(row) for row in node.rows])


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _reshaped(array: list[Any], sizes: Sequence[Any]) -> Listed:
    """The entries, in their order, as an array of these sizes."""
    flat: list[Any] = list(_flat(array))
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    product = 1
    for size in known:
        product *= size
    if len(known) < len(sizes) and sizes.count(-1) == 1 and product and len(flat) % product == 0:
        sizes = [len(flat) // product if size == -1 else size for size in sizes]
    elif len(known) != len(sizes) or product != len(flat) or not sizes:
        raise NotUnderstoodError("an array that is given another number of entries")
    for size in reversed(list(sizes)[1:]):
        flat = [Listed(flat[at : at + size], True) for at in range(0, len(flat), size)]
    return Listed(flat, True)


def _cast(array: list[Any], dtype: str) -> Any:
    """An array of numbers of a type of numpy; refused where the type does not hold them."""
    integral = re.match(r"u?int|long|short", dtype) is not None
    if dtype in ("bool", "bool_", "?") or (
        integral
        and any(not isinstance(item, int) or (dtype[0] == "u" and item < 0) or abs(item) > 127 for item in _flat(array))
    ):
        raise NotUnderstoodError(f"an array cast to {dtype}")
    return Listed(array, True)
