"""One name, one meaning: no two public classes of schemes, proofs, searches and kernels share a name."""

import ast
from collections import defaultdict
from pathlib import Path

import lcma

FLOORS = ("kernels", "schemes_db", "search", "verify")


def classes(source):
    """The names of the public classes of a module."""
    return [one.name for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name[0] != "_"]


def test_no_class_name_is_defined_twice():
    root, found = Path(lcma.__file__).parent, defaultdict(list)
    for path in (path for floor in FLOORS for path in (root / floor).rglob("*.py")):
        for name in classes(path.read_text()):
            found[name].append(str(path.relative_to(root)))
    assert len(found) > 300
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_public_classes_alone_are_counted():
    assert classes("class A: pass\nclass _B: pass\ndef f():\n    class C: pass\n") == ["A"]
