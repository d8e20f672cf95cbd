"""The text of Triton kernels: shapes beside loads and stores, and loops' invariants."""

import ast
import re
from pathlib import Path

import pytest

from lcma import kernels

SHAPE = re.compile(r"# .*(\[.*\]|one number)")
COMMENT = re.compile(r"^\s*# \S")


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and "triton.jit" in map(ast.unparse, node.decorator_list)


def kernels_of(text):
    return [node for node in ast.walk(ast.parse(text)) if is_kernel(node)]


FILES = [path for path in sorted(Path(kernels.__file__).parent.rglob("*.py")) if "@triton.jit" in path.read_text()]


def header(statement):
    """The last line of a statement without the statements in it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno


def moves(statement):
    """Whether a statement, without the statements in it, loads or stores."""
    parts = [*getattr(statement, "body", []), *getattr(statement, "orelse", [])]
    inside = {id(one) for part in parts for one in ast.walk(part)}
    calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call) and id(one) not in inside)
    return any(isinstance(call, ast.Attribute) and call.attr in ("load", "store") for call in calls)


def unexplained(text):
    """The lines of loads and stores without a shape beside or above them, and of loops without a comment above them."""
    lines, found = text.splitlines(), []
    for statement in (one for kernel in kernels_of(text) for one in ast.walk(kernel) if isinstance(one, ast.stmt)):
        above, own = lines[statement.lineno - 2], lines[statement.lineno - 1 : header(statement)]
        shaped = any(map(SHAPE.search, own)) or (COMMENT.match(above) and SHAPE.search(above))
        is_loop = isinstance(statement, ast.For | ast.While)
        if (not is_kernel(statement) and moves(statement) and not shaped) or (is_loop and not COMMENT.match(above)):
            found.append(statement.lineno)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shapes_and_invariants_are_stated(path):
    assert not unexplained(path.read_text())


def test_a_missing_shape_or_invariant_is_found_in_any_file_of_kernels():
    assert {path.name for path in FILES} >= {path.name for path in Path(kernels.__file__).parent.rglob("*_kernel.py")}
    assert unexplained(KERNEL) == []
    assert unexplained(KERNEL.replace("i)  # [M]", "i)")) == [6]
    assert unexplained(KERNEL.replace("    # [M]\n", "")) == [7]
    assert unexplained(KERNEL.replace("    # total: the sum over the first i rows.\n", "")) == [4]
    assert unexplained(KERNEL.replace("range(4)", "range(tl.load(c))")) == [5]
    assert unexplained(KERNEL.replace("@triton.jit", "@other")) == []


KERNEL = """
@triton.jit
def kernel(a, c):
    # total: the sum over the first i rows.
    for i in range(4):
        total += tl.load(a + i)  # [M]
    # [M]
    tl.store(c, total)
"""
