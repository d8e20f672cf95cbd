"""The committed faults are those of this code."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("seed_faults", Path(__file__).with_name("seed_faults.py"))


def test_every_fault_changes_its_file_and_names_its_tests(monkeypatch):
    script = importlib.util.module_from_spec(SPEC)
    monkeypatch.setitem(sys.modules, "seed_faults", script)  # its dataclass looks its module up
    SPEC.loader.exec_module(script)
    faults = script.read_faults()
    assert len(faults) == len({fault.file for fault in faults}) >= 30
    folders = Counter(fault.file.partition("/")[0] for fault in faults)
    assert min(folders[name] for name in ("schemes_db", "verify", "search", "kernels", "workbench")) >= 3
    for fault in faults:
        assert fault.seeded(script.ROOT) != (script.ROOT / fault.file).read_text(encoding="utf-8")
        assert fault.tests
        assert all((script.ROOT / test).is_file() for test in fault.tests)
