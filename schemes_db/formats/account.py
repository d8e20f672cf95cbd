"""What stands in a text of equations and is no equation: prose, matrices of blocks, cuts of matrices into blocks.

A line that names a block or a product must be understood, unless it is prose without an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ...errors import SchemeFormatError
from .arithmetic import LinearForm
from .equation import Equation
from .naming import LETTERS, WORD, family, letters_of, placed
from .patterns import CHANGES, OPERATOR, SHOWN, pattern
from .syntax import Meaning, Parser, Value, joined, name_of, rows_of

_MATRIX = pattern(
    r"^(?:return\b\s*|(?:\(?[A-Za-z]\w*(?P<turned>')?\)?|(?P<left>\[[^=]*\]))\s*:?=\s*)(?P<value>[\[(A-Za-z].*)$"
)
_DECLARED = pattern(
    r"(?:(?:static|const|unsigned|long)\s+)*(?:int|float|double|long|short|auto|real|matrix|t|scalar)(?:\[\])*[\s:&*]+"
    r"\w+(?:[\[(][\d,\s]*[\])])*(?:\s*,\s*\**\w+(?:[\[(][\d,\s]*[\])])*)*",
    re.IGNORECASE,
)
"""A declaration without a value, such as `double m1, a[2][2]`."""

_PROGRAM = pattern(
    r"\s*(?:(?:for|while|elif|try|with|raise|yield|switch)\b.*[:({;=\])]|[\w.]+\(.*\)\s*;?$"
    r"|(?:\w+\s+)?[A-Za-z_][\w.]*(?:\[.*\])?\s*[-+*/]?=\s*(?!len\(|size\(|length\(|np\.zeros|zeros\().*\w[\[(])"
)
"""What is no part of a function of products: loops, calls, and values from calls."""

_RANGE = pattern(r"\b([A-Za-z]+)_?\d+\s*(?:-|\.\.\.?|\u2026)\s*\1?_?\d+\b")
_WHOLE = pattern(r"(?:return\b|([A-Za-z])\s*([-+*/@]?=(?!=)|:=|<-))(.*)")
_GARBAGE = pattern(r"(?=.*\d)[-+*/^][-+*/^().\d\s]*")
MAX_MATRIX = 200_000
"""Characters up to which a line may be a matrix of outputs."""


def stacked(name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
    """The matrix that a call such as `np.block([[c11, c12], [c21, c22]])` puts together; None for other calls."""
    if len(arguments) != 1 or keywords or not isinstance(value := arguments[0], list):
        return None
    if name in ("block", "vstack", "bmat"):
        return joined([row if isinstance(row, list) and name != "vstack" else [row] for row in value])
    return value if name in ("hstack", "array", "Matrix", "matrix", "list") else None


class Names(Meaning):
    """Of a matrix the names in each of its cells."""

    zero = LinearForm()

    def named(self, name: str) -> Value:
        return LinearForm({name: 1})

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        value = stacked(name, arguments, keywords)
        return super().called(name, arguments, keywords) if value is None else value

    def multiplied(self, left: Value, right: Value) -> Value:
        if isinstance(left, LinearForm) and isinstance(right, LinearForm):
            left = LinearForm(dict.fromkeys(left, 2)) if len(left) == 1 else left
            left.update(dict.fromkeys(right, 2))  # in place: a long product takes linear time
            return left
        return super().multiplied(left, right)


def cells_of(text: str) -> list[list[LinearForm]]:
    """The cells of a matrix of names; none where a text is no such matrix."""
    try:
        rows = rows_of(Parser(text, Names()).whole())
    except SchemeFormatError:
        return []
    return rows if all(isinstance(cell, LinearForm) for row in rows for cell in row) else []


@dataclass
class Account:
    """What is known while statements are accounted for: names with values, and the letters of blocks and products."""

    names: set[str]
    families: set[str]
    matrices: list[tuple[int, str, list[list[LinearForm]], list[list[LinearForm]]]] = field(default_factory=list)
    """Matrices of outputs: line, text, the names in the cells, and the names of the outputs where they have some."""

    bases: set[int] = field(default_factory=set)
    """The first index of blocks that are cut out of matrices."""

    code: list[int] = field(default_factory=list)
    """The lines that look like a program and have no block in them."""

    def of(self, line: int, text: str, equation: Equation | None) -> bool:
        """Return whether a statement that is no equation is understood; prose is not, and says nothing.

        Raises:
            SchemeFormatError: it does something to a block or a product, and what is not known.
        """
        if SHOWN.match(text) or _DECLARED.fullmatch(text):
            return False
        if _GARBAGE.fullmatch(text):
            raise SchemeFormatError(f"{text[:40]!r} belongs to no equation", line=line)
        if len(text) < MAX_MATRIX:
            if (match := _MATRIX.match(text)) and self.is_matrix(line, match):
                return True
            if equation is not None and equation.is_split:
                return True
            if equation is not None and equation.item:
                return self.cuts_block(equation, *equation.item)
            if self.changes_a_matrix(text):
                raise SchemeFormatError(f"{text[:40]!r} is not understood", line=line)
        new = equation is not None and not letters_of(equation.name) and equation.name not in self.families
        mentioned = any(letters_of(word) in self.families for word in WORD.findall(text))
        if new or not mentioned:  # a name that nothing uses
            if not new and _PROGRAM.match(text):
                self.code.append(line)
            return False
        shown = _RANGE.sub("", text) if len(re.findall(r"[A-Za-z]{3,}", text)) > 1 else text
        if OPERATOR.search(shown) or CHANGES.search(text):
            raise SchemeFormatError(self.complaint(text, equation), line=line)
        return False

    def complaint(self, text: str, equation: Equation | None) -> str:
        if equation is None:
            return f"{text[:40]!r} is no equation; write one a line, such as m1 = (a11 + a22)(b11 + b22)"
        unknown = sorted(name for name in equation.names if name not in self.names and not letters_of(name))
        if letters_of(equation.name) and unknown:
            return f"{unknown[0]} has no value yet"
        return f"{text[:40]!r} is not understood"

    def changes_a_matrix(self, text: str) -> bool:
        """Return whether a statement makes another matrix of A, B or C as a whole: A = 2*A, return C.T."""
        match = _WHOLE.match(text)
        if match is None:
            return False
        letter, sign, right = (match[1] or "").lower(), match[2] or "", match[3].lower()
        bare = self.families.intersection(re.findall(r"(?<![\w.])[a-z](?![\w(])", right))
        if not letter:
            return bool(re.search(r"[-+*/'^.@\[]", right) and bare & {"c", "z"})
        return letter in self.families and (sign[0] in "-+*/@" or letter in bare or len(bare) == 1)

    def is_matrix(self, line: int, match: re.Match[str]) -> bool:
        """Return whether a statement is a matrix of outputs, or of the blocks of an operand in their order."""
        value = f"({match['value']})'" if match["turned"] else match["value"]
        rows, left = cells_of(value), cells_of(match["left"] or "")
        if left and list(map(len, left)) != list(map(len, rows)):
            raise SchemeFormatError("two matrices of unlike sizes are set equal", line=line)
        names = [name_of(cell) for row in rows for cell in row]
        if self.names.intersection(name for row in rows for cell in row for name in cell):
            self.matrices.append((line, value, rows, left))
            return True
        if all(len(name) == 1 for name in names):
            return "".join(names).lower() in (LETTERS[:4], LETTERS[4:])
        return places_of(names, len(rows[0])) is not False

    def cuts_block(self, equation: Equation, matrix: str, index: str) -> bool:
        """Check that a name that is set to slices of a matrix is that of the block that they cut out."""
        place, (letters, written) = placed(index), family(equation.name)
        if letters != matrix.lower():
            if equation.name in self.families or letters in self.families:
                raise SchemeFormatError(f"{equation.name} is not understood as a block", line=equation.line)
            return False
        if place is not None and len(written) > 1:
            self.bases.update(index - at for index, at in zip(written, place, strict=False))
        if place is None or len(self.bases) > 1 or not self.bases <= {0, 1}:
            raise SchemeFormatError(f"{equation.name} is set to another block", line=equation.line)
        return True


def places_of(names: list[str], width: int) -> bool | None:
    """Return whether the names in a matrix are those of one letter in their places; None for running indices, of
    which the numbering is found from the equations.
    """
    found = [family(name) for name in names]
    if len({letters for letters, _ in found}) != 1 or not found[0][0]:
        return False
    places = [place for _, place in found]
    if any(len(place) != 2 for place in places):
        return None if all(len(place) == 1 for place in places) else False
    base = min(min(place) for place in places)
    return places == [(at // width + base, at % width + base) for at in range(len(names))]
