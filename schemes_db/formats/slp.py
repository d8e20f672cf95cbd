"""PLinOpt's straight-line programs .slp: three linear programs `o0:=i2-i0; t1:=(o0+i3)/2; ...`, of L, R and P.

Inputs are i0, i1, ..., outputs o0, o1, ..., counted from 0; any other name is a sum for later use,
and outputs may be used too. The three come as files ..L.slp, ..R.slp, ..P.slp, or in one file in
that order, each one after a line that starts with `#`.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..ring import Ring
from ..scheme import MAX_RANK
from ..target import Target
from .arithmetic import Form, unit_in_formulas
from .candidates import reading_of_rows, shape_of, target_of
from .dense import on_line
from .linear_program import MAX_TERMS, BilinearPrograms, LinearProgram, Statement, expanded_rows
from .reading import C, Reading
from .syntax import Meaning, Parser

NAME = "slp"
SUFFIX = ".slp"
CONVENTION = C

_START = r"(?a)\s*(?:#[^\n]*\n\s*)*[a-z]\w*\s*:=[^;]*\bi\d"
_STATEMENT = r"(?s)\s*([A-Za-z]\w*)\s*:=(.*)"
_INPUT = r"(?a)i(0|[1-9]\d{0,5})"
_OUTPUT = r"(?a)o(0|[1-9]\d{0,5})"


def sniff(text: str) -> bool:
    """Return whether the first statement sets a name to a sum with an input i0, i1, ... in it."""
    return re.match(_START, text) is not None


def parse(text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]:
    """Read one scheme of three programs; where their sums are too long to be expanded, as programs.

    Raises:
        SchemeFormatError: with the line; not three programs, or sizes that do not fit together.
    """
    parts: list[_Linear] = []
    fresh = True
    for number, line in enumerate(text.splitlines(), start=1):
        statements, mark, _ = line.partition("#")
        for statement in statements.split(";"):
            if statement.strip():
                if fresh:
                    parts.append(_Linear())
                    fresh = False
                with on_line(number):
                    parts[-1].statement(statement)
        fresh = fresh or bool(mark)
    if len(parts) != 3:
        raise SchemeFormatError(
            f"{len(parts)} programs, where L, R and P belong; name one of the files ..L.slp, ..R.slp, ..P.slp "
            "that stand beside each other"
        )
    left, right, third = (part.finished() for part in parts)
    rank = len(left.outputs)
    if not (rank and rank == len(right.outputs) == third.inputs):
        raise SchemeFormatError(
            f"L has {rank} outputs, R has {len(right.outputs)} and P {third.inputs} inputs: no one number of products"
        )
    shape = shape_of(left.inputs, right.inputs, len(third.outputs))
    if (rows := expanded_rows((left, right, third), rank)) is not None:
        return [reading_of_rows(NAME, rows, shape, CONVENTION, target, ring)]
    if not all(part.rational for part in (left, right, third)) or (ring and (ring.characteristic or ring.gaussian)):
        raise SchemeFormatError(
            f"the sums have more than {MAX_TERMS} terms once expanded; such programs are proven over Z and Q only"
        )
    programs = BilinearPrograms(target_of(shape, target), left, right, third)
    return [Reading(NAME, (), programs=programs, declared=ring)]


class _Sums(Meaning):
    """Names stand for themselves, but for i and eps."""

    unit = staticmethod(unit_in_formulas)


class _Linear:
    """A linear program as it is read: the value that every name has now, as a statement or as ~input."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.values: dict[str, int] = {}

    def statement(self, text: str) -> None:
        match = re.fullmatch(_STATEMENT, text)
        if match is None:
            raise SchemeFormatError("expected a statement such as o0:=i2-i0;")
        if parameter := re.search(r"[A-Za-z]\w*\([^()]{0,40}\)", match[2]):
            raise SchemeFormatError(f"the parameter {parameter.group()[:20]} is no exact fraction")
        value = Parser(match[2], _Sums()).whole()
        if not isinstance(value, Form):
            raise SchemeFormatError("a bare number where a sum belongs")
        terms = tuple((factor, self.source(source)) for source, factor in value.items())
        self.values[match[1]] = len(self.statements)
        self.statements.append(terms)

    def source(self, name: str) -> int:
        """The statement that set a name; an input that no statement has overwritten stands for itself."""
        if name in self.values:
            return self.values[name]
        indexed = re.fullmatch(_INPUT, name)
        if indexed is None:
            raise SchemeFormatError(f"{name} has no value yet")
        if int(indexed[1]) >= MAX_RANK:
            raise SchemeFormatError(f"{name}: more than {MAX_RANK} inputs")
        return ~int(indexed[1])

    def finished(self) -> LinearProgram:
        """The program, its inputs counted.

        Raises:
            SchemeFormatError: an output in between is never set.
        """
        outputs = sum(re.fullmatch(_OUTPUT, name) is not None for name in self.values)
        if missing := [i for i in range(outputs) if f"o{i}" not in self.values]:
            raise SchemeFormatError(f"output o{missing[0]} is never set")
        first = max((-source for terms in self.statements for _, source in terms if source < 0), default=0)
        statements = tuple(
            tuple((factor, first + source if source >= 0 else ~source) for factor, source in terms)
            for terms in self.statements
        )
        return LinearProgram(first, statements, tuple(first + self.values[f"o{i}"] for i in range(outputs)))
