"""The committed faults are those of this code."""

from collections import Counter

from . import seed_faults


def test_every_fault_changes_its_file_and_names_its_tests():
    faults = seed_faults.read_faults()
    assert len(faults) == len({fault.file for fault in faults}) >= 30
    folders = Counter(fault.file.partition("/")[0] for fault in faults)
    assert min(folders[name] for name in ("schemes_db", "verify", "search", "kernels", "workbench")) >= 3
    for fault in faults:
        assert fault.seeded(seed_faults.ROOT) != (seed_faults.ROOT / fault.file).read_text(encoding="utf-8")
        assert fault.tests
        assert all((seed_faults.ROOT / test).is_file() for test in fault.tests)
