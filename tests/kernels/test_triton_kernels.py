"""Triton's kernels in processes of their own: interpreted, their results are right; compiled, they fit the GPU."""

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKS = [str(path.relative_to(HERE)) for path in sorted(HERE.rglob("checks_*.py"))]

pytestmark = pytest.mark.skipif(None in map(find_spec, ("torch", "triton")), reason="torch or triton is not here")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHECKS if name.endswith("interpreted.py")])
def test_interpreted_kernels_are_right(run_checks, name):
    run_checks(name, TRITON_INTERPRET="1")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "arch"), [
    ("combinations", "90"), ("products", "90"), ("structured", "90"), ("int8", "89"), ("int8", "80"),
])  # fmt: skip
def test_compiled_kernels_fit(run_checks, tmp_path, family, arch):
    run_checks("checks_compiled.py", TRITON_CACHE_DIR=str(tmp_path), FAMILY=family, ARCH=arch)


@pytest.mark.slow
def test_kernels_are_compiled_ahead(run_checks, tmp_path):
    run_checks("cuda/checks_precompile.py", TRITON_CACHE_DIR=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["80", "89"])
def test_kernels_are_compiled_for_older_gpus_or_refused(run_checks, tmp_path, arch):
    run_checks("cuda/checks_other_gpus.py", TRITON_CACHE_DIR=str(tmp_path), ARCH=arch)
