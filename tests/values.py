"""Calls that have the values of a table, values.toml beside the file of tests."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from .refusal import value_of


def values(test_file):
    """Parametrize a test over the calls of the table, which is named by the modules of the names that its calls use."""
    tables = tomllib.loads(Path(test_file).with_name("values.toml").read_text(encoding="utf-8"))
    rows = [(modules, call, value) for modules, calls in tables.items() for call, value in calls.items()]
    return pytest.mark.parametrize(("modules", "call", "value"), rows)


def plain(value):
    """A value in the types of a table: tuples, sets in order and arrays are lists."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def has_value(modules, call, value, **names):
    """Check that a call of the table has the value that stands beside it."""
    assert plain(value_of(modules, call, **names)) == value
