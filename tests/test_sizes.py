"""The size table of .ci/run: what it counts, and what it refuses."""

import importlib.util
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"


@pytest.fixture
def sizes():
    spec = importlib.util.spec_from_file_location("sizes", CI / "sizes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path):
    """A project of fourteen lines of Python; what is hidden, built or no Python counts for nothing."""
    files = {
        "alone.py": 1, "search/a.py": 2, "search/deep/b.py": 1, "tests/test_a.py": 1, "tests/search/deep/test_b.py": 5,
        ".ci/x.py": 4, ".venv/x.py": 9, "search/.hidden/x.py": 9, "docs/_build/x.py": 9, "search/notes.md": 9,
    }  # fmt: skip
    for name, lines in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n" * lines)
    return tmp_path


WITHIN = {'"."': 1, '".ci"': 4, "search": 3, "tests": 6, '"tests/search"': 5}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (WITHIN, []),
        ({**WITHIN, "search": 2}, ["search: 1 lines over its budget"]),
        ({**WITHIN, '"tests/search"': 4}, ["tests/search: 1 lines over its budget"]),
        ({key: value for key, value in WITHIN.items() if key != '"."'}, [".: a folder without a budget"]),
        ({**WITHIN, "gone": 7}, ["gone: a folder without a budget or a budget without a folder"]),
    ],
)
def test_a_folder_above_its_budget_fails_by_name(sizes, tree, capsys, budget, said):
    file = tree / "sizes.toml"
    file.write_text("[lines]\n" + "".join(f"{folder} = {lines}\n" for folder, lines in budget.items()))
    assert sizes.main(tree, file) == bool(said)
    printed = capsys.readouterr()
    faults = printed.err.strip().splitlines()
    assert len(faults) == len(said)
    assert all(fault.startswith(start) for fault, start in zip(faults, said, strict=True))
    assert ["search", "3"] in [row.split()[:2] for row in printed.out.splitlines()]


def test_every_folder_has_a_budget(sizes):
    budget = sizes.tomllib.loads((CI / "sizes.toml").read_text())["lines"]
    assert set(budget) == set(sizes.lines_by_folder(CI.parent))
