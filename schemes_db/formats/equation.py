"""One statement `name = value`, as it is split from a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import SchemeFormatError
from .naming import NAME, WORD, family, letters_of, placed
from .nodes import Call, Node, sole_name
from .patterns import pattern

_ASSIGNED = pattern(
    rf"^(?P<words>(?:[A-Za-z]+[ ,:]\s*)*?)(?P<name>{NAME}|[A-Za-z]\[[^\]=]*:[^\]=]*\])\s*"
    r"(?P<sign>:=|\+=|-=|=(?!=)|<-|:(?!.*=))\s*(?P<right>.*)$",
    re.DOTALL,
)
_REVERSED = pattern(rf"^(.*[)\d\]])\s*=\s*({NAME})$")
_FOREIGN = frozenset(("assign", "wire", "reg", "my", "logic"))
"""Words before a name in languages that are not read."""


@dataclass
class Equation:
    """One statement `name = node`; `sign` is not 0 where it adds to a value, as in `c11 += m1`."""

    line: int
    name: str
    text: str
    sign: int = 0
    node: Node = None
    fault: SchemeFormatError | None = None
    names: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()
    """What the same name is also said to be: c11 = a11 b11 + a12 b21 = m1 + m2."""


def split_equation(line: int, text: str) -> Equation | None:
    """The equation that a statement is, or None.

    Raises:
        SchemeFormatError: a statement of a language that is not read, or a name set to two unlike things.
    """
    match = _ASSIGNED.match(text)
    if text in ("begin", "where"):
        raise SchemeFormatError(f"{text!r} belongs to a language that is not read", line=line)
    if match is None:
        reversed_ = _REVERSED.match(text)
        return Equation(line, reversed_.group(2), reversed_.group(1)) if reversed_ else None
    name, operator, right = match["name"], match["sign"], match["right"]
    if foreign := _FOREIGN.intersection(match["words"].split()):
        raise SchemeFormatError(f"{min(foreign)!r} belongs to a language that is not read", line=line)
    if ":" in name:
        place = placed(name[2:-1])
        if place is None:
            raise SchemeFormatError(f"{name[:30]} is not understood as a block", line=line)
        name = f"{name[0]}[{place[0] + 1},{place[1] + 1}]"
    parts = re.split(r"(?<![<>:=])=(?!=)", right)
    if not parts[0].strip() or (right.count("(") != right.count(")") and not re.search(r"\d", right)):
        return None  # prose such as: let A = (a b; c d)
    if letters_of(name) and not all(WORD.search(part) for part in parts[1:]):
        # m1 = x = y says twice what m1 is, m1 = x = 3 nothing
        raise SchemeFormatError("expected one equation a line, such as m1 = (a11 + a22)(b11 + b22)", line=line)
    return Equation(line, name, parts[0].strip(), {"+=": 1, "-=": -1}.get(operator, 0), others=tuple(parts[1:]))


def is_split(equation: Equation) -> bool:
    """Return whether a call cuts a matrix into the names of its four blocks by rows, as in `a, b, c, d = split(x)`."""
    node = equation.node
    if not (isinstance(node, Call) and len(node.arguments) == 1 and sole_name(node.arguments[0])):
        return False
    return equation.name in ("d", "h") or family(equation.name)[1] == (2, 2)
