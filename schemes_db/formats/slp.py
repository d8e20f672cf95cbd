"""PLinOpt's straight-line programs .slp: three linear programs `o0:=i2-i0; t1:=(o0+i3)/2; ...`, of L, R and P.

Inputs are i0, i1, ..., outputs o0, o1, ..., counted from 0; any other name is a sum for later use,
and outputs may be used too. The three come as files ..L.slp, ..R.slp, ..P.slp, or in one file in
that order, each one after a line that starts with `#`.
"""

from __future__ import annotations

import re

from ...errors import SchemeFormatError
from ..scheme import MAX_RANK
from .arithmetic import LinearForm, unit_in_formulas
from .candidates import reading_of_rows, shape_of, target_of
from .linear_program import MAX_TERMS, BilinearPrograms, LinearProgram, Statement, expanded_rows
from .parts import HOW
from .reading import C, Reading, Wanted, on_line
from .syntax import Meaning, Parser

_START = r"(?a)\s*(?:#[^\n]*\n\s*)*[a-z]\w*\s*:=[^;]*\bi\d"
_STATEMENT = r"(?s)\s*([A-Za-z]\w*)\s*:=(.*)"
_INPUT = r"\bi(0|[1-9][0-9]{0,5})\b"
_OUTPUT = r"(?a)o(0|[1-9]\d{0,5})"


def sniff(text: str) -> bool:
    """Return whether the first statement sets a name to a sum with an input i0, i1, ... in it."""
    return re.match(_START, text) is not None


def parse(text: str, wanted: Wanted) -> list[Reading]:
    """Read one scheme of three programs; where their sums are too long to be expanded, as programs.

    Raises:
        SchemeFormatError: with the line; not three programs, or sizes that do not fit together.
    """
    listed: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(text.splitlines(), start=1):
        code, mark, _ = line.partition("#")
        listed[-1] += [(number, statement) for statement in code.split(";") if statement.strip()]
        if mark and listed[-1]:
            listed.append([])
    parts = [_program(statements) for statements in listed if statements]
    if len(parts) != 3:
        raise SchemeFormatError(f"{len(parts)} programs, where L, R and P belong; {HOW}")
    left, right, third = parts
    rank = len(left.outputs)
    if not (rank and rank == len(right.outputs) == third.inputs):
        raise SchemeFormatError(
            f"L has {rank} outputs, R has {len(right.outputs)} and P {third.inputs} inputs: no one number of products"
        )
    shape = shape_of(left.inputs, right.inputs, len(third.outputs))
    if (rows := expanded_rows((left, right, third), rank)) is not None:
        return [reading_of_rows(wanted, rows, shape, C)]
    if not all(part.rational for part in (left, right, third)) or (
        wanted.ring and (wanted.ring.characteristic or wanted.ring.gaussian)
    ):
        raise SchemeFormatError(
            f"the sums have more than {MAX_TERMS} terms once expanded; such programs are proven over Z and Q only"
        )
    programs = BilinearPrograms(target_of(shape, wanted.target), left, right, third)
    return [Reading("slp", (), programs=programs, declared=wanted.ring)]


class _Sums(Meaning):
    """Names stand for themselves, but for i and eps."""

    unit = staticmethod(unit_in_formulas)


def _program(statements: list[tuple[int, str]]) -> LinearProgram:
    """The program of statements, each with its line.

    Raises:
        SchemeFormatError: one is no sum of names that are set before it, or an output in between is never set.
    """
    read = [int(at) for _, text in statements for at in re.findall(_INPUT, text.partition(":=")[2])]
    inputs = 1 + max(read, default=-1)
    if inputs > MAX_RANK:
        raise SchemeFormatError(f"i{inputs - 1}: more than {MAX_RANK} inputs")
    known = {f"i{at}": at for at in range(inputs)}
    sums: list[Statement] = []
    for line, text in statements:
        with on_line(line):
            match = re.fullmatch(_STATEMENT, text)
            if match is None:
                raise SchemeFormatError("expected a statement such as o0:=i2-i0;")
            if parameter := re.search(r"[A-Za-z]\w*\([^()]{0,40}\)", match[2]):
                raise SchemeFormatError(f"the parameter {parameter.group()[:20]} is no exact fraction")
            value = Parser(match[2], _Sums()).whole()
            if not isinstance(value, LinearForm):
                raise SchemeFormatError("a bare number where a sum belongs")
            if unknown := next((name for name in value if name not in known), None):
                raise SchemeFormatError(f"{unknown} has no value yet")
            sums.append(tuple((factor, known[name]) for name, factor in value.items()))
            known[match[1]] = inputs + len(sums) - 1
    count = sum(re.fullmatch(_OUTPUT, name) is not None for name in known)
    if missing := next((f"o{at}" for at in range(count) if f"o{at}" not in known), None):
        raise SchemeFormatError(f"output {missing} is never set")
    return LinearProgram(inputs, tuple(sums), tuple(known[f"o{at}"] for at in range(count)))
