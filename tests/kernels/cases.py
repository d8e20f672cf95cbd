"""Cases of tests that are data: tables of the file cases.toml in the folder of the test."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcma.kernels.structured.block_low_rank import parse_structure
from lcma.kernels.structured.pattern import parse_patterns


def table(file: str, name: str) -> Any:
    """A table of the file cases.toml beside this file of tests."""
    return tomllib.loads(Path(file).with_name("cases.toml").read_text(encoding="utf-8"))[name]


def each(names: str, file: str, name: str, /, **read: Any) -> pytest.MarkDecorator:
    """A test for each row of a table, whose columns have these names; `read` makes the argument of a column's value."""
    columns = names.replace(" ", "").split(",")
    rows = [row if len(columns) > 1 else [row] for row in table(file, name)]
    made = [[read.get(column, lambda one: one)(one) for column, one in zip(columns, row, strict=True)] for row in rows]
    return pytest.mark.parametrize(columns, made, ids=["-".join(map(str, row)) for row in rows])


def array(text: str) -> np.ndarray:
    """The array of SHAPE:DTYPE, of ones, of SHAPE:DTYPE=NUMBER, or of SHAPE:DTYPE=.., which counts from 0 on."""
    shape, dtype, value = re.fullmatch(r"([\dx]+):([^=]+)=?(.*)", text).groups("")
    sizes = tuple(map(int, shape.split("x")))
    if value == "..":
        return np.arange(np.prod(sizes)).reshape(sizes).astype(dtype)
    return np.full(sizes, float(value or 1)).astype(dtype)


STRUCTURE = {"structure": parse_structure}
PATTERNS = {"patterns": parse_patterns}
"""How texts of these columns are read."""
