"""The meaning of equations: which names are blocks of A, B and C, which are sums and products, and their values.

Names without a value are blocks of the operands: letters a and b, or the letter that stands in left
factors and the one in right factors. Names that get a value and are used by no other are outputs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import SchemeFormatError
from ..inexact import Coefficient
from ..scheme import MAX_RANK
from .expression import IMAGINARY, Parser, plain_product, plain_sum, plus, times, unit_of
from .lines import Statement
from .patterns import pattern

Index = tuple[int, ...]
"""One index or two, as written."""

Form = dict[tuple[str, Index], Coefficient]
"""A linear form over blocks ("a" or "b", index) or over products ("m", (r,))."""

_NAME = r"[A-Za-z]\w*(?:\[\d+,\s*\d+\]|,\d+)?"
_ASSIGNED = pattern(rf"^(?:(?:[A-Za-z]+[ ,:])*?\s*)?({_NAME})\s*(:=|==|\+=|-=|=|<-|:(?!.*=))\s*(.*)$")
_TURNED = pattern(rf"^(.*[)\d\]])\s*=\s*({_NAME})$")
_INDEXED = pattern(r"([A-Za-z]+)(?:\[(\d+),\s*(\d+)\]|_(\d+)_(\d+)|(\d+),(\d+)|(\d+))")
_WORD = pattern(_NAME)
_MATRIX = pattern(r"^(?:return\s+|[A-Za-z]\w*\s*:?=\s*)(?:[\w.]+\()*\[\s*\[(.*)\]\s*,?\s*\]\)*$")
_SLICE = pattern(r"[A-Za-z]\w*\[[^\]]*:[^\]]*\]")
_NUMBERS_ONLY = pattern(r"[-+*/().\d\s]*")
MAX_MATRIX = 10_000
"""Characters up to which a line may be a matrix of outputs."""

MAX_CHAIN = 60
"""So many names may need the next one before it is set."""

_LETTERS = "abcdefgh"
"""Single letters that textbooks give to the blocks of two 2 x 2 matrices."""


@dataclass
class Equation:
    """One statement `name = text`; `sign` is not 0 where it adds to a value, as in `c11 += m1`."""

    line: int
    name: str
    text: str
    sign: int = 0


@dataclass
class Formulas:
    """Products as pairs of forms over blocks, outputs as forms over products, and what was noticed on the way."""

    products: list[tuple[Form, Form]] = field(default_factory=list)
    outputs: dict[Index, Form] = field(default_factory=dict)
    flat: bool = False
    bases: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abc", 1))
    """The first index of rows and columns of A, B and C: 1, or 0."""

    notes: list[str] = field(default_factory=list)


@lru_cache(maxsize=1 << 16)
def family(name: str) -> tuple[str, Index] | None:
    """The letters of an indexed name, in lower case, and its index as written: digits side by side are one number."""
    match = _INDEXED.fullmatch(name)
    if match is None:
        return None
    return match.group(1).lower(), tuple(int(group) for group in match.groups()[1:] if group is not None)


def split_equation(line: int, text: str) -> Equation | None:
    """The equation that a statement is, or None."""
    match = _ASSIGNED.match(text)
    if match is None:
        turned = _TURNED.match(text)
        return Equation(line, turned.group(2), turned.group(1)) if turned else None
    name, operator, right = match.groups()
    if _SLICE.fullmatch(right) or (right.count("(") != right.count(")") and not re.search(r"\d", right)):
        return None  # A11 = A[:h, :h], and prose such as: let A = (a b; c d)
    parts = re.split(r"(?<![<>:=])=", right)
    if not parts[0].strip():
        return None
    if family(name) and not all(
        _WORD.search(part) for part in parts[1:]
    ):  # m1 = x = y says twice what m1 is, m1 = x = 3 nothing
        raise SchemeFormatError("expected one equation a line, such as m1 = (a11 + a22)(b11 + b22)", line=line)
    return Equation(line, name, parts[0].strip(), {"+=": 1, "-=": -1}.get(operator, 0))


def read_formulas(statements: Iterable[Statement]) -> Formulas:
    """The content of a file of equations.

    Raises:
        SchemeFormatError: with the line, where an equation means nothing or a name has no value.
    """
    return _Reader(list(statements)).read()


class _Reader:
    def __init__(self, statements: list[Statement]) -> None:
        self.found = Formulas()
        self.skipped: list[int] = []
        self.matrix: tuple[int, list[list[str]]] | None = None
        self.equations = self.sorted_out(statements)
        self.operands = self.operand_letters()
        self.values: dict[str, Form] = {}
        self.pending: dict[str, Equation] = {}
        self.blocks: dict[str, tuple[str, Index]] = {}
        """Blocks by their names, of the names that have no value of their own."""

        self.depth = 0

    def sorted_out(self, statements: list[Statement]) -> list[Equation]:
        """The equations among the statements: what names other words than blocks and values is prose."""
        taken = []
        for line, text in statements:
            if len(text) < MAX_MATRIX and (rows := _MATRIX.match(text)):
                self.matrix = (
                    line,
                    [re.split(r",(?![^(]*\))", row) for row in re.split(r"\]\s*,\s*\[", rows.group(1))],
                )
            else:
                taken.append((line, text, split_equation(line, text)))
        names = {equation.name for _, _, equation in taken if equation}
        lower = {name.lower() for name in names}
        if len(lower) == len(names) and "I" not in names:  # a Roman one is a name, a small i the imaginary unit
            for _, _, equation in taken:
                if equation:
                    equation.name, equation.text = equation.name.lower(), equation.text.lower()
            names = lower
        self.letters = self.single_letters([equation for _, _, equation in taken if equation], names)
        if self.letters:
            self.name_outputs([equation for _, _, equation in taken if equation])
        used = self.words_used([equation for _, _, equation in taken if equation])
        kept: list[Equation] = []
        for line, text, equation in taken:
            if equation is not None and equation.name == IMAGINARY:
                raise SchemeFormatError("i is the imaginary unit and can't be set", line=line)
            idle = equation is not None and family(equation.name) is None and equation.name not in used
            if equation is None or idle or not self.is_formula(equation, names):
                # What would set a block is an equation with a fault, anything else is prose.
                if equation is not None and not idle and self.mentions(equation.text):
                    self.words_refused(equation, names)
                slices = _SLICE.search(text) is not None
                if equation is None and self.mentions(text) and not (slices or re.search(r"[A-Za-z]{3,}", text)):
                    raise SchemeFormatError(
                        f"{text[:40]!r} is no equation; write one a line, such as m1 = (a11 + a22)(b11 + b22)",
                        line=line,
                    )
                self.skipped.append(line)
                continue
            kept.append(equation)
        return kept

    def single_letters(self, equations: list[Equation], names: set[str]) -> bool:
        """Return whether the blocks are the letters a to h, those of A first."""
        used = {word for equation in equations if family(equation.name) for word in _WORD.findall(equation.text)}
        return set(_LETTERS) <= used - names and not any(family(word) for word in used - names)

    def words_used(self, equations: list[Equation]) -> set[str]:
        """The words on the right of the equations, without those that only serve a name that nothing uses."""
        while True:
            used = {word for equation in equations for word in _WORD.findall(equation.text)}
            needed = [equation for equation in equations if family(equation.name) or equation.name in used]
            if len(needed) == len(equations):
                return used
            equations = needed

    def name_outputs(self, equations: list[Equation]) -> None:
        """Four single letters that are set and not used, such as r, s, t and u, are the blocks of C by rows."""
        used = {word for equation in equations for word in _WORD.findall(equation.text)}
        letters = [equation for equation in equations if len(equation.name) == 1 and equation.name not in used]
        names = [equation.name for equation in letters]
        if len(names) == 4 == len(set(names)) and not any(
            (found := family(equation.name)) and found[0] == "c" for equation in equations
        ):
            self.found.notes.append(f"{', '.join(names)} are read as C by rows")
            for equation, place in zip(letters, ("c11", "c12", "c21", "c22"), strict=True):
                equation.name = place

    def mentions(self, text: str) -> bool:
        """Return whether a text names a block of an operand."""
        return any((found := family(word)) is not None and found[0] in "abxy" for word in _WORD.findall(text))

    def is_formula(self, equation: Equation, names: set[str]) -> bool:
        words = _WORD.findall(equation.text)
        return all(
            word in names
            or family(word) is not None
            or word in (IMAGINARY, "eps", "epsilon")
            or (self.letters and word in _LETTERS)
            for word in words
        ) and bool(words or _NUMBERS_ONLY.fullmatch(equation.text))

    def words_refused(self, equation: Equation, names: set[str]) -> None:
        known = {IMAGINARY, "eps", "epsilon"}
        for word in _WORD.findall(equation.text):
            if word not in names and family(word) is None and word not in known:
                raise SchemeFormatError(f"{word} has no value yet", line=equation.line)
        raise SchemeFormatError(f"{equation.text[:30]!r} is not understood", line=equation.line)

    def words(self) -> dict[str, None]:
        """The words of all equations, each once, in their order: files repeat the names of blocks many times."""
        found: dict[str, None] = {}
        for equation in self.equations:
            found.update(dict.fromkeys(_WORD.findall(equation.text)))
        return found

    def operand_letters(self) -> dict[str, str]:
        """The letters of the operands' blocks, as a and b."""
        assigned = {equation.name for equation in self.equations}
        order: list[str] = []
        for word in self.words():
            found = family(word)
            if found and word not in assigned and found[0] not in order:
                order.append(found[0])
        free = [letters for letters in order if letters not in ("a", "b")]
        families = {found[0] for name in assigned if (found := family(name))}
        for equation in self.equations:
            found = family(equation.name)
            alias = family(equation.text.strip())
            if alias and alias[0] == (found or ("",))[0] and equation.text.strip() not in assigned:
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

    def add_matrix(self) -> None:
        """The outputs of `C = [[m1 + m4, m3], [m2, m1]]` as equations, unless they have equations of their own."""
        names = {equation.name for equation in self.equations}
        if self.matrix is None or any((found := family(name)) and found[0] == "c" for name in names):
            return
        line, rows = self.matrix
        known = names | {name.upper() for name in names}
        if all(word in known for row in rows for entry in row for word in _WORD.findall(entry)):
            for i, row in enumerate(rows, start=self.found.bases["c"]):
                for j, entry in enumerate(row, start=self.found.bases["c"]):
                    text = entry if names & set(_WORD.findall(entry)) else entry.lower()
                    self.equations.append(Equation(line, f"c[{i},{j}]", text))

    def read(self) -> Formulas:
        self.set_indices()
        self.add_matrix()
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
        if self.skipped:
            lines = ", ".join(map(str, self.skipped[:5])) + (", ..." if len(self.skipped) > 5 else "")
            self.found.notes.append(f"lines that are no equations were skipped: {lines}")
        return self.found

    def set(self, equation: Equation) -> None:
        """Give a name its value, or add to it."""
        known = equation.name in self.values
        own = known and equation.name in _WORD.findall(equation.text)
        if known and not equation.sign and not own:
            raise SchemeFormatError(f"{equation.name} is set twice")
        self.blocks.pop(equation.name, None)
        if equation.sign:
            value = dict(self.values.get(equation.name, {}))
            for key, coefficient in self.value_of(equation.text).items():
                value[key] = plus(value.get(key, 0), times(coefficient, equation.sign))
            self.values[equation.name] = {key: coefficient for key, coefficient in value.items() if coefficient}
        else:
            self.values[equation.name] = self.value_of(equation.text)

    def value_of(self, text: str) -> Form:
        product = plain_product(text)
        if product is not None and len(product.forms) == 2:
            return self.product(*(self.resolved(form) for form in product.forms))
        if (plain := plain_sum(text)) is not None:
            return self.resolved(plain)
        if _NUMBERS_ONLY.fullmatch(text) and re.fullmatch(r"[-+()\s]*0[\s)]*", text):
            return {}
        return _Formula(text, self).value()

    def resolved(self, form: dict[str, Coefficient]) -> Form:
        """A linear form over names with every name replaced by its value."""
        total: Form = {}
        for name, coefficient in form.items():
            block = self.blocks.get(name)
            if block is not None and block not in total:
                total[block] = coefficient
                continue
            for key, value in self.of_name(name).items():
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
        """Return whether blocks have one running index or two, and whether they count from 0."""
        assigned = {equation.name for equation in self.equations}
        indices: dict[str, list[Index]] = {"a": [], "b": [], "c": []}
        for word in self.words():
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
        used = {word for equation in self.equations for word in _WORD.findall(equation.text) if word != equation.name}
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


class _Formula(Parser):
    """A right side: sums and products of names, evaluated while it is read."""

    def __init__(self, text: str, reader: _Reader) -> None:
        super().__init__(text)
        self.reader = reader

    def value(self) -> Form:
        form = self.sum_of_values()
        if self.peek()[0] != "end":
            raise SchemeFormatError(f"unexpected {self.peek()[1]!r}")
        if _SCALAR in form:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return form

    def sum_of_values(self) -> Form:
        total: Form = {}
        sign = -1 if self.accept("+", "-") == "-" else 1
        while True:
            for key, value in self.product_of_values().items():
                total[key] = plus(total.get(key, 0), times(value, sign))
            symbol = self.accept("+", "-")
            if not symbol:
                return {key: value for key, value in total.items() if value}
            sign = -1 if symbol == "-" else 1

    def product_of_values(self) -> Form:
        result: Form | None = None
        expected = True
        while True:
            kind, text = self.peek()
            if kind == "name" or kind == "number" or (kind, text) == ("symbol", "("):
                factor = self.value_of_factor()
            elif expected:
                raise SchemeFormatError(f"a block, a number or '(' expected, not {text or 'the end'!r}")
            else:
                return result if result is not None else {}
            expected = False
            while self.accept("/"):
                factor = _scaled(factor, self.inverse())
            result = factor if result is None else self.multiplied(result, factor)
            if self.accept("*"):
                expected = True

    def value_of_factor(self) -> Form:
        kind, text = self.peek()
        if kind == "number":
            return {_SCALAR: self.number()}
        self.take()
        if kind == "name":
            if (unit := unit_of(text)) is not None:
                return {_SCALAR: unit}
            return dict(self.reader.of_name(text))
        form = self.sum_of_values()
        if not self.accept(")"):
            raise SchemeFormatError(f"')' expected, not {self.peek()[1]!r}")
        return form

    def multiplied(self, left: Form, right: Form) -> Form:
        for scalar, form in ((left, right), (right, left)):
            if set(scalar) == {_SCALAR}:
                return _scaled(form, scalar[_SCALAR])
        if _SCALAR in left or _SCALAR in right:
            raise SchemeFormatError("a bare number where a sum of blocks belongs")
        return self.reader.product(left, right)  # of zero, too: (0)(b11) is a product that says nothing


_SCALAR = ("", ())


def _scaled(form: Form, factor: Coefficient) -> Form:
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
