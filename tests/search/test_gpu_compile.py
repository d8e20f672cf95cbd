"""The kernels compile for compute capability 9.0 without a driver, in a process of their own."""

import subprocess
import sys

import pytest

CODE = """
import sys
from types import SimpleNamespace
from lcma.schemes_db import parse_target
from lcma.search.flipgraph.gpu.device import cuda_module
from lcma.search.flipgraph.gpu.kernel import make_kernel
from lcma.search.flipgraph.gpu.layout import WALKS, WalkerLayout
cuda = cuda_module()
from numba.cuda import dispatcher
from numba import types
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
words, wide = types.uint32[::1], types.int64
signature = (wide, words, words, words, types.int32[::1], words, types.int64[:, ::1], types.uint64[::1],
             types.int32[::1], types.int32[::1], types.uint64[::1], words, types.int64[::1], wide)
name, slots, walk = sys.argv[1], int(sys.argv[2]), WALKS[sys.argv[3]]
form = WalkerLayout.fitting(parse_target(name), slots, walk).form
ptx, _ = cuda.compile_ptx(make_kernel(form, walk.cost), signature, cc=(9, 0))
print(ptx)
"""

FORMS = [
    ("4x4x4", 64, "flip"),
    ("4x4x4", 64, "flip-zt"),
    ("5x5x5", 48, "flip-c3"),
    ("4x4x5", 48, "flip-z2"),
    ("4x4x4:tri-left", 48, "flip-half"),
    ("8x8x8", 512, "flip"),
]


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.slow] if form != FORMS[0] else []) for form in FORMS], ids=str
)
def test_kernels_compile_without_a_driver(gpu_toolchain, form):
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, form)], capture_output=True, text=True, timeout=240, check=False
    )
    if "libNVVM" in done.stderr or "nvvm" in done.stderr.lower().splitlines()[-1:]:
        pytest.skip("the toolchain is not here: libNVVM is missing; pip install 'numba-cuda[cu13]'")
    assert done.returncode == 0, done.stderr[-2000:]
    assert ".target sm_90" in done.stdout
    # The scan of a word: one sum, one minimum; and nothing of a walker in local memory.
    assert done.stdout.count("min.u16x2") == done.stdout.count("add.u16x2") >= 6 * 16
    assert ".local" not in done.stdout
