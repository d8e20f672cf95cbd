"""Check that the fast suite finds the faults of faults.toml: `python tests/faults/seed_faults.py [FILE...]`.

One fault at a time is made in a copy of the project, and its tests run there; it is found if one of them fails or
crashes. First they must all pass without faults. FILEs choose the faults of some files. Exits 1 if one is not found.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALL_PASS, SOME_FAIL = 0, 1
"""Exit codes of pytest."""
LEFT_OUT = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__", "*.egg-info")


@dataclass(frozen=True)
class Fault:
    """In `file` the text `old` becomes `new`; one of `tests` must fail then."""

    file: str
    old: str
    new: str
    tests: list[str]

    def seeded(self, root: Path) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: the file does not contain `old` exactly once.
        """
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} contains {self.old!r} {text.count(self.old)} times: mend faults.toml")
        return text.replace(self.old, self.new)


def read_faults() -> list[Fault]:
    """The committed faults."""
    text = Path(__file__).with_name("faults.toml").read_text(encoding="utf-8")
    return [Fault(**row) for row in tomllib.loads(text)["fault"]]


def run_tests(root: Path, tests: list[str]) -> int:
    """Run tests of a copy of the project; return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    path = os.pathsep.join([str(root.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": path}, capture_output=True).returncode


def main(files: list[str]) -> int:
    """Seed the faults of some files, by default of all."""
    faults = [fault for fault in read_faults() if not files or fault.file in files]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "lcma")
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)
        if run_tests(root, sorted({test for fault in faults for test in fault.tests})) != ALL_PASS:
            print("the tests fail without a fault", file=sys.stderr)
            return 1
        missed = 0
        for fault in faults:
            plain, began = (root / fault.file).read_text(encoding="utf-8"), time.monotonic()
            (root / fault.file).write_text(fault.seeded(root), encoding="utf-8")
            code = run_tests(root, fault.tests)
            (root / fault.file).write_text(plain, encoding="utf-8")
            is_found = code == SOME_FAIL or code < 0  # by a signal: compiled code wrote beyond its arrays
            missed += not is_found
            verdict = "found" if is_found else "NOT FOUND" if code == ALL_PASS else f"pytest ended with {code}"
            print(f"{fault.file:40} {verdict:10} {time.monotonic() - began:5.0f} s", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} faults found")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
