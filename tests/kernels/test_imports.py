"""Imports among the modules of kernels, those inside functions counted, have no circles; lint-imports does the rest."""

import ast
from pathlib import Path

import networkx

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


def test_no_module_imports_itself_over_others():
    imports = {name: imports_of(name, path) for name, path in MODULES.items()}
    assert "planning.strategy" in imports["planning.planner"]
    assert "request" in imports["planning.strategy"]
    graph = networkx.from_dict_of_lists(imports, create_using=networkx.DiGraph)
    assert [group for group in networkx.strongly_connected_components(graph) if len(group) > 1] == []
