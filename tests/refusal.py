"""A user's mistake is refused in one line."""

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import lcma
from lcma.errors import LcmaError, PlanError


def file(content, name="file"):
    """Write a file in the working directory; return its name."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


SHORT = {
    "np": np,
    "lcma": lcma,
    "scheme": lambda name: lcma.resolve(name)[0],
    "target": lcma.parse_target,
    "general": lcma.Target.general,
    "file": file,
}
"""Names that the calls of every table may use."""


def refuses_with(error, message, call, /, *arguments, **options):
    """Check that a call raises an error of one line that matches a pattern."""
    with pytest.raises(error, match=message) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)


def refuses(message, call, /, *arguments, **options):
    """Check that a call raises a PlanError of one line that matches a pattern."""
    refuses_with(PlanError, message, call, *arguments, **options)


def calls_of(test_file, table, outcome):
    """Parametrize a test over the calls of a table beside its file, each with its outcome.

    The tables in the file are named by the modules of the names that their calls use.
    """
    tables = tomllib.loads(Path(test_file).with_name(table).read_text(encoding="utf-8"))
    rows = [(modules, call, value) for modules, calls in tables.items() for call, value in calls.items()]
    return pytest.mark.parametrize(("modules", "call", outcome), rows)


def wrong_calls(test_file):
    """Parametrize a test over the calls of wrong_calls.toml: the class of the error and a pattern of its line."""
    return calls_of(test_file, "wrong_calls.toml", "error")


def values(test_file):
    """Parametrize a test over the calls of values.toml and their values."""
    return calls_of(test_file, "values.toml", "value")


def value_of(modules, call, **names):
    """The value of an expression with names of some modules, and others that are given."""
    used = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    found = {
        name: getattr(module, name)
        for module in map(import_module, modules.split())
        for name in used
        if hasattr(module, name)
    }
    return eval(call, found | SHORT | names)


def refuses_as_said(modules, call, error, **names):
    """Check that a call of a table raises an error of its class, of one line that matches its pattern."""
    kind, _, message = error.partition(": ")
    with pytest.raises(LcmaError, match=message) as caught:
        value_of(modules, call, **names)
    assert type(caught.value).__name__ == kind, caught.value
    assert "\n" not in str(caught.value)


def has_value(modules, call, value, **names):
    """Check that a call of a table has its value, in which tuples and arrays are lists."""

    def listed(found):
        found = found.tolist() if isinstance(found, np.ndarray | np.generic) else found
        return [listed(one) for one in found] if isinstance(found, list | tuple) else found

    assert listed(value_of(modules, call, **names)) == value
