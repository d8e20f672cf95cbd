"""Print the lines of Python of every folder beside the budget in sizes.toml, and exit 1 where one has more.

Every line of a .py file counts: blank lines, comments and docstrings too. A folder is one at the root, or one in
tests/; "." is the root's own files.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

BUILT = {"_build", "build", "dist", "generated"}


def lines_by_folder(root: Path) -> Counter[str]:
    """Count the lines of the .py files below `root`, hidden folders (but .ci) and built files left out."""
    lines: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        folders = path.relative_to(root).parts[:-1]
        if any(folder in BUILT or (folder.startswith(".") and folder != ".ci") for folder in folders):
            continue
        count = len(path.read_bytes().splitlines())
        lines[folders[0] if folders else "."] += count
        if folders[:1] == ("tests",) and len(folders) > 1:
            lines["/".join(folders[:2])] += count
    return lines


def main(root: Path, budget_file: Path) -> int:
    """Print the table; return 1 if a folder exceeds its budget or has none, or a budget has no folder."""
    lines, budget = lines_by_folder(root), tomllib.loads(budget_file.read_text())["lines"]
    faults = []
    print(f"{'folder':18}{'lines':>8}{'budget':>8}{'left':>7}")
    for folder in sorted(lines | budget):
        count, most = lines[folder], budget.get(folder, 0)
        print(f"{folder:18}{count:8}{most:8}{most - count:7}")
        if folder not in budget or folder not in lines:
            faults.append(f"{folder}: a folder without a budget or a budget without a folder; mend {budget_file.name}")
        elif count > most:
            faults.append(f"{folder}: {count - most} lines over its budget; remove some or raise {budget_file.name}")
    print(*faults, sep="\n", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.exit(main(here.parent, here / "sizes.toml"))
