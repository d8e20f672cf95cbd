"""Tables beside tests, and of calls: what right ones give, how a user's mistake is refused in one line."""

import ast
import json
import tomllib
from enum import Enum
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


def read_beside(test_file, name):
    """What the JSON or TOML of this name beside a file of tests holds."""
    text = Path(test_file).with_name(name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else tomllib.loads(text)


def calls_of(test_file, table, outcome):
    """Parametrize a test over the calls of a table beside its file, each with its outcome.

    The tables in the file are named by the modules of the names that their calls use.
    """
    tables = read_beside(test_file, table).items()
    rows = [(modules, call, value) for modules, calls in tables for call, value in calls.items()]
    return pytest.mark.parametrize(("modules", "call", outcome), rows)


def wrong_calls(test_file):
    """Parametrize a test over the calls of wrong_calls.toml: the class of the error and a pattern of its line."""
    return calls_of(test_file, "wrong_calls.toml", "error")


def values(test_file):
    """Parametrize a test over the calls of values.toml beside its file, and what each gives, as `plain` writes it."""
    return calls_of(test_file, "values.toml", "wanted")


def plain(value):
    """A value in the words of TOML: sequences are lists, sets sorted ones, and what it has no word for is text."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    return value if isinstance(value, bool | int | float) else str(value)


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


def has_value(modules, call, wanted, **names):
    """Check that a call of a table gives what it says, as `plain` writes it."""
    assert plain(value_of(modules, call, **names)) == wanted
