"""One statement `name = value`, as it is split from a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import SchemeFormatError
from .naming import NAME, WORD, family, letters_of, placed
from .patterns import pattern
from .syntax import words

_ASSIGNED = pattern(
    rf"^(?P<words>(?:[A-Za-z]+[ ,:]\s*)*?)(?P<name>{NAME}|[A-Za-z]\[[^\]=]*:[^\]=]*\])\s*"
    r"(?P<sign>:=|\+=|-=|=(?!=)|<-|:(?!.*=))\s*(?P<right>.*)$",
    re.DOTALL,
)
_REVERSED = pattern(rf"^(.*[)\d\]])\s*=\s*({NAME})$")
_FOREIGN = frozenset(("assign", "wire", "reg", "my", "logic"))
"""Words before a name in languages that are not read."""

_SPLIT = pattern(r"[A-Za-z_]\w+\(\s*[A-Za-z]\w*\s*\)")
_MATRIX = pattern(r"[\[{]|\(\s*\[|(?:\w+\.)?(?:block|[hv]stack|bmat|array|[mM]atrix)\(")
_ITEM = pattern(r"([A-Za-z]\w*)\[([^\[\]]*)\]")


@dataclass
class Equation:
    """One statement `name = text`; `sign` is not 0 where it adds to a value, as in `c11 += m1`.

    `cell` are the row and column of an entry, where the text is a matrix and the name that of one entry.
    """

    line: int
    name: str
    text: str
    sign: int = 0
    others: tuple[str, ...] = ()
    """What the same name is also said to be: c11 = a11 b11 + a12 b21 = m1 + m2."""

    cell: tuple[int, int] | None = None
    names: tuple[str, ...] = ()

    def settle(self, lower: bool, names: set[str]) -> None:
        """Choose between what the name is said to be, and list the names in it."""
        if lower:
            self.name, self.text = self.name.lower(), self.text.lower()
            self.others = tuple(map(str.lower, self.others))
        if self.others and names.isdisjoint(words(self.text)):  # c11 = a11 b11 + a12 b21 = m1 + m2
            self.text = next((one for one in self.others if names.issuperset(words(one))), self.text)
        self.names = (self.item[0],) if self.item else tuple(words(self.text))

    @property
    def item(self) -> tuple[str, str] | None:
        """The name and the index of a part of a matrix that the right side is, as in `a11 = A[:h, :h]`."""
        match = _ITEM.fullmatch(self.text)
        return None if match is None or WORD.fullmatch(self.text) else (match[1], match[2])

    @property
    def is_matrix(self) -> bool:
        return self.cell is None and _MATRIX.match(self.text) is not None

    @property
    def is_split(self) -> bool:
        """True if a call cuts a matrix into the names of its four blocks by rows, as in `a, b, c, d = split(x)`."""
        last = self.name in ("d", "h") or family(self.name)[1] == (2, 2)
        return last and _SPLIT.fullmatch(self.text) is not None


def split_equation(line: int, text: str) -> Equation | None:
    """The equation that a statement is, or None.

    Raises:
        SchemeFormatError: a statement of a language that is not read, or a name set to two unlike things.
    """
    match = _ASSIGNED.match(text)
    foreign = {text} & {"begin", "where"} or (match and _FOREIGN.intersection(match["words"].split()))
    if foreign:
        raise SchemeFormatError(f"{min(foreign)!r} belongs to a language that is not read", line=line)
    if match is None:
        reversed_ = _REVERSED.match(text)
        return Equation(line, reversed_.group(2), reversed_.group(1)) if reversed_ else None
    name, operator, right = match["name"], match["sign"], match["right"]
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
    return Equation(line, name, parts[0].strip(), {"+=": 1, "-=": -1}.get(operator, 0), tuple(parts[1:]))
