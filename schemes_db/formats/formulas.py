"""The meaning of equations: which names are blocks of A, B and C, which are sums and products, and their values.

Names without a value are blocks of the operands: letters a and b, or the letter that stands in left
factors and the one in right factors. Names that get a value and are used by no other are outputs. A line
that names a block or a product must be understood, unless it is prose without an operator.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..scheme import MAX_RANK
from .arithmetic import inverse, plus, times, unit_in_formulas
from .expression import plain_product, plain_sum
from .lines import Statement
from .patterns import pattern
from .syntax import (
    Call,
    Inverse,
    Item,
    Listed,
    Node,
    Parser,
    Product,
    Rows,
    Table,
    Total,
    Transposed,
    described,
    is_number,
    sole_name,
)

Index = tuple[int, ...]
"""One index or two, as written."""

Form = dict[tuple[str, Index], Coefficient]
"""A linear form over blocks ("a" or "b", index) or over products ("m", (r,)); a number has the key SCALAR."""

SCALAR = ("", ())

_NAME = r"[A-Za-z]\w*(?:\[\d+,\s*\d+\]|,\d+)?"
_ASSIGNED = pattern(
    rf"^(?P<words>(?:[A-Za-z]+[ ,:]\s*)*?)(?P<name>{_NAME}|[A-Za-z]\[[^\]=]*:[^\]=]*\])\s*"
    r"(?P<sign>:=|\+=|-=|=(?!=)|<-|:(?!.*=))\s*(?P<right>.*)$",
    re.DOTALL,
)
_REVERSED = pattern(rf"^(.*[)\d\]])\s*=\s*({_NAME})$")
_INDEXED = pattern(r"([A-Za-z]+)(?:\[(\d+),\s*(\d+)\]|_(\d+)_(\d+)|(\d+),(\d+)|(\d+))")
_WORD = pattern(_NAME)
_FOREIGN = frozenset(("assign", "wire", "reg", "my", "logic"))
"""Words before a name in languages that are not read."""

_MATRIX = pattern(r"^(?:return\b\s*|\(?[A-Za-z]\w*'?\)?\s*:?=\s*)(?P<value>[\[(A-Za-z].*)$")
_SIDES = pattern(r"^(?P<left>\[[^=]*\])\s*:?=\s*(?P<right>\[.*\])$")
_SHOWN = pattern(r"^\s*(?:print|assert|disp|display|s?printf|fprintf|console|std::cout|cout|println|puts|def|function)\b")
_OPERATOR = pattern(r"[-=+*/@^<>\[\]{}|~!&%$?\\]|\w\(")
_PROGRAM = pattern(
    r"\s*(?:(?:for|while|if|elif|else|def|function|import|from|class|try|with|return|raise|yield|end)\b.*[:({;=\])]|[\w.]+\(.*\)\s*;?$"
    r"|(?:\w+\s+)?[A-Za-z_][\w.]*(?:\[.*\])?\s*[-+*/]?=\s*.*\w[\[(])"
)
_RANGE = pattern(r"\b([A-Za-z]+)_?\d+\s*(?:-|\.\.\.?|\u2026)\s*\1?_?\d+\b")
_CHANGES = pattern(
    r"(?i)\b(?:negate|swap|exchange|scale|halve|double|divide|replace|transpose|invert|subtract|multipl(?:y|ied))d?\b"
)
_CALLED = (
    (1, pattern(r"(?i)\.?(?:add|plus|sum)(?:_?mat(?:rix|rices)?)?")),
    (-1, pattern(r"(?i)\.?(?:sub|subtract|minus|diff)(?:_?mat(?:rix|rices)?)?")),
    (
        0,
        pattern(
            r"(?i)\.?(?:dot|matmul|mul|multiply|mult|mm|prod|product|times)(?:_?mat(?:rix|rices)?)?|\w*strassen\w*|\w*winograd\w*"
        ),
    ),
)
"""Names of calls that add, subtract and multiply."""

_STACKED = {"hstack": True, "block": False, "vstack": False, "bmat": False}
MAX_MATRIX = 200_000
"""Characters up to which a line may be a matrix of outputs."""

MAX_CHAIN = 60
"""So many names may need the next one before it is set."""

_LETTERS = "abcdefgh"
"""Single letters that textbooks give to the blocks of two 2 x 2 matrices."""


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


@dataclass
class Formulas:
    """Products as pairs of forms over blocks, outputs as forms over products, and what was noticed on the way."""

    products: list[tuple[Form, Form]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    outputs: dict[Index, Form] = field(default_factory=dict)
    flat: bool = False
    bases: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abc", 1))
    """The first index of rows and columns of A, B and C: 1, or 0."""

    notes: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    """The lines that are no equations and no prose either."""

    skipped: list[int] = field(default_factory=list)


@lru_cache(maxsize=1 << 16)
def family(name: str) -> tuple[str, Index] | None:
    """The letters of an indexed name, in lower case, and its index as written: digits side by side are one number."""
    match = _INDEXED.fullmatch(name)
    if match is None:
        return None
    return match.group(1).lower(), tuple(int(group) for group in match.groups()[1:] if group is not None)


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
    if family(name) and not all(_WORD.search(part) for part in parts[1:]):
        # m1 = x = y says twice what m1 is, m1 = x = 3 nothing
        raise SchemeFormatError("expected one equation a line, such as m1 = (a11 + a22)(b11 + b22)", line=line)
    return Equation(line, name, parts[0].strip(), {"+=": 1, "-=": -1}.get(operator, 0))


def placed(index: str) -> tuple[int, int] | None:
    """The block, from 0, that slices such as `:h, h:2*h` cut out; None where that is not clear."""
    found = []
    for part in index.split(","):
        start, colon, stop = (side.replace(" ", "") for side in part.partition(":"))
        match = re.fullmatch(r"(?:(\d)\*?)?[A-Za-z]\w*(?://2|/2)?", start)
        if not colon or (start not in ("", "0") and match is None):
            return None
        at = 0 if match is None else int(match[1] or 1)
        end = re.fullmatch(r"(?:(\d)\*?)?[A-Za-z]\w*(?://2|/2)?|", stop)
        if end is None or (end[0] and int(end[1] or 1) not in (at + 1, 1 if at else 1)):
            return None
        found.append(at)
    return (found[0], found[1]) if len(found) == 2 else None


def names_in(node: Node) -> Iterator[str]:
    """Every name in a node."""
    if isinstance(node, Table):
        for value in node.values():
            yield from names_in(value)
    elif isinstance(node, dict):
        yield from (name for name in node if name)
    elif isinstance(node, Product):
        for factor in node.factors:
            yield from names_in(factor)
    elif isinstance(node, Total):
        for part in node.parts:
            yield from names_in(part)
    elif isinstance(node, Call):
        for part in (*node.arguments, *node.keywords.values()):
            yield from names_in(part)
    elif isinstance(node, Inverse | Transposed):
        yield from names_in(node.node)
    elif isinstance(node, Item):
        yield node.name
    elif isinstance(node, list):
        for part in node:
            yield from names_in(part)
    elif isinstance(node, Rows):
        for row in node.rows:
            yield from names_in(list(row))


def read_formulas(statements: Iterable[Statement], controlled: set[int] = frozenset()) -> Formulas:  # type: ignore[assignment]
    """The content of a file of equations; `controlled` lines are governed by a loop or a condition.

    Raises:
        SchemeFormatError: with the line, where an equation means nothing or a name has no value.
    """
    return _Reader(list(statements), controlled).read()


class _Reader:
    def __init__(self, statements: list[Statement], controlled: set[int]) -> None:
        self.found = Formulas()
        self.matrices: list[tuple[int, str, str]] = []
        self.names: set[str] = set()
        self.multiplies = {
            name
            for _, text in statements
            if len(text) < 200
            for name in re.findall(r"^(?:def|function)\s+(?:\w+\s*=\s*)?(\w+)\s*\(", text)
        }
        self.controlled = controlled
        self.equations = self.sorted_out(statements)
        self.operands = self.operand_letters()
        self.values: dict[str, Form] = {}
        self.pending: dict[str, Equation] = {}
        self.blocks: dict[str, tuple[str, Index]] = {}
        """Blocks by their names, of the names that have no value of their own."""

        self.depth = 0

    def sorted_out(self, statements: list[Statement]) -> list[Equation]:
        """The equations among the statements; what is left must be prose."""
        listed: list[tuple[int, str, Equation | None]] = []
        for line, text in statements:
            if sides := _SIDES.match(text):
                listed += self.entrywise(line, sides["left"], sides["right"])
            else:
                listed.append((line, text, split_equation(line, text)))
        equations = [equation for _, _, equation in listed if equation]
        names = {equation.name for equation in equations}
        lower = {name.lower() for name in names}
        whole = [name for name in names if name.isalpha() and name != name.lower()]
        clash = any(re.search(rf"\b{name.lower()}\b", equation.text) for name in whole for equation in equations)
        if len(lower) == len(names) and not clash and "I" not in names:  # a Roman I is a name, i the imaginary unit
            for equation in equations:
                equation.name, equation.text = equation.name.lower(), equation.text.lower()
            names = lower
        self.names = names
        for equation in equations:
            self.parse(equation)
        self.letters = self.single_letters(equations)
        if self.letters:
            self.name_outputs(equations)
        used = self.names_used(equations)
        kept: list[Equation] = []
        rest: list[tuple[int, str, Equation | None]] = []
        for line, text, equation in listed:
            if equation is not None and equation.name == "i":
                raise SchemeFormatError("i is the imaginary unit and can't be set", line=line)
            idle = equation is not None and family(equation.name) is None and equation.name not in used
            if equation is None or idle or not self.is_formula(equation):
                rest.append((line, text, equation))
            else:
                kept.append(equation)
                if line in self.controlled:
                    raise SchemeFormatError(f"{equation.name} is set in a loop or under a condition", line=line)
        self.families = {found[0] for equation in kept for name in (equation.name, *equation.names) if (found := family(name))}
        for line, text, equation in rest:
            if not self.accounts_for(line, text, equation):
                self.found.skipped.append(line)
        return kept

    def entrywise(self, line: int, left: str, right: str) -> Iterator[tuple[int, str, Equation | None]]:
        """The equation of two matrices as equations of their entries."""
        sides = [rows_of(Parser(side, unit=unit_in_formulas).whole()) for side in (left, right)]
        if [[len(row) for row in side] for side in sides] != [[len(row) for row in sides[0]]] * 2:
            raise SchemeFormatError("two matrices of unlike sizes are set equal", line=line)
        for names, nodes in zip(*sides, strict=True):
            for name, node in zip(names, nodes, strict=True):
                if sole_name(name):
                    equation = Equation(line, sole_name(name), "", node=lowered(node))
                    yield line, "", equation

    def parse(self, equation: Equation) -> None:
        """Read the right side; a fault in it is kept for the case that the equation counts."""
        if equation.node is None:
            text = equation.text
            try:
                product = plain_product(text)
                if product is not None:
                    equation.node = Product(product.scalar, product.forms)
                elif (plain := plain_sum(text)) is not None:
                    equation.node = plain
                else:
                    equation.node = Parser(text, unit=self.unit).whole()
            except SchemeFormatError as error:
                equation.fault = SchemeFormatError(error.message, line=equation.line)
                equation.names = frozenset(_WORD.findall(text[:MAX_MATRIX]))
                return
        equation.names = frozenset(names_in(equation.node))

    def unit(self, name: str) -> Coefficient | None:
        return None if name in self.names else unit_in_formulas(name)

    def single_letters(self, equations: list[Equation]) -> bool:
        """Return whether the blocks are the letters a to h, those of A first."""
        used = {name for equation in equations if family(equation.name) for name in equation.names}
        used -= {equation.name for equation in equations if not is_split(equation)}
        return set(_LETTERS) <= used and not any(family(word) for word in used)

    def names_used(self, equations: list[Equation]) -> set[str]:
        """The names on the right of the equations, without those that only serve a name that nothing uses."""
        while True:
            used = {name for equation in equations for name in equation.names}
            needed = [equation for equation in equations if family(equation.name) or equation.name in used]
            if len(needed) == len(equations):
                return used
            equations = needed

    def name_outputs(self, equations: list[Equation]) -> None:
        """Four single letters that are set and not used, such as r, s, t and u, are the blocks of C by rows."""
        used = {name for equation in equations for name in equation.names}
        letters = [equation for equation in equations if len(equation.name) == 1 and equation.name not in used]
        names = [equation.name for equation in letters]
        if len(names) == 4 == len(set(names)) and not any(
            (found := family(equation.name)) and found[0] == "c" for equation in equations
        ):
            self.found.notes.append(f"{', '.join(names)} are read as C by rows")
            for equation, place in zip(letters, ("c11", "c12", "c21", "c22"), strict=True):
                equation.name = place

    def is_formula(self, equation: Equation) -> bool:
        """Return whether a right side is of names that have a value or are blocks, and of numbers."""
        if equation.fault is not None:
            # What would set a block is an equation with a fault, anything else may be prose.
            if family(equation.name) and any(family(word) for word in equation.names):
                raise equation.fault
            return False
        node = equation.node
        if isinstance(node, Item):
            return False
        if any(name not in self.names and family(name) is None and not (self.letters and name in _LETTERS) for name in equation.names):
            return False
        return not isinstance(node, Listed | Rows | Table)

    def accounts_for(self, line: int, text: str, equation: Equation | None) -> bool:
        """Return whether a statement that is no equation says something that is understood; prose says nothing.

        Raises:
            SchemeFormatError: it does something to a block or a product, and what is not known.
        """
        if _SHOWN.match(text):
            return False
        if (match := _MATRIX.match(text)) and len(text) < MAX_MATRIX and self.is_matrix(line, text, match["value"]):
            return True
        if equation is not None and is_split(equation):
            return True
        if equation is not None and isinstance(equation.node, Item):
            return self.cuts_block(equation)
        mentioned = [word for word in _WORD.findall(text) if (found := family(word)) and found[0] in self.families]
        if equation is not None and family(equation.name) is None and equation.name not in self.families:
            if line in self.controlled or not mentioned:
                mentioned = mentioned if line in self.controlled else []
            else:
                mentioned = []  # a name that nothing uses
        whole = re.match(r"^(?:return\b|([A-Za-z])\s*(?:[-+*/@.]?=(?!=)|:=|<-))(.*)", text)
        if whole is not None and len(text) < MAX_MATRIX:
            letter, right = (whole[1] or "").lower(), whole[2].lower()
            bare = {word for word in re.findall(r"(?<![\w.])[a-z](?![\w(])", right) if word in self.families}
            changes = re.search(r"[-+*/'^.@]|\[", whole[2]) is not None
            augmented = letter in self.families and re.match(r"[A-Za-z]\s*[-+*/@]=", text) is not None
            if augmented or (bare and (letter in bare or (len(bare) == 1 and letter in self.families))) or (
                not letter and changes and bare & self.output_letters()
            ):
                raise SchemeFormatError(f"{text[:40]!r} is not understood", line=line)
        if not mentioned:
            if _PROGRAM.match(text):
                self.found.code.append(line)
            return False
        shown = _RANGE.sub("", text) if len(re.findall(r"[A-Za-z]{3,}", text)) > 1 else text
        if _OPERATOR.search(shown) or _CHANGES.search(text):
            if equation is not None and equation.fault is None and family(equation.name):
                unknown = next((name for name in sorted(equation.names) if name not in self.names and not family(name)), "")
                if unknown:
                    raise SchemeFormatError(f"{unknown} has no value yet", line=line)
            if equation is None:
                raise SchemeFormatError(
                    f"{text[:40]!r} is no equation; write one a line, such as m1 = (a11 + a22)(b11 + b22)", line=line
                )
            raise SchemeFormatError(f"{text[:40]!r} is not understood", line=line)
        return False

    def output_letters(self) -> set[str]:
        return {"c", "z"} & self.families

    def is_matrix(self, line: int, text: str, value: str) -> bool:
        """Return whether a statement is a matrix of outputs, or of the blocks of an operand in their order."""
        try:
            node = Parser(value, unit=self.unit).whole()
            rows = rows_of(stacked(node))
        except SchemeFormatError:
            return False
        if not rows or len({len(row) for row in rows}) != 1 or not all(any(True for _ in names_in(list(row))) for row in rows):
            return False
        cells = [cell for row in rows for cell in row]
        lower = {name.lower() for name in names_in(cells)}
        transposed = re.match(r"\(?[A-Za-z]'", text) is not None or isinstance(node, Transposed)
        if lower & self.names:
            self.matrices.append((line, value, "'" if transposed and not isinstance(node, Transposed) else ""))
            return True
        if all(len(name) == 1 for name in lower):
            return "".join(sole_name(cell).lower() for cell in cells) in (_LETTERS[:4], _LETTERS[4:])
        found = [family(sole_name(cell)) for cell in cells]
        if None in found or len({one[0] for one in found if one}) != 1:
            return False
        places = [_as_written(sole_name(cell), one[1]) for cell, one in zip(cells, found, strict=True) if one]
        if all(len(place) == 1 for place in places):
            return True  # the numbering of running indices is found from the equations
        base = min(min(place) for place in places)
        wanted = [(i + base, j + base) for i in range(len(rows)) for j in range(len(rows[0]))]
        return places == (sorted(wanted, key=lambda place: (place[1], place[0])) if transposed else wanted)

    def cuts_block(self, equation: Equation) -> bool:
        """Check that a name that is set to slices of a matrix is that of the block that they cut out."""
        place, found = placed(equation.node.index), family(equation.name)
        if found is None or found[0] != equation.node.name.lower():
            if equation.name in self.families or (found and found[0] in self.families):
                raise SchemeFormatError(f"{equation.name} is not understood as a block", line=equation.line)
            return False
        written = _as_written(equation.name, found[1])
        flat = place is not None and len(written) == 1
        if place is None or (not flat and written not in (place, (place[0] + 1, place[1] + 1))):
            raise SchemeFormatError(f"{equation.name} is set to another block", line=equation.line)
        return True

    def operand_letters(self) -> dict[str, str]:
        """The letters of the operands' blocks, as a and b."""
        assigned = {equation.name for equation in self.equations}
        order: dict[str, None] = {}
        for equation in self.equations:
            for name in dict.fromkeys(self.in_order(equation)):
                if name not in assigned and (found := family(name)):
                    order.setdefault(found[0])
        free = [letters for letters in order if letters not in ("a", "b")]
        families = {found[0] for name in assigned if (found := family(name))}
        for equation in self.equations:
            found = family(equation.name)
            alias = family(sole_name(equation.node))
            if alias and alias[0] == (found or ("",))[0] and sole_name(equation.node) not in assigned:
                continue  # a11 = A[0][0]
            if found and found[0] in ("a", "b") and (found[0] in order or len(free) != 2):
                raise SchemeFormatError(
                    f"{equation.name} is a block of an operand and can't be set", line=equation.line
                )
        free = [letters for letters in order if letters not in families]
        known = [letters for letters in order if letters in ("a", "b")]
        if known or len(free) != 2:
            return {letters: letters for letters in ("a", "b")}
        left, right = sorted(free) if set(free) == {"x", "y"} else free
        self.found.notes.append(f"{left} is read as A, {right} as B")
        return {left: "a", right: "b"}

    def in_order(self, equation: Equation) -> Iterator[str]:
        return names_in(equation.node)

    def add_matrices(self) -> None:
        """The outputs of `C = [[m1 + m4, m3], [m2, m1]]` as equations; a matrix of outputs that have their own is
        checked: its entries must stand where their names say.
        """
        base = self.found.bases["c"]
        for line, value, transposed in self.matrices:
            rows = rows_of(stacked(lowered(Parser(value, unit=self.unit).whole(), self.names)))
            rows = [list(row) for row in zip(*rows, strict=True)] if transposed else [list(row) for row in rows]
            names = [[sole_name(cell) for cell in row] for row in rows]
            found = [family(name) for row in names for name in row]
            if all(found) and len({one[0] for one in found if one}) == 1 and found[0] and found[0][0] != "m" and all(
                len(_as_written(name, one[1])) == 2 for name, one in zip(sum(names, []), found, strict=True) if one
            ):
                wanted = [(i + base, j + base) for i in range(len(rows)) for j in range(len(rows[0]))]
                if [_as_written(name, one[1]) for name, one in zip(sum(names, []), found, strict=True) if one] != wanted:
                    raise SchemeFormatError("a matrix of outputs that stand elsewhere than their names say", line=line)
                continue
            if any((one := family(equation.name)) and one[0] == "c" for equation in self.equations):
                raise SchemeFormatError("the outputs are given twice, by name and as a matrix", line=line)
            for i, row in enumerate(rows, start=base):
                for j, node in enumerate(row, start=base):
                    self.equations.append(
                        Equation(line, f"c[{i},{j}]", "", node=node, names=frozenset(names_in(node)))
                    )

    def read(self) -> Formulas:
        self.set_indices()
        self.add_matrices()
        counts: dict[str, int] = defaultdict(int)
        for equation in self.equations:
            counts[equation.name] += 1
        self.pending = {
            equation.name: equation for equation in self.equations if counts[equation.name] == 1 and not equation.sign
        }
        for equation in self.equations:
            if equation.name in self.values and counts[equation.name] == 1:
                continue  # it was needed before its turn
            try:
                self.set(equation)
            except SchemeFormatError as error:
                raise error if error.line else SchemeFormatError(error.message, error.file, equation.line) from None
        self.take_outputs()
        if self.found.skipped:
            lines = ", ".join(map(str, self.found.skipped[:5])) + (", ..." if len(self.found.skipped) > 5 else "")
            self.found.notes.append(f"lines that are no equations were skipped: {lines}")
        return self.found

    def set(self, equation: Equation) -> None:
        """Give a name its value, or add to it."""
        known = equation.name in self.values
        own = known and equation.name in equation.names
        if known and not equation.sign and not own:
            raise SchemeFormatError(f"{equation.name} is set twice")
        self.blocks.pop(equation.name, None)
        before = len(self.found.products)
        value = self.form_of(equation.node)
        self.found.labels += [equation.name] * (len(self.found.products) - before)
        if equation.sign:
            value = added(self.values.get(equation.name, {}), value, equation.sign)
        self.values[equation.name] = value

    def form_of(self, node: Node) -> Form:
        form = self.value(node)
        if SCALAR in form:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return form

    def value(self, node: Node) -> Form:
        """The value of a node that is a sum, or a number."""
        if is_number(node):
            return {SCALAR: node} if node else {}
        if isinstance(node, dict) and not isinstance(node, Table):
            return self.resolved(node)
        if isinstance(node, Total):
            total: Form = {}
            for part in node.parts:
                total = added(total, self.value(part), 1)
            return total
        if isinstance(node, Product):
            result: Form = {SCALAR: node.scalar}
            for factor in node.factors:
                if isinstance(factor, Inverse):
                    divisor = self.value(factor.node)
                    if set(divisor) != {SCALAR}:
                        raise SchemeFormatError("division by something that is no number")
                    result = multiplied_by(result, inverse(divisor[SCALAR]))
                else:
                    result = self.multiplied(result, self.value(factor))
            return result
        if isinstance(node, Call) and len(node.arguments) == 2 and not node.keywords:
            sign = next((sign for sign, name in _CALLED if name.fullmatch(node.name)), None)
            if sign is None and node.name in self.multiplies:
                sign = 0
            if sign is not None:
                left, right = map(self.value, node.arguments)
                return added(left, right, sign) if sign else self.multiplied(left, right)
        raise SchemeFormatError(f"{described(node)} is not understood")

    def multiplied(self, left: Form, right: Form) -> Form:
        for scalar, form in ((left, right), (right, left)):
            if set(scalar) == {SCALAR}:
                return multiplied_by(form, scalar[SCALAR])
        if SCALAR in left or SCALAR in right:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return self.product(left, right)  # of zero, too: (0)(b11) is a product that says nothing

    def resolved(self, form: dict[str, Coefficient]) -> Form:
        """A linear form over names with every name replaced by its value."""
        total: Form = {}
        for name, coefficient in form.items():
            block = self.blocks.get(name)
            if block is not None and block not in total:
                total[block] = coefficient
                continue
            for key, value in self.of_name(name).items() if name else ((SCALAR, 1),):
                total[key] = plus(total.get(key, 0), times(coefficient, value))
        return {key: value for key, value in total.items() if value}

    def of_name(self, name: str) -> Form:
        """The value of a name; one that is set further down is computed now."""
        if name in self.values:
            return self.values[name]
        if (equation := self.pending.get(name)) is not None:
            self.depth += 1
            if self.depth > MAX_CHAIN:
                raise SchemeFormatError(f"{name} is defined by itself, or by too many names one after the other")
            self.set(equation)
            self.depth -= 1
            return self.values[name]
        if self.letters and name in _LETTERS:
            at = _LETTERS.index(name)
            return {("ab"[at // 4], (at % 4 // 2 + 1, at % 2 + 1)): 1}
        block = self.block(name)
        if block is None:
            raise SchemeFormatError(f"{name} has no value yet")
        self.blocks[name] = block
        return {block: 1}

    def set_indices(self) -> None:
        """Find out whether blocks have one running index or two, and whether they count from 0."""
        assigned = {equation.name for equation in self.equations}
        indices: dict[str, list[Index]] = {"a": [], "b": [], "c": []}
        for word in {name for equation in self.equations for name in equation.names}:
            found = family(word)
            if found and word not in assigned and found[0] in self.operands:
                indices[self.operands[found[0]]].append(_as_written(word, found[1]))
        self.found.flat = any(len(index) == 1 for part in indices.values() for index in part)
        for name in assigned:
            if (found := family(name)) and found[0] == "c":
                index = _as_written(name, found[1])
                if self.found.flat or len(index) == 2:
                    indices["c"].append(index)
        for letter, part in indices.items():
            lowest = min((min(_joined(index) if self.found.flat else index) for index in part), default=1)
            self.found.bases[letter] = min(lowest, 1)
        if 0 in self.found.bases.values():
            self.found.notes.append("indices count from 0")

    def index(self, name: str, written: Index) -> Index:
        """An index of one number or two, as all blocks of the file have it."""
        index = _as_written(name, written)
        if self.found.flat:
            return _joined(index)
        if len(index) != 2:
            raise SchemeFormatError(f"block {name} is ambiguous; write {name[0]}[i,j]")
        return index

    def block(self, name: str) -> tuple[str, Index] | None:
        found = family(name)
        if found is None or found[0] not in self.operands:
            return None
        return self.operands[found[0]], self.index(name, found[1])

    def product(self, left: Form, right: Form) -> Form:
        """A new product of a sum of blocks of A and one of B."""
        if any(kind == "m" for kind, _ in left) and any(kind == "b" for kind, _ in right):
            raise SchemeFormatError("a product must have two factors, a sum of blocks of A and one of B")
        if {kind for kind, _ in left} - {"a"} or {kind for kind, _ in right} - {"b"}:
            raise SchemeFormatError("the left factor must be a sum of blocks of A, the right one of B")
        if len(self.found.products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products")
        self.found.products.append((left, right))
        return {("m", (len(self.found.products) - 1,)): 1}

    def take_outputs(self) -> None:
        """The outputs: names of the letter c, else of the only letters that no equation uses."""
        used = {name for equation in self.equations for name in equation.names if name != equation.name}
        groups: dict[str, list[tuple[str, Index, int]]] = defaultdict(list)
        for equation in self.equations:
            if found := family(equation.name):
                groups[found[0]].append((equation.name, found[1], equation.line))
        named = ("c", "z")
        letters: list[str] = [letters for letters in named if letters in groups and self.are_outputs(groups[letters])]
        if not letters:
            letters = [
                letters
                for letters, members in groups.items()
                if self.are_outputs(members) and not any(name in used for name, _, _ in members)
            ]
        if len(letters) > 1 and letters[0] not in named:
            raise SchemeFormatError(f"{' and '.join(letters)} could all be the outputs; name those c11, c12, ...")
        for name, written, line in groups[letters[0]] if letters else ():
            try:
                index = self.index(name, written)
            except SchemeFormatError as error:
                raise SchemeFormatError(error.message, line=line) from None
            value = self.values[name]
            if any(kind != "m" for kind, _ in value):
                raise SchemeFormatError(f"{name} must be a sum of products", line=line)
            self.found.outputs[index] = value

    def are_outputs(self, members: list[tuple[str, Index, int]]) -> bool:
        """Return whether names have the indices of blocks."""
        return self.found.flat or all(len(_as_written(name, index)) == 2 for name, index, _ in members)


def is_split(equation: Equation) -> bool:
    """Return whether a call cuts a matrix into the names of its four blocks by rows, as in `a, b, c, d = split(x)`."""
    node = equation.node
    if not (isinstance(node, Call) and len(node.arguments) == 1 and sole_name(node.arguments[0])):
        return False
    return equation.name in ("d", "h") or (family(equation.name) or ("", ()))[1] == (22,)


def stacked(node: Node) -> Node:
    """The rows of a matrix that calls such as `np.vstack((np.hstack((c11, c12)), ...))` put together."""
    while isinstance(node, Transposed):
        node = Listed([list(row) for row in zip(*rows_of(stacked(node.node)), strict=False)])
    if isinstance(node, Call) and node.name in _STACKED and len(node.arguments) == 1 and not node.keywords:
        inner = node.arguments[0]
        if _STACKED[node.name] or not isinstance(inner, list):
            return inner
        return Listed([stacked(row) for row in inner])
    if isinstance(node, Call) and node.name in ("array", "Matrix", "matrix", "list") and len(node.arguments) == 1:
        return node.arguments[0]
    return node


def rows_of(node: Node) -> list[list[Node]]:
    """The rows of a matrix; none where it is no matrix."""
    if isinstance(node, Rows):
        return [list(row) for row in node.rows]
    if isinstance(node, list) and node and all(isinstance(row, Rows) and len(row.rows) == 1 for row in node):
        return [list(row.rows[0]) for row in node]
    if isinstance(node, list) and node and all(isinstance(row, list) for row in node):
        return [list(row) for row in node]
    return []


def lowered(node: Node, names: set[str] | None = None) -> Node:
    """A node with its names in lower case, unless one of `names` is written as it stands."""
    if names is not None and names & set(names_in(node)):
        return node
    if isinstance(node, Table):
        return node
    if isinstance(node, dict):
        return {name.lower(): value for name, value in node.items()}
    if isinstance(node, Product):
        return Product(node.scalar, tuple(lowered(factor) for factor in node.factors))
    if isinstance(node, Total):
        return Total(tuple(lowered(part) for part in node.parts))
    if isinstance(node, Call):
        return Call(node.name, tuple(lowered(part) for part in node.arguments), node.keywords)
    if isinstance(node, Transposed):
        return Transposed(lowered(node.node))
    if isinstance(node, list):
        return Listed([lowered(part) for part in node])
    if isinstance(node, Rows):
        return Rows(tuple(tuple(lowered(part) for part in row) for row in node.rows))
    return node


def added(left: Form, right: Form, sign: int) -> Form:
    total = dict(left)
    for key, value in right.items():
        total[key] = plus(total.get(key, 0), times(value, sign))
    return {key: value for key, value in total.items() if value}


def multiplied_by(form: Form, factor: Coefficient) -> Form:
    return {key: value for key, old in form.items() if (value := times(old, factor))}


def _as_written(name: str, index: Index) -> Index:
    """Two digits side by side are two indices; other numbers that stand alone are one."""
    if len(index) == 1 and re.fullmatch(r"[A-Za-z]+\d\d", name):
        return int(name[-2]), int(name[-1])
    if len(index) == 1 and re.fullmatch(r"[A-Za-z]+\d{3,}", name):
        return (*index, 0, 0)  # a112: neither one nor two
    return index


def _joined(index: Index) -> Index:
    """The running index that two digits were."""
    if len(index) == 3:
        return index[:1]
    return (10 * index[0] + index[1],) if len(index) == 2 else index
