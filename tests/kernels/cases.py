"""Cases of tests that are data: tables of the file cases.toml in the folder of the test, arrays and calls in words."""

import ast
import pkgutil
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import lcma
from lcma.kernels.kronecker import FactoredMatrix, Pattern
from lcma.kernels.structured.block_low_rank import parse_structure
from lcma.kernels.structured.pattern import parse_patterns
from lcma.schemes_db import Kind

from ..refusal import read_beside


def table(file: str, name: str) -> Any:
    """A table of the file cases.toml beside this file of tests."""
    return read_beside(file, "cases.toml")[name]


def each(names: str, file: str, name: str, /, **read: Any) -> pytest.MarkDecorator:
    """A test for each row of a table, whose columns have these names; `read` makes the argument of a column's value."""
    columns = names.replace(" ", "").split(",")
    rows = [row if len(columns) > 1 else [row] for row in table(file, name)]
    made = [[read.get(column, lambda one: one)(one) for column, one in zip(columns, row, strict=True)] for row in rows]
    return pytest.mark.parametrize(columns, made, ids=["-".join(map(str, row)) for row in rows])


def fails(error: BaseException) -> Any:
    """A function that raises an error."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def present(kinds: Any, shape: tuple[int, int]) -> np.ndarray:
    """The mask of the elements that are present, for blocks of ceil(size / parts)."""
    block = -(-shape[0] // len(kinds)), -(-shape[1] // len(kinds[0]))
    whole = np.ones(block, bool)
    parts = {Kind.ABSENT: ~whole, Kind.FULL: whole, Kind.LOWER: np.tril(whole), Kind.UPPER: np.triu(whole)}
    return np.block([[parts[kind] for kind in row] for row in kinds])[: shape[0], : shape[1]]


STRUCTURE = {"structure": parse_structure}
PATTERNS = {"patterns": parse_patterns}
"""How texts of these columns are read."""

ARRAY = re.compile(r"([mt]?)([\dx]+):([<>]?[a-z]\w*)(?:=(-?\d+|nan|\.\.))?(?:@(meta))?")


def array(text: str) -> Any:
    """The array of SHAPE:DTYPE, of ones, of SHAPE:DTYPE=NUMBER, or of SHAPE:DTYPE=.., which counts from 0 on.

    "m" before it is a masked array of them, "t" a tensor, which may have no data: SHAPE:DTYPE@meta.
    """
    of, shape, dtype, value, device = ARRAY.fullmatch(text).groups()
    sizes = tuple(map(int, shape.split("x")))
    counted = np.arange(float(np.prod(sizes))).reshape(sizes)
    made = counted if value == ".." else np.full(sizes, float(value or 1))
    if of == "t":
        torch = pytest.importorskip("torch")
        return torch.from_numpy(made).to(getattr(torch, dtype)).to(device or "cpu")
    made = made.astype(dtype)
    return np.ma.masked_array(made, mask=np.eye(*sizes[:2], dtype=bool)) if of else made


KINDS = {
    "structure": parse_structure,
    "matrix": lambda text: FactoredMatrix.random(parse_structure(text)),
    "pattern": Pattern.parse,
    "patterns": parse_patterns,
    "program": lambda text: lcma.program_of(lcma.resolve(text)[0]),
    "factors": lambda text: [argument(word) for word in text.split(";")],
}


def argument(word: str) -> Any:
    """The value of a word: an array, one of KINDS, a literal of Python, or the text itself."""
    if ARRAY.fullmatch(word):
        return array(word)
    kind, _, text = word.partition(":")
    if kind in KINDS:
        return KINDS[kind](text.replace("_", " "))
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word


def arguments(words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the keyword arguments of words."""
    named = [re.fullmatch(r"([a-z_]+)=(.*)", word) for word in words]
    options = {one[1]: argument(one[2]) for one in named if one}
    return [argument(word) for word, one in zip(words, named, strict=True) if not one], options


def call(text: str) -> partial:
    """The call of a function below lcma by its name and its arguments in words."""
    name, *words = text.split()
    given, options = arguments(words)
    return partial(pkgutil.resolve_name(f"lcma.{name}"), *given, **options)
