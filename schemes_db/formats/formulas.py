"""Equations between names, computed as they stand; what their names are is found from the values.

A name that is never set stands for itself. Such names in left factors are blocks of A, those in right factors blocks
of B. Names that have the letter c, or are set and used by no other, are outputs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from itertools import count
from typing import Any

from ...errors import SchemeFormatError
from ..scheme import MAX_RANK
from .account import GROUP, Equation, account_for, is_caseless, matrices_in, scales_a_column, split_equation
from .arithmetic import LinearForm, is_number, times, total, unit_in_formulas
from .lines import Statement
from .naming import LETTERS, Index, family, joined, label_of, letters_of, place_of, with_indices
from .patterns import pattern
from .reading import Entries, on_line
from .syntax import Braces, Meaning, Parser, Value, described, grid, name_of, scaled, words
from .trilinear import CYCLIC, split_product

_CALLED = pattern(
    r"(?i)\.?(?:(?P<add>add|plus|sum)|(?P<subtract>sub|subtract|minus|diff)"
    r"|(?P<multiply>dot|matmul|mul|multiply|mult|mm|prod|product|times))(?:_?mat(?:rix|rices)?)?"
    r"|(?P<recursive>\w*(?:strassen|winograd)\w*)"
)
"""Names of calls that add, subtract and multiply."""

_NO_PRODUCT = "a product must have two factors, sums of blocks of A and of B, or one of C as third factor of all"
_GROUPS = (list, Braces)
"""Brackets around one sum: [a11 + a22](b11 + b22)."""

_PROSE = pattern(r"[A-Za-z]{3}|^\D*[A-Za-z]\D*$")
"""What lines between products of three factors have or are."""


class Formulas(Meaning):
    """Products as pairs of forms over blocks, outputs as forms over products, and what was noticed on the way.

    The keys of forms are blocks (names in one spelling), products (numbers), and products with a third factor (a
    number in a tuple).
    """

    zero = LinearForm()

    def __init__(
        self, statements: Iterable[Statement], controlled: Set[int] = frozenset(), cyclic: bool = False
    ) -> None:
        """Compute the statements of a text; `controlled` lines are governed by a loop or a condition.

        If the text is `cyclic`, all products with a third factor stand for their three rotations.

        Raises:
            SchemeFormatError: with the line, where an equation means nothing or a name has no value.
        """
        self.names: dict[str, Value] = {}
        self.products: dict[int, tuple[LinearForm, LinearForm]] = {}
        self.owners: list[Equation] = []
        """For every product the equation that it stands in."""

        self.thirds: dict[int, LinearForm] = {}
        """The third factors of products that have one: blocks of the transpose of C."""

        self.outputs: dict[Index, LinearForm] = {}
        self.places: dict[Any, Index] = {}
        """The index of every block."""

        self.flat = False
        self.bases = dict.fromkeys("abc", 1)
        """The first index of rows and columns of A, B and C: 1, or 0."""

        self.letters: dict[str, str] = {}
        """The blocks of C that single letters stand for, by rows."""

        self.notes: list[str] = []
        self.unlike: list[tuple[Equation, LinearForm]] = []
        """Equations that say two unlike things of a name, and the second as products of blocks."""

        self.skipped: list[int] = []
        self.owner = Equation(0, "", [])
        every = (part for line, text in statements for part in matrices_in(line, text))
        listed = [(line, text, split_product(line, text) or split_equation(line, text)) for line, text in every]
        self.equations = [each for _, _, each in listed if each]
        lower = is_caseless(self.equations)
        self.groups = [words(group) for _, text, _ in listed if ";" in text for group in GROUP.findall(text)]
        if lower:
            listed = [(line, text.lower(), each) for line, text, each in listed]
            for each in self.equations:
                each.name, each.texts = each.name.lower(), [text.lower() for text in each.texts]
        self.set_by = Counter(each.name for each in self.equations)
        used = {name for each in self.equations for text in each.texts for name in words(text)} - self.set_by.keys()
        lettered = {name for name in used if name in LETTERS or letters_of(name) in ("a", "b")} == LETTERS.keys()
        self.inputs = LETTERS if lettered else {}  # the blocks of A and B that single letters stand for
        for each in self.equations:
            each.texts = [with_indices(text, self.inputs) for text in each.texts]
        # Names that differ in case or marks alone are one name: which of two values is meant is not known.
        spelled = {family(name): name for name in self.set_by if letters_of(name)}
        for each in self.equations:
            if each.name == "i":
                raise SchemeFormatError("i is the imaginary unit and can't be set", line=each.line)
            if (other := spelled.get(family(each.name), each.name)) != each.name:
                raise SchemeFormatError(f"{each.name} is set, and so is {other}", line=each.line)
        self.single = {each.name: each for each in self.equations if self.set_by[each.name] == 1 and not each.sign}
        for each in self.equations:
            if each.value is None and each.fault is None:
                self.compute(each)
        live = self.needed()
        self.products = {r: part for r, part in self.products.items() if self.owners[r] in live}
        self.place_blocks()
        self.check_said_twice(live)
        self.code = self.account_for(listed, live, controlled)
        faults = (each.fault for each in self.equations if any(map(letters_of, words(each.texts[0]))))
        if not self.products and (fault := next(filter(None, faults), None)):
            raise fault
        ordered = [each for each in self.equations if each in live]
        if self.thirds:
            self.take_thirds(ordered, cyclic)
        else:
            self.take_outputs(ordered)
        if self.skipped:
            lines = ", ".join(map(str, self.skipped[:5])) + (", ..." if len(self.skipped) > 5 else "")
            self.notes.append(f"lines that are no equations were skipped: {lines}")
        if 0 in self.bases.values():
            self.notes.append("indices count from 0")

    def account_for(
        self, statements: Iterable[tuple[int, str, Equation | None]], live: Set[Equation], controlled: Set[int]
    ) -> list[int]:
        """Account for the statements that are no `live` equations; return the lines that look like a program.

        Raises:
            SchemeFormatError: with the line, where one may change a block, a product or an output.
        """
        families = {"c", *(letters_of(each.name) for each in live), *map(letters_of, self.places)} - {""}
        families |= {"t"} if self.thirds else set()  # the tensor
        first = min((each.line for each in live), default=0)
        code = []
        known = {**self.inputs, **self.letters}
        matrices = {each.name: each.line for each in live if isinstance(each.value, list) and each.name}
        outputs = {each.name for each in live if letters_of(each.name) == "c"}
        heads = {each.line - above for each in live for above in (1, 2)}
        for line, said, equation in statements:
            text = with_indices(said, known)
            deleted = words(text) if text.startswith("del ") else []
            for name in [equation.name] if equation else deleted:
                if equation not in live and line > matrices.get(name, line):
                    raise SchemeFormatError(f"{name} is set or deleted after its outputs were set", line=line)
            if equation is None or equation not in live:
                if line in heads and scales_a_column(text):
                    raise SchemeFormatError(f"what {text[:40]!r} does to the table below it is not known", line=line)
                if text.startswith("return") and 1 < len(outputs.intersection(words(text))) < len(outputs):
                    raise SchemeFormatError("some outputs are returned, but not all", line=line)
                if account_for(line, text, equation, families, first):
                    code.append(line)
                if self.thirds and (not _PROSE.search(text) or CYCLIC.fullmatch(text)):
                    raise SchemeFormatError(f"{text[:40]!r} is no product and no prose", line=line)
                self.skipped.append(line)
            elif line in controlled:
                raise SchemeFormatError(f"{equation.name} is set in a loop or under a condition", line=line)
        return code

    def compute(self, each: Equation) -> None:
        """Compute the value of an equation, or its fault."""
        before, self.owner = self.owner, each
        each.fault = SchemeFormatError(f"{each.name} is defined by itself", line=each.line)
        texts = list({"".join(text.split()): text for text in each.texts}.values())
        said = [one for one in texts if not self.set_by.keys().isdisjoint(words(one))] or texts
        try:
            with on_line(each.line):
                value = Parser(said[0], self).whole()
                if any(Parser(one, self).whole() != value for one in said[1:]):
                    raise SchemeFormatError(f"{each.name} is said to be two unlike things")
                for one in texts:
                    if one not in said and (second := self.aside(one)) != self.expanded(value):
                        self.unlike.append((each, second))
                each.fault = None
                if each.third:
                    if not isinstance(value, LinearForm) or not all(type(key) is tuple for key in value):
                        raise SchemeFormatError("expected three factors, as in (a11+a22)*(b11+b22)*(c11+c22)")
                    each.value = value
                    return
                if not is_number(value) and not isinstance(value, LinearForm):
                    rows = grid(value)
                    each.value = rows.tolist() if rows.ndim == 2 else None
                    if not each.value or not all(isinstance(cell, LinearForm) for cell in rows.flat):
                        raise SchemeFormatError(f"{described(value)} is not understood")
                    return
                if (value and is_number(value)) or not each.name:
                    raise SchemeFormatError("a bare number where a sum of blocks belongs")
                form = value if isinstance(value, LinearForm) else LinearForm()
                if each.sign:
                    form = total([self.names.get(each.name, LinearForm()), scaled(form, each.sign)])
                elif each.name in self.names and each.name not in words(said[0]) and letters_of(each.name):
                    each.again = True
                    raise SchemeFormatError(f"{each.name} is set twice")
                each.value = self.names[each.name] = form
        except SchemeFormatError as error:
            each.fault, each.value = error, None
        finally:
            self.owner = before

    def aside(self, text: str) -> LinearForm:
        """What a text says as a sum of products of blocks; its products are none of the scheme's."""
        known = len(self.owners)
        value = self.expanded(Parser(text, self).whole())
        for number in range(known, len(self.owners)):
            if self.owners[number] is self.owner:
                del self.products[number]
        return value

    def expanded(self, value: Value) -> LinearForm:
        """A form in which products are sums of pairs of blocks.

        Raises:
            SchemeFormatError: the value is no form.
        """
        if not isinstance(value, LinearForm):
            raise SchemeFormatError(f"{described(value)} beside another value of one name")
        pairs = [LinearForm()]
        for key, scalar in value.items():
            left, right = self.products.get(key) or ({key: 1}, {"": 1})
            for block, factor in scaled(LinearForm(left), scalar).items():
                pairs.append(LinearForm({(block, other): times(factor, x) for other, x in right.items()}))
        return LinearForm(total(pairs))

    def check_said_twice(self, live: Set[Equation]) -> None:
        """Check that what is said beside an output and differs is the entry of A B that its name says.

        Then the products are wrong; else it is not known which of the two is meant.

        Raises:
            SchemeFormatError: with the line, where it is another sum.
        """
        inner = {self.places[key][-1] for left, _ in self.products.values() for key in left}
        for each, form in self.unlike:
            row, col = (*family(each.name)[1], 0, 0)[:2]
            said = {(self.places.get(a), self.places.get(b)): value for (a, b), value in form.items()}
            if each in live and said != {((row, at), (at, col)): 1 for at in inner}:
                raise SchemeFormatError(f"{each.name} is said to be two unlike things", line=each.line)

    def named(self, name: str) -> Value:
        """The value of a name; one that is set further down is computed now."""
        if name in self.set_by:
            each = self.single.get(name)
            if each and each.value is None and each.fault is None:
                self.compute(each)
            if (value := self.names.get(name)) is None:
                fault = (each and each.fault) or SchemeFormatError(f"{name} has no value yet")
                raise SchemeFormatError(fault.message, line=fault.line)  # anew: each raise adds to a traceback
            self.owner.uses.add(name)
            return value
        if name not in self.names:
            if (unit := unit_in_formulas(name)) is not None:
                return unit
            if not letters_of(name):
                raise SchemeFormatError(f"{name} has no value yet")
            self.names[name] = LinearForm({label_of(*family(name)) or name: 1})
        return self.names[name]

    def called(self, name: str, arguments: list[Value], keywords: dict[str, str]) -> Value:
        """A sum, a product or a matrix that a call makes."""
        if len(arguments) == 1 and name in ("array", "Matrix", "matrix", "expand", "simplify"):
            return arguments[0]
        cells: list[Value] = arguments[2] if len(arguments) == 3 and isinstance(arguments[2], list) else []
        whole = bool(cells) and all(type(size) is int and size > 0 for size in arguments[:2])
        if name in ("Matrix", "matrix") and whole and arguments[0] * arguments[1] == len(cells):
            return [cells[at : at + arguments[1]] for at in range(0, len(cells), arguments[1])]  # of Magma, by rows
        match = _CALLED.fullmatch(name)
        if len(arguments) != 2 or keywords or not match:
            return super().called(name, arguments, keywords)
        left, right = arguments
        sign = {"add": 1, "subtract": -1}.get(match.lastgroup or "", 0)
        return total([left, scaled(right, sign)]) if sign else self.multiplied(left, right)

    def multiplied(self, left: Value, right: Value) -> Value:
        """A new product of two sums of blocks, or one with a third factor."""
        left, right = (form[0] if type(form) in _GROUPS and len(form) == 1 else form for form in (left, right))
        if not isinstance(left, LinearForm) or not isinstance(right, LinearForm):
            raise SchemeFormatError(f"{described(left if isinstance(right, LinearForm) else right)} is not understood")
        first, second = (next(iter(form), "") for form in (left, right))
        if type(first) is int and len(left) == 1 and self.owner.third and type(second) is str:
            self.thirds[first] = right
            return LinearForm({(first,): left[first]})
        if type(first) is not str or type(second) is not str:
            raise SchemeFormatError(_NO_PRODUCT)
        if len(self.products) >= MAX_RANK:
            raise SchemeFormatError(f"more than {MAX_RANK} products")
        number = len(self.owners)
        self.products[number] = left, right
        self.owners.append(self.owner)
        return LinearForm({number: 1})

    def needed(self) -> set[Equation]:
        """The equations of names with an index and of matrices, and those of the names that they are computed from."""
        by_name = defaultdict(list)
        for each in self.equations:
            if each.value is not None:
                by_name[each.name].append(each)
        letters = [name for name, (each, *_) in by_name.items() if len(name) == 1 and _has_products(each)]
        if len(letters) == 4 and not any(letters_of(name) == "c" for name in by_name):
            letters = next((names for names in self.groups if sorted(names) == sorted(letters)), letters)
            self.notes.append(f"{', '.join(letters)} are read as C by rows")
            self.letters = dict(zip(letters, ("c11", "c12", "c21", "c22"), strict=True))
            for name, place in self.letters.items():
                by_name[place] = by_name.pop(name)
                for each in by_name[place]:
                    each.name = place
        found = {each for each in self.equations if isinstance(each.value, list) or (each.third and each.value)}
        if len({each.third for each in found}) > 1:
            raise SchemeFormatError("products with a third factor, and matrices")
        stack = [name for name in by_name if letters_of(name)] + [name for each in found for name in each.uses]
        while stack:
            for each in by_name.pop(stack.pop(), ()):
                found.add(each)
                stack += each.uses
        return found

    def place_blocks(self) -> None:
        """Find out which blocks are of A and of B, whether they have one running index, and whether from 0."""
        parts = {r: (*part, self.thirds.get(r, LinearForm())) for r, part in self.products.items()}
        sides: list[dict[Any, int]] = [{} for _ in range(3)]
        for r, three in parts.items():
            for keys, form in zip(sides, three, strict=True):
                keys.update((key, self.owners[r].line) for key in form if key not in keys)
        found = [[family(key) for key in keys if type(key) is str] for keys in sides]
        self.flat = any(len(index) == 1 for part in found for _, index in part)
        if self.flat and self.thirds:
            raise SchemeFormatError("blocks with one index, in products of three factors")
        first, second = self.operands(*({letters for letters, _ in part} for part in found[:2]))
        operands = (first, second, "z" if first == "x" else "c")
        for each in self.equations:
            own = letters_of(each.name)
            offsets = set(map(int.__sub__, family(each.name)[1], family(each.texts[0])[1]))
            renamed = offsets in ({0}, {1})  # a11 = a[0][0]
            if own in operands[:2] and (
                letters_of(each.texts[0]) != own or each.texts[0] in self.set_by or each.sign or not renamed
            ):
                raise SchemeFormatError(f"{each.name} is a block of an operand and can't be set", line=each.line)
        for side, keys in enumerate(sides):
            for key, line in keys.items():
                with on_line(line):
                    if type(key) is not str:
                        raise SchemeFormatError("a product of sums where a sum of blocks belongs")
                    if (letter := letters_of(key)) != operands[side]:
                        elsewhere = f"stands where a block of {operands[side].upper()} belongs"
                        raise SchemeFormatError(f"{key} {elsewhere if letter in operands else 'has no value yet'}")
                    self.places[key] = self.index(key)
                self.bases["abc"[side]] = min(self.bases["abc"[side]], *self.places[key])

    def operands(self, left: set[str], right: set[str]) -> tuple[str, str]:
        """The letters of A and B: a and b, or the letters that stand in all left and in all right factors."""
        if {"a", "b"} & {*left, *right} or len(left) != 1 or len(right) != 1 or left == right:
            return "a", "b"
        found = ("x", "y") if {*left, *right} == {"x", "y"} else (*left, *right)
        self.notes.append(f"{found[0]} is read as A, {found[1]} as B")
        return found[0], found[1]

    def index(self, name: str) -> Index:
        """An index of one number or two, as all blocks of the file have it."""
        return (self.flat and joined(family(name)[1])) or place_of(name)

    def take_thirds(self, live: list[Equation], cyclic: bool) -> None:
        """The outputs, transposed: the third factors of all products, which is all that such a text may have."""
        fresh, rotated = count(len(self.owners)), 0
        self.bases = dict.fromkeys("abc", min(self.bases.values()))
        for each in live:
            if not each.third:
                raise SchemeFormatError("products with and without a third factor", line=each.line)
            for (first,), scalar in each.value.items():
                three = [*self.products[first], scaled(self.thirds[first], scalar)]
                alike = [{self.places[key]: value for key, value in form.items()} for form in three]
                rotated += cyclic or each.cyclic
                for turn in range(1 if alike[0] == alike[1] == alike[2] or not (cyclic or each.cyclic) else 3):
                    left, right, third = three[turn:] + three[:turn]
                    r = next(fresh) if turn else first
                    self.products[r] = left, right
                    for key, value in third.items():
                        self.outputs.setdefault(self.places[key], LinearForm())[r] = value
        if rotated:
            self.notes.append(f"{rotated} products stand for their three rotations")

    def take_outputs(self, live: list[Equation]) -> None:
        """The outputs: names of the letter c, else a matrix, else names of the only letters that no equation uses."""
        groups: dict[str, dict[str, Equation]] = defaultdict(dict)
        matrices = [each for each in live if isinstance(each.value, list)]
        for each in live:
            if letters_of(each.name) and not isinstance(each.value, list):
                groups[letters_of(each.name)][each.name] = each
        indices = {letters: {len(family(name)[1]) for name in names} for letters, names in groups.items()}
        fitting = [letters for letters, lengths in indices.items() if self.flat or lengths == {2}]
        chosen = sorted({"c", "z"}.intersection(fitting))[:1]
        if not chosen and not any(map(_has_products, matrices)):
            used = {name for each in live for text in each.texts for name in words(text) if name != each.name}
            chosen = [one for one in fitting if used.isdisjoint(groups[one])]
        if len(chosen) > 1:
            raise SchemeFormatError(f"{' and '.join(chosen)} could all be the outputs; name those c11, c12, ...")
        for name, each in groups[chosen[0]].items() if chosen else ():
            self.set_output(self.index(name), each, each.value)
        self.bases["c"] = min((1, *(at for index in self.outputs for at in index)))
        for each in matrices:
            self.take_matrix(each, bool(chosen))

    def take_matrix(self, each: Equation, known: bool) -> None:
        """Set the outputs to the cells of a matrix, or check that they stand where their names say.

        Of the blocks of an operand they must stand in their order.
        """
        width, base = len(each.value[0]), self.bases["c"]
        cells = [cell for row in each.value for cell in row]
        if not _has_products(each):
            names = list(map(name_of, cells))
            offsets = {tuple(map(int.__sub__, family(name)[1], divmod(at, width))) for at, name in enumerate(names)}
            letters, other = set(map(letters_of, names)), {"a": "b", "b": "a"}.get(each.name.lower(), "")
            in_place = len(letters) == 1 and other not in letters and (self.flat or offsets in ({(0, 0)}, {(1, 1)}))
            if not in_place:
                raise SchemeFormatError("a matrix of blocks that stand elsewhere than their names say", line=each.line)
            return
        for at, cell in enumerate(cells):
            index = (at + base,) if self.flat else (at // width + base, at % width + base)
            if known and self.outputs.get(index) != cell:
                raise SchemeFormatError("a matrix of outputs that stand elsewhere than their names say", line=each.line)
            self.set_output(index, each, cell)

    def set_output(self, index: Index, each: Equation, form: LinearForm) -> None:
        for key in form:
            if type(key) is not int:
                known = type(key) is not str or key in self.places
                message = f"{each.name} must be a sum of products" if known else f"{key} has no value yet"
                raise SchemeFormatError(message, line=each.line)
        self.outputs[index] = form

    def factors(self) -> tuple[Entries, Entries, Entries]:
        """The factors of A, B and C; the row is the index, the column 0, of blocks that have one running index."""
        sides = [[part[side] for part in self.products.values()] for side in (0, 1)]
        thirds: dict[int, LinearForm] = {number: LinearForm() for number in self.products}
        for index, form in self.outputs.items():
            for number, value in form.items():
                thirds[number][index] = value
        a, b, c = self.bases.values()
        own = {index: index for index in self.outputs}
        left, right = Entries.of_forms(sides[0], self.places, a), Entries.of_forms(sides[1], self.places, b)
        return left, right, Entries.of_forms(list(thirds.values()), own, c)


def _has_products(each: Equation) -> bool:
    """Return whether a value, or some cell of a matrix, is a sum of products."""
    cells = [each.value] if isinstance(each.value, LinearForm) else [cell for row in each.value for cell in row]
    return any(type(key) is int for cell in cells for key in cell)
