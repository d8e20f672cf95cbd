"""Imports among the modules of kernels, those inside functions counted: no circles, and devices and families apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lcma

ROOT = Path(lcma.__file__).parent / "kernels"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if path != ROOT / "__init__.py"
}


def imports_of(name: str, path: Path) -> set[str]:
    """The modules of kernels that a module imports anywhere, but for annotations alone."""
    parts = name.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(package) + 1:
            base = package[: len(package) + 1 - node.level] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.add(whole if whole in MODULES else ".".join(base))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return {one for one in found if one in MODULES} - {name}


GRAPH = {name: imports_of(name, path) for name, path in MODULES.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which imports every other, over some way (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert "planning.strategy" in GRAPH["planning.planner"]
    assert "request" in GRAPH["planning.strategy"]


def test_no_module_imports_itself_over_others():
    assert circles(GRAPH) == []


@pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu"), ("dense", "causal"), ("causal", "dense")])
def test_devices_and_families_are_apart(one, other):
    crossing = {
        f"{name} -> {imported}"
        for name, several in GRAPH.items()
        for imported in several
        if name.split(".")[0] == one and imported.split(".")[0] == other
    }
    assert crossing == set()


def test_planning_and_codegen_know_no_device_and_no_family():
    above = {"cpu", "cuda", "dense", "causal", "torch", "api", "plans", "families", "tuning"}
    crossing = {
        f"{name} -> {imported}"
        for name, several in GRAPH.items()
        for imported in several
        if name.split(".")[0] in ("planning", "codegen", "request", "structure") and imported.split(".")[0] in above
    }
    assert crossing == set()
