"""PLinOpt's straight-line programs .slp: three linear programs `o0:=i2-i0; t1:=(o0+i3)/2; ...`, of L, R and P.

Inputs are i0, i1, ..., outputs o0, o1, ..., counted from 0; any other name is a sum for later use,
and outputs may be used too. The three come as files ..L.slp, ..R.slp, ..P.slp, or in one file in
that order, each one after a line that starts with `#`.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..gaussian import simplest
from ..inexact import Coefficient, Inexact
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .candidates import reading_of_rows, shape_of
from .expression import parse_linear, plus, times
from .reading import C, Reading

NAME = "slp"
SUFFIX = ".slp"
CONVENTION = C

MAX_TERMS = 4_000_000

_START = r"(?a)\s*(?:#[^\n]*\n\s*)*[a-z]\w*\s*:=[^;]*\bi\d"
_STATEMENT = r"(?s)\s*([A-Za-z]\w*)\s*:=(.*)"
_INDEXED = r"(?a)([io])(0|[1-9]\d{0,5})"

Form = dict[int, Coefficient]


def sniff(text: str) -> bool:
    """Whether the first statement sets a name to a sum with an input i0, i1, ... in it."""
    return re.match(_START, text) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme of three programs.

    Raises:
        SchemeFormatError: with the line; not three programs, or sizes that do not fit together.
    """
    programs: list[_Linear] = []
    fresh = True
    budget = [MAX_TERMS]
    for number, line in enumerate(text.splitlines(), start=1):
        statements, mark, _ = line.partition("#")
        for statement in statements.split(";"):
            if statement.strip():
                if fresh:
                    programs.append(_Linear(budget))
                    fresh = False
                try:
                    programs[-1].statement(statement)
                except SchemeFormatError as error:
                    raise SchemeFormatError(error.message, line=number) from None
        fresh = fresh or bool(mark)
    if len(programs) != 3:
        raise SchemeFormatError(
            f"{len(programs)} programs, where L, R and P belong; name one of the files ..L.slp, ..R.slp, ..P.slp "
            "that stand beside each other"
        )
    left, right, third = programs
    rank = len(left.outputs)
    if not (rank and rank == len(right.outputs) == third.inputs):
        raise SchemeFormatError(
            f"L has {rank} outputs, R has {len(right.outputs)} and P {third.inputs} inputs: no one number of products"
        )
    products: list[list[tuple[int, Coefficient]]] = [[] for _ in range(rank)]
    for entry, form in enumerate(third.forms()):
        for r, value in form.items():
            products[r].append((entry, value))
    shape = shape_of(left.inputs, right.inputs, len(third.outputs))
    rows = ([form.items() for form in left.forms()], [form.items() for form in right.forms()], products)
    return [reading_of_rows(NAME, rows, shape, CONVENTION, target, ring)]


class _Linear:
    """A linear program: the values of its names as forms over the inputs."""

    def __init__(self, budget: list[int]) -> None:
        self.budget = budget
        self.values: dict[str, Form] = {}
        self.outputs: set[int] = set()
        self.inputs = 0

    def statement(self, text: str) -> None:
        match = re.fullmatch(_STATEMENT, text)
        if match is None:
            raise SchemeFormatError("expected a statement such as o0:=i2-i0;")
        name = match.group(1)
        indexed = re.fullmatch(_INDEXED, name)
        total: Form = {}
        for source, factor in parse_linear(match.group(2)).items():
            part = self.value(source)
            self.budget[0] -= len(part) + 1
            if self.budget[0] < 0:
                raise SchemeFormatError(f"the sums have more than {MAX_TERMS} terms once expanded")
            for index, coefficient in part.items():
                value = plus(total.get(index, 0), times(factor, coefficient))
                total[index] = value if isinstance(value, Inexact) else simplest(value)
        self.values[name] = {index: value for index, value in total.items() if value}
        if indexed and indexed.group(1) == "o":
            self.outputs.add(int(indexed.group(2)))

    def value(self, name: str) -> Form:
        """The form of a name; an input that no statement has overwritten stands for itself."""
        if name in self.values:
            return self.values[name]
        indexed = re.fullmatch(_INDEXED, name)
        if indexed is None or indexed.group(1) != "i":
            raise SchemeFormatError(f"{name} has no value yet")
        index = int(indexed.group(2))
        if index >= MAX_RANK:
            raise SchemeFormatError(f"{name}: more than {MAX_RANK} inputs")
        self.inputs = max(self.inputs, index + 1)
        return {index: 1}

    def forms(self) -> list[Form]:
        """The outputs in order.

        Raises:
            SchemeFormatError: one in between is never set.
        """
        if self.outputs != set(range(len(self.outputs))):
            missing = next(i for i in range(len(self.outputs)) if i not in self.outputs)
            raise SchemeFormatError(f"output o{missing} is never set")
        return [self.values[f"o{i}"] for i in range(len(self.outputs))]
