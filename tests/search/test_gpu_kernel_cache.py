"""Kernels on the disk: written by one process, taken back by another, and never taken from a damaged file."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

CODE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from lcma.schemes_db import parse_target
from lcma.search.flipgraph.gpu import kernel_cache
from lcma.search.flipgraph.gpu.device import cuda_module
from lcma.search.flipgraph.gpu.kernel import make_kernel
from lcma.search.flipgraph.gpu.layout import Layout
cuda_module()
from numba.cuda import codegen, dispatcher, types
# A card of compute capability 9.0 as far as the compiler asks; nothing is launched.
chip = SimpleNamespace(compute_capability=(9, 0), id=0)
dispatcher.get_current_device = lambda: chip
codegen.devices = SimpleNamespace(get_context=lambda: SimpleNamespace(device=chip))
kernel_cache._capability = lambda: (9, 0)
words, wide = types.uint32[::1], types.int64
signature = (wide, words, words, words, types.int32[::1], words, types.int64[:, ::1], types.uint64[::1],
             types.int32[::1], types.int32[::1], types.uint64[::1], words, types.int64[::1], wide)
form = Layout.fitting(parse_target("2x2x2"), 16).form
folder = Path(sys.argv[1])
cache = kernel_cache.KernelCache(form, "", folder)
assert cache.load_overload(signature, None) is None
kernel = dispatcher._Kernel(make_kernel(form, ""), signature)
cubin = kernel._codelibrary.get_cubin(cc=(9, 0))
cache.save_overload(signature, kernel)
again = kernel_cache.KernelCache(form, "", folder).load_overload(signature, None)
assert bytes(again._codelibrary.get_cubin(cc=(9, 0)).code) == bytes(cubin.code)
assert again.signature == kernel.signature
assert again.entry_name == kernel.entry_name
assert kernel_cache.KernelCache(form, "full", folder).load_overload(signature, None) is None
(path,) = folder.glob("*.npz")
path.write_bytes(path.read_bytes()[:1000])
assert cache.load_overload(signature, None) is None
print("all is well")
"""


def test_a_kernel_comes_back_from_the_disk(tmp_path):
    for package in ("numba_cuda", "nvidia.cu13"):
        try:
            present = find_spec(package)
        except ModuleNotFoundError:
            present = None
        if present is None:
            pytest.skip(f"the toolchain is not here: {package} is missing; pip install 'numba-cuda[cu13]'")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.strip() == "all is well", done.stderr[-2000:]


def test_the_code_of_kernels_has_one_hash(monkeypatch):
    from lcma.search.flipgraph.gpu import kernel_cache

    monkeypatch.setattr(kernel_cache, "version", lambda package: "1")
    kernel_cache.code_hash.cache_clear()
    first = kernel_cache.code_hash()
    monkeypatch.setattr(kernel_cache, "version", lambda package: "2")
    assert kernel_cache.code_hash() == first
    kernel_cache.code_hash.cache_clear()
    assert kernel_cache.code_hash() != first
    kernel_cache.code_hash.cache_clear()
