"""The meaning of equations: which names are blocks of A, B and C, which are sums and products, and their values.

Names without a value are blocks of the operands: letters a and b, or the letter that stands in left
factors and the one in right factors. Names that get a value and are used by no other are outputs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from ...errors import SchemeFormatError
from ..scheme import MAX_RANK
from .account import Account, places_of, stacked
from .arithmetic import LinearForm, is_number, total, unit_in_formulas
from .dense import on_line
from .equation import Equation, split_equation
from .lines import Statement
from .naming import LETTERS, Index, family, joined, letters_of, place_of
from .patterns import pattern
from .syntax import Meaning, NotUnderstoodError, Parser, Value, described, name_of, scaled

_SIDES = pattern(r"^(?P<left>\[[^=]*\])\s*:?=\s*(?P<right>\[.*\])$")
_CALLED = pattern(
    r"(?i)\.?(?:(?P<add>add|plus|sum)|(?P<subtract>sub|subtract|minus|diff)"
    r"|(?P<multiply>dot|matmul|mul|multiply|mult|mm|prod|product|times))(?:_?mat(?:rix|rices)?)?"
    r"|(?P<recursive>\w*(?:strassen|winograd)\w*)"
)
"""Names of calls that add, subtract and multiply."""

MAX_CHAIN = 60
"""So many names may need the next one before it is set."""


@dataclass
class Formulas:
    """Products as pairs of forms over blocks, outputs as forms over products, and what was noticed on the way.

    The keys of forms are blocks ("a" or "b", index), or products ("m", (r,)).
    """

    products: list[tuple[LinearForm, LinearForm]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    outputs: dict[Index, LinearForm] = field(default_factory=dict)
    flat: bool = False
    bases: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abc", 1))
    """The first index of rows and columns of A, B and C: 1, or 0."""

    notes: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    """The lines that are no equations and no prose either."""

    skipped: list[int] = field(default_factory=list)

    def factors(self) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
        """Of A, B and C the terms of every product: the index from 0, of one number or two, and the coefficient."""
        parts = [
            [[(key[1], value) for key, value in form.items()] for form in side]
            for side in zip(*self.products, strict=True)
        ]
        parts.append([[] for _ in self.products])
        for index, form in self.outputs.items():
            for (_, (r,)), value in form.items():
                parts[2][r].append((index, value))
        bases = self.bases.values()
        a, b, c = (
            [[(*(at - base for at in index), value) for index, value in row] for row in part]
            for part, base in zip(parts, bases, strict=True)
        )
        return a, b, c


def read_formulas(statements: Iterable[Statement], controlled: Set[int] = frozenset()) -> Formulas:
    """The content of a file of equations; `controlled` lines are governed by a loop or a condition.

    Raises:
        SchemeFormatError: with the line, where an equation means nothing or a name has no value.
    """
    return _Reader(list(statements), controlled).read()


class _Reader(Meaning):
    """The names of a text: those that are set, and the blocks of the operands."""

    zero = LinearForm()

    def __init__(self, statements: list[Statement], controlled: Set[int]) -> None:
        self.found = Formulas()
        self.multiplies = {
            name
            for _, text in statements
            if len(text) < 200
            for name in re.findall(r"^(?:def|function)\s+(?:\w+\s*=\s*)?(\w+)\s*\(", text)
        }
        self.controlled = controlled
        self.equations = self.sorted_out(statements)
        self.operands = self.operand_letters()
        self.values: dict[str, Value] = {}
        self.pending: dict[str, Equation] = {}
        self.blocks: dict[str, LinearForm] = {}
        self.matrices: dict[str, list[list[Value]]] = {}
        self.depth = 0

    def sorted_out(self, statements: list[Statement]) -> list[Equation]:
        """The equations among the statements; what is left must be prose."""
        listed: list[tuple[int, str, Equation | None]] = []
        for line, text in statements:
            listed.append((line, text, None if _SIDES.match(text) else split_equation(line, text)))
        equations = [equation for _, _, equation in listed if equation]
        self.names = {equation.name for equation in equations}
        lower = self.is_caseless(equations)
        self.names = {name.lower() for name in self.names} if lower else self.names
        for each in equations:
            each.settle(lower, self.names)
        self.letters = self.single_letters(equations)
        if self.letters:
            self.name_outputs(equations)
        used = self.names_used(equations)
        kept: list[Equation] = []
        rest: list[tuple[int, str, Equation | None]] = []
        for line, text, equation in listed:
            if equation is not None and equation.name == "i":
                raise SchemeFormatError("i is the imaginary unit and can't be set", line=line)
            idle = equation is not None and not letters_of(equation.name) and equation.name not in used
            if equation is None or idle or not self.is_formula(equation):
                rest.append((line, text.lower() if lower else text, equation))
            elif line in self.controlled:
                raise SchemeFormatError(f"{equation.name} is set in a loop or under a condition", line=line)
            else:
                kept.append(equation)
        families = {letters_of(name) for own in kept for name in (own.name, *own.names)} - {""}
        self.account = Account(self.names, families)
        self.found.skipped = [line for line, text, equation in rest if not self.account.of(line, text, equation)]
        self.found.code = self.account.code
        return kept

    def is_caseless(self, equations: list[Equation]) -> bool:
        """Return whether no two names differ in case alone; a Roman I is a name, i a number."""
        whole = [name for name in self.names if name.isalpha() and name != name.lower()]
        clash = any(re.search(rf"\b{name.lower()}\b", equation.text) for name in whole for equation in equations)
        return len({name.lower() for name in self.names}) == len(self.names) and not clash and "I" not in self.names

    def single_letters(self, equations: list[Equation]) -> bool:
        """Return whether the blocks are the letters a to h, those of A first."""
        used = {name for equation in equations if letters_of(equation.name) for name in equation.names}
        used -= {equation.name for equation in equations if not equation.is_split}
        return set(LETTERS) <= used and not any(map(letters_of, used))

    def names_used(self, equations: list[Equation]) -> set[str]:
        """The names on the right of the equations, without those that only serve a name that nothing uses."""
        while True:
            used = {name for equation in equations for name in equation.names}
            needed = [equation for equation in equations if letters_of(equation.name) or equation.name in used]
            if len(needed) == len(equations):
                return used
            equations = needed

    def name_outputs(self, equations: list[Equation]) -> None:
        """Four single letters that are set and not used, such as r, s, t and u, are the blocks of C by rows."""
        used = {name for equation in equations for name in equation.names}
        letters = [equation for equation in equations if len(equation.name) == 1 and equation.name not in used]
        names = [equation.name for equation in letters]
        if len(names) == 4 == len(set(names)) and not any(letters_of(equation.name) == "c" for equation in equations):
            self.found.notes.append(f"{', '.join(names)} are read as C by rows")
            for equation, place in zip(letters, ("c11", "c12", "c21", "c22"), strict=True):
                equation.name = place

    def is_formula(self, equation: Equation) -> bool:
        """Return whether a right side is of names that have a value or are blocks, and of numbers."""
        if equation.is_matrix or equation.item:
            return False
        letters = LETTERS if self.letters else ""
        known = (*letters, "i", "I", "eps", "epsilon")
        return all(name in self.names or letters_of(name) or name in known for name in equation.names)

    def operand_letters(self) -> dict[str, str]:
        """The letters of the operands' blocks, as a and b."""
        assigned = {equation.name for equation in self.equations}
        order: dict[str, None] = {}
        for equation in self.equations:
            for name in dict.fromkeys(equation.names):
                if name not in assigned and (letters := letters_of(name)):
                    order.setdefault(letters)
        free = [letters for letters in order if letters not in ("a", "b")]
        families = set(map(letters_of, assigned))
        for equation in self.equations:
            own = letters_of(equation.name)
            if own and letters_of(equation.text) == own and equation.text not in assigned:
                continue  # a11 = A[0][0]
            if own in ("a", "b") and (own in order or len(free) != 2):
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

    def add_matrices(self) -> None:
        """The outputs of `C = [[m1 + m4, m3], [m2, m1]]` as equations; a matrix of outputs that have names is checked:
        they must stand where their names say.
        """
        for line, text, rows, left in self.account.matrices:
            cells = [name_of(cell) for row in rows for cell in row]
            inner = {letters_of(cell) for cell in cells} & {"", "m", "p", "u"}
            if not left and not inner and places_of(cells, len(rows[0])):
                continue
            if not left and any(letters_of(equation.name) == "c" for equation in self.equations):
                raise SchemeFormatError("a matrix of outputs that stand elsewhere than their names say", line=line)
            for i, row in enumerate(rows):
                for j, cell in enumerate(row):
                    name = name_of(left[i][j]) if left else f"c[{i + 1},{j + 1}]"
                    self.equations.append(Equation(line, name, text, cell=(i, j), names=tuple(cell)))

    def read(self) -> Formulas:
        self.add_matrices()
        self.set_indices()
        counts = Counter(equation.name for equation in self.equations)
        self.pending = {
            equation.name: equation for equation in self.equations if counts[equation.name] == 1 and not equation.sign
        }
        for equation in self.equations:
            if equation.name in self.values and counts[equation.name] == 1:
                continue  # it was needed before its turn
            with on_line(equation.line):
                self.set(equation)
        self.take_outputs()
        if self.found.skipped:
            lines = ", ".join(map(str, self.found.skipped[:5])) + (", ..." if len(self.found.skipped) > 5 else "")
            self.found.notes.append(f"lines that are no equations were skipped: {lines}")
        return self.found

    def set(self, equation: Equation) -> None:
        """Give a name its value, or add to it."""
        known = equation.name in self.values
        if known and not equation.sign and equation.name not in equation.names:
            raise SchemeFormatError(f"{equation.name} is set twice")
        before = len(self.found.products)
        value = self.value_of(equation)
        self.found.labels += [equation.name] * (len(self.found.products) - before)
        if equation.sign:
            value = total([self.values.get(equation.name, LinearForm()), scaled(value, equation.sign)])
        self.values[equation.name] = value

    def value_of(self, equation: Equation) -> Value:
        """The number or the form that the right side of an equation, or one cell of it, is."""
        if equation.cell is None:
            value = Parser(equation.text, self).whole()
        else:
            if equation.text not in self.matrices:
                self.matrices[equation.text] = Parser(equation.text, self).whole()
            value = self.matrices[equation.text][equation.cell[0]][equation.cell[1]]
        if not is_number(value) and not isinstance(value, LinearForm):
            raise SchemeFormatError(f"{described(value)} is not understood")
        if is_number(value) and value:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return value or LinearForm()

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        """A sum, a product or a matrix that a call makes."""
        if (matrix := stacked(name, arguments, keywords)) is not None:
            return matrix
        match = _CALLED.fullmatch(name)
        if len(arguments) != 2 or keywords or not (match or name in self.multiplies):
            raise NotUnderstoodError(f"{name.lstrip('.')}(...) is not understood")
        left, right = arguments
        sign = {"add": 1, "subtract": -1}.get((match and match.lastgroup) or "", 0)
        return total([left, scaled(right, sign)]) if sign else self.multiplied(left, right)

    def named(self, name: str) -> Value:
        """The value of a name; one that is set further down is computed now."""
        if name in self.values:
            return self.values[name]
        if name in self.blocks:
            return self.blocks[name]
        if (equation := self.pending.get(name)) is not None:
            self.depth += 1
            if self.depth > MAX_CHAIN:
                raise SchemeFormatError(f"{name} is defined by itself, or by too many names one after the other")
            self.set(equation)
            self.depth -= 1
            return self.values[name]
        if name not in self.names and (unit := unit_in_formulas(name)) is not None:
            return unit
        if self.letters and name in LETTERS:
            at = LETTERS.index(name)
            return LinearForm({("ab"[at // 4], (at % 4 // 2 + 1, at % 2 + 1)): 1})
        letter = self.operands.get(letters_of(name))
        if letter is None:
            raise SchemeFormatError(f"{name} has no value yet")
        self.blocks[name] = LinearForm({(letter, self.index(name)): 1})
        return self.blocks[name]

    def set_indices(self) -> None:
        """Find out whether blocks have one running index or two, and whether they count from 0."""
        assigned = {equation.name for equation in self.equations}
        indices: dict[str, list[Index]] = {"a": [], "b": [], "c": []}
        for word in {name for equation in self.equations for name in equation.names}:
            letters, index = family(word)
            if word not in assigned and letters in self.operands:
                indices[self.operands[letters]].append(index)
        self.found.flat = any(len(index) == 1 for part in indices.values() for index in part)
        for name in assigned:
            letters, index = family(name)
            if letters == "c" and (self.found.flat or len(index) == 2):
                indices["c"].append(index)
        for letter, part in indices.items():
            lowest = min((min(joined(index) if self.found.flat else index) for index in part), default=1)
            self.found.bases[letter] = min(lowest, 1)
        if 0 in self.found.bases.values():
            self.found.notes.append("indices count from 0")

    def index(self, name: str) -> Index:
        """An index of one number or two, as all blocks of the file have it."""
        return joined(family(name)[1]) if self.found.flat else place_of(name)

    def multiplied(self, left: Value, right: Value) -> Value:
        """A new product of a sum of blocks of A and one of B."""
        for scalar, value in ((left, right), (right, left)):
            if is_number(scalar):
                return scaled(value, scalar)
        if not isinstance(left, LinearForm) or not isinstance(right, LinearForm):
            raise NotUnderstoodError(f"{described(left if isinstance(right, LinearForm) else right)} is not understood")
        if any(kind == "m" for kind, _ in left) and any(kind == "b" for kind, _ in right):
            raise SchemeFormatError("a product must have two factors, a sum of blocks of A and one of B")
        if {kind for kind, _ in left} - {"a"} or {kind for kind, _ in right} - {"b"}:
            raise SchemeFormatError("the left factor must be a sum of blocks of A, the right one of B")
        if len(self.found.products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products")
        self.found.products.append((left, right))
        return LinearForm({("m", (len(self.found.products) - 1,)): 1})

    def take_outputs(self) -> None:
        """The outputs: names of the letter c, else of the only letters that no equation uses."""
        used = {name for equation in self.equations for name in equation.names if name != equation.name}
        groups: dict[str, dict[str, int]] = defaultdict(dict)
        for equation in self.equations:
            if letters := letters_of(equation.name):
                groups[letters][equation.name] = equation.line
        fitting = [
            letters
            for letters, members in groups.items()
            if self.found.flat or all(len(family(name)[1]) == 2 for name in members)
        ]
        chosen = sorted({"c", "z"}.intersection(fitting))[:1]
        chosen = chosen or [letters for letters in fitting if used.isdisjoint(groups[letters])]
        if len(chosen) > 1:
            raise SchemeFormatError(f"{' and '.join(chosen)} could all be the outputs; name those c11, c12, ...")
        for name, line in groups[chosen[0]].items() if chosen else ():
            with on_line(line):
                self.found.outputs[self.index(name)] = value = self.values[name]
                if any(kind != "m" for kind, _ in value):
                    raise SchemeFormatError(f"{name} must be a sum of products")
