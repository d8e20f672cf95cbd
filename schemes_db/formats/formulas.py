"""The meaning of equations: which names are blocks of A, B and C, which are sums and products, and their values.

Names without a value are blocks of the operands: letters a and b, or the letter that stands in left
factors and the one in right factors. Names that get a value and are used by no other are outputs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..scheme import MAX_RANK
from .account import MAX_MATRIX, Account, places_of
from .arithmetic import inverse, plus, times, unit_in_formulas
from .dense import on_line
from .equation import Equation, is_split, split_equation
from .expression import plain_product, plain_sum
from .lines import Statement
from .naming import LETTERS, WORD, Index, family, joined, letters_of
from .nodes import (
    Call,
    Inverse,
    Item,
    Listed,
    Node,
    ProductNode,
    Rows,
    Table,
    Total,
    described,
    is_number,
    names_in,
    rows_of,
    sole_name,
)
from .patterns import pattern
from .syntax import Parser

Form = dict[tuple[str, Index], Coefficient]
"""A linear form over blocks ("a" or "b", index) or over products ("m", (r,)); a number has the key SCALAR."""

SCALAR = ("", ())

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

    def factors(self) -> list[list[list[tuple[Any, ...]]]]:
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
        return [
            [[(*(at - base for at in index), value) for index, value in row] for row in part]
            for part, base in zip(parts, bases, strict=True)
        ]


def read_formulas(statements: Iterable[Statement], controlled: Set[int] = frozenset()) -> Formulas:
    """The content of a file of equations; `controlled` lines are governed by a loop or a condition.

    Raises:
        SchemeFormatError: with the line, where an equation means nothing or a name has no value.
    """
    return _Reader(list(statements), controlled).read()


class _Reader:
    def __init__(self, statements: list[Statement], controlled: Set[int]) -> None:
        self.found = Formulas()
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
        sides = [(line, match["left"], match["right"]) for line, text in statements if (match := _SIDES.match(text))]
        listed: list[tuple[int, str, Equation | None]] = [
            (line, text, split_equation(line, text)) for line, text in statements if not _SIDES.match(text)
        ]
        equations = [equation for _, _, equation in listed if equation]
        names = {equation.name for equation in equations} | {
            name for _, left, _ in sides for name in WORD.findall(left)
        }
        lower = {name.lower() for name in names}
        whole = [name for name in names if name.isalpha() and name != name.lower()]
        clash = any(re.search(rf"\b{name.lower()}\b", equation.text) for name in whole for equation in equations)
        self.lower = len(lower) == len(names) and not clash and "I" not in names  # a Roman I is a name, i a number
        if self.lower:
            for each in equations:
                each.name, each.text = each.name.lower(), each.text.lower()
                each.others = tuple(other.lower() for other in each.others)
            sides = [(line, left.lower(), right.lower()) for line, left, right in sides]
            names = lower
        for side in sides:
            listed += self.entrywise(*side)
        equations = [equation for _, _, equation in listed if equation]
        self.names = names
        for each in equations:
            self.parse(each)
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
                rest.append((line, text, equation))
            else:
                kept.append(equation)
                if line in self.controlled:
                    raise SchemeFormatError(f"{equation.name} is set in a loop or under a condition", line=line)
        families = {letters_of(name) for own in kept for name in (own.name, *own.names)} - {""}
        self.account = Account(self.names, families)
        for line, text, equation in rest:
            if not self.account.of(line, text.lower() if self.lower else text, equation):
                self.found.skipped.append(line)
        self.found.code = self.account.code
        return kept

    def entrywise(self, line: int, left: str, right: str) -> Iterator[tuple[int, str, Equation | None]]:
        """The equation of two matrices as equations of their entries."""
        sides = [rows_of(Parser(side, unit=unit_in_formulas).whole()) for side in (left, right)]
        if [[len(row) for row in side] for side in sides] != [[len(row) for row in sides[0]]] * 2:
            raise SchemeFormatError("two matrices of unlike sizes are set equal", line=line)
        for names, nodes in zip(*sides, strict=True):
            for name, node in zip(names, nodes, strict=True):
                if sole_name(name):
                    yield line, "", Equation(line, sole_name(name), "", node=node)

    def parse(self, equation: Equation) -> None:
        """Read the right side; a fault in it is kept for the case that the equation counts."""
        if equation.node is None:
            text = equation.text
            if equation.others and self.names.isdisjoint(WORD.findall(text)):  # c11 = a11 b11 + a12 b21 = m1 + m2
                text = next((one for one in equation.others if self.names.issuperset(WORD.findall(one))), text)
            try:
                plain = plain_product(text) or plain_sum(text)
                equation.node = Parser(text, unit=self.unit).whole() if plain is None else plain
            except SchemeFormatError as error:
                equation.fault = SchemeFormatError(error.message, line=equation.line)
                equation.names = frozenset(WORD.findall(text[:MAX_MATRIX]))
                return
        equation.names = frozenset() if isinstance(equation.node, Item) else frozenset(names_in(equation.node))

    def unit(self, name: str) -> Coefficient | None:
        return None if name in self.names else unit_in_formulas(name)

    def single_letters(self, equations: list[Equation]) -> bool:
        """Return whether the blocks are the letters a to h, those of A first."""
        used = {name for equation in equations if letters_of(equation.name) for name in equation.names}
        used -= {equation.name for equation in equations if not is_split(equation)}
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
        if equation.fault is not None:
            # What would set a block is an equation with a fault, anything else may be prose.
            if letters_of(equation.name) and any(map(letters_of, equation.names)):
                raise equation.fault
            return False
        letters = LETTERS if self.letters else ""
        known = all(name in self.names or letters_of(name) or name in letters for name in equation.names)
        return known and not isinstance(equation.node, Item | Listed | Rows | Table)

    def operand_letters(self) -> dict[str, str]:
        """The letters of the operands' blocks, as a and b."""
        assigned = {equation.name for equation in self.equations}
        order: dict[str, None] = {}
        for equation in self.equations:
            for name in dict.fromkeys(names_in(equation.node)):
                if name not in assigned and (letters := letters_of(name)):
                    order.setdefault(letters)
        free = [letters for letters in order if letters not in ("a", "b")]
        families = set(map(letters_of, assigned))
        for equation in self.equations:
            own, alias = letters_of(equation.name), sole_name(equation.node)
            if own and letters_of(alias) == own and alias not in assigned:
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
        base = self.found.bases["c"]
        for line, rows in self.account.matrices:
            cells = [sole_name(cell) for row in rows for cell in row]
            inner = {letters_of(cell) for cell in cells} & {"", "m", "p", "u"}
            placed = False if inner else places_of(cells, len(rows[0]))
            if placed:
                continue
            if any(letters_of(equation.name) == "c" for equation in self.equations):
                raise SchemeFormatError("a matrix of outputs that stand elsewhere than their names say", line=line)
            for i, row in enumerate(rows, start=base):
                for j, node in enumerate(row, start=base):
                    name = f"c[{i},{j}]"
                    self.equations.append(Equation(line, name, "", node=node, names=frozenset(names_in(node))))

    def read(self) -> Formulas:
        self.set_indices()
        self.add_matrices()
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
        if isinstance(node, ProductNode):
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
            match = _CALLED.fullmatch(node.name)
            if match or node.name in self.multiplies:
                sign = {"add": 1, "subtract": -1}.get((match and match.lastgroup) or "", 0)
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
        if self.letters and name in LETTERS:
            at = LETTERS.index(name)
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
        index = family(name)[1]
        if self.found.flat:
            return joined(index)
        if len(index) != 2:
            raise SchemeFormatError(f"block {name} is ambiguous; write {name[0]}[i,j]")
        return index

    def block(self, name: str) -> tuple[str, Index] | None:
        letter = self.operands.get(letters_of(name))
        return (letter, self.index(name)) if letter else None

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


def added(left: Form, right: Form, sign: int) -> Form:
    total = dict(left)
    for key, value in right.items():
        total[key] = plus(total.get(key, 0), times(value, sign))
    return {key: value for key, value in total.items() if value}


def multiplied_by(form: Form, factor: Coefficient) -> Form:
    return {key: value for key, old in form.items() if (value := times(old, factor))}
