"""Products where nothing can be written: a full disk, a home that is no folder, no temporary directory."""

import os
import subprocess
import sys

import pytest

PRODUCTS = """
import sys
import numpy as np
import lcma
from lcma.kernels import Profile, api
from lcma.kernels.cpu import machine
from lcma.kernels.planning.profile import GemmRate

rates = (GemmRate("float64", 64, 64, 64, 1e8),)  # so slow that a scheme is chosen
machine.profile_for = lambda dtype: Profile("slow", "test", (), rates, 5e10, 5e10, add_rate=1e12)
api.SMALL = 0
if "full" in sys.argv:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # every write fails
a = np.random.default_rng(0).standard_normal((256, 256))
for scheme in ("strassen", "auto"):
    error = np.abs(lcma.matmul(a, a, scheme) - a @ a).max()
    assert error < 1e-10, error
assert lcma.kernels.plan_for(lcma.kernels.Request.of(a, a)).candidate.source is not None
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are Linux's")
@pytest.mark.parametrize(
    "case",
    ["full", *(pytest.param(x, marks=pytest.mark.slow) for x in ("full, and no temporary directory", "no folder"))],
)
def test_products_by_schemes_go_on(tmp_path, case):
    home = tmp_path / "home"
    if case == "no folder":
        (tmp_path / "file").write_text("")
        home = tmp_path / "file" / "home"
    environment = {**os.environ, "LCMA_HOME": str(home)}
    if "temporary" in case:
        environment["TMPDIR"] = str(tmp_path / "none")
    command = [sys.executable, "-W", "error", "-c", PRODUCTS, *case.replace(",", "").split()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
