"""Every load and store of a Triton kernel states the shape of what it moves, as `# [M, K]`."""

import ast
import re
from pathlib import Path

import pytest

from lcma import kernels

KERNELS = sorted(Path(kernels.__file__).parent.rglob("*_kernel.py"))
SHAPE = re.compile(r"# .*\[.*\]")


def moves(tree):
    """The statements that load or store."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
            calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call))
            if any(isinstance(call, ast.Attribute) and call.attr in ("load", "store") for call in calls):
                yield statement


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_load_and_store_has_its_shape(path):
    lines = path.read_text().splitlines()
    found = list(moves(ast.parse("\n".join(lines))))
    without = [one.lineno for one in found if not any(map(SHAPE.search, lines[one.lineno - 2 : one.end_lineno]))]
    assert not without


def test_a_statement_without_a_shape_is_found():
    tree = ast.parse("x = tl.load(a + i)\ny = x + 1\nc.store([0, 0], y)\nreturned = f(tl.load(b))\n")
    assert [one.lineno for one in moves(tree)] == [1, 3, 4]
    assert not SHAPE.search("x = tl.load(a[0])  # not a shape")
    assert SHAPE.search("x = tl.load(a)  # [M, K]")
