"""Kernels for GPUs: compiled without a driver, written by one process, taken back by another."""

import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from lcma.schemes_db import parse_target
from lcma.search.flipgraph.gpu import kernel_cache
from lcma.search.flipgraph.gpu.layout import WalkerLayout

BEGIN = """
import sys
from pathlib import Path
from types import SimpleNamespace
from lcma.schemes_db import parse_target
from lcma.search.flipgraph.gpu import kernel_cache, memory
from lcma.search.flipgraph.gpu.device import cuda_module
from lcma.search.flipgraph.gpu.kernel import make_kernel
from lcma.search.flipgraph.gpu.layout import WALKS, WalkerLayout
cuda = cuda_module()
"""

SIGNATURE = """
words, wide = types.uint32[::1], types.int64
signature = (wide, words, words, words, types.int32[::1], words, types.int64[:, ::1], types.uint64[::1],
             types.int32[::1], types.int32[::1], types.uint64[::1], words, types.int64[::1], wide)
"""

CHIP = f"""{BEGIN}
from numba.cuda import codegen, dispatcher, types
# A card of compute capability 9.0 as far as the compiler asks; nothing is launched.
chip = SimpleNamespace(compute_capability=(9, 0), id=0)
dispatcher.get_current_device = lambda: chip
codegen.devices = SimpleNamespace(get_context=lambda: SimpleNamespace(device=chip))
dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin()
kernel_cache._capability = lambda: (9, 0)
{SIGNATURE}
form = WalkerLayout.fitting(parse_target("2x2x2"), 16).form
"""

COMPILE = f"""{BEGIN}
from numba.cuda import dispatcher
from numba import types
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
{SIGNATURE}
name, slots, walk = sys.argv[1], int(sys.argv[2]), WALKS[sys.argv[3]]
form = WalkerLayout.fitting(parse_target(name), slots, walk).form
ptx, _ = cuda.compile_ptx(make_kernel(form, walk.cost), signature, cc=(9, 0))
print(ptx)
"""

LANES = f"""{BEGIN}
from numba import types
from numba.cuda import dispatcher
from lcma.search.groups.gpu import make_kernel as groups_kernel
from lcma.search.triples.gpu import make_kernel as triples_kernel
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
wide, word, byte, real = types.int64, types.uint64, types.int8, types.float64
groups = [(word, 3), (byte, 2), (wide, 2), (wide, 1), (word, 1), (wide, 1), (wide, 3), (wide, 1), (word, 1), (real, 1)]
triples = [(word, 2), (word, 2), (byte, 2), (word, 1), (wide, 1), (wide, 1), (real, 1), (real, 3), (real, 1)]
kernel, arrays = dict(groups=(groups_kernel(64), groups), triples=(triples_kernel(7, 8, 29), triples))[sys.argv[1]]
signature = tuple(types.Array(dtype, dimensions, "C") for dtype, dimensions in arrays)
print(cuda.compile_ptx(kernel, signature, cc=(9, 0))[0])
"""

FORMS = ["4x4x4 64 flip", "4x4x4 64 flip-zt", "5x5x5 48 flip-c3", "4x4x5 48 flip-z2", "4x4x4:tri-left 48 flip-half"]
FORMS += ["8x8x8 512 flip"]

CODE = """
folder = Path(sys.argv[1])
cache = kernel_cache.KernelCache(form, "", folder)
assert cache.load_overload(signature, None) is None
kernel = dispatcher._Kernel(make_kernel(form, ""), signature)
cubin = kernel._codelibrary.get_cubin()
cache.save_overload(signature, kernel)
again = kernel_cache.KernelCache(form, "", folder).load_overload(signature, None)
assert bytes(again._codelibrary.get_cubin().code) == bytes(cubin.code)
assert again.signature == kernel.signature
assert again.entry_name == kernel.entry_name
assert kernel_cache.KernelCache(form, "full", folder).load_overload(signature, None) is None
(path,) = folder.glob("*.npz")
path.write_bytes(path.read_bytes()[:1000])
assert cache.load_overload(signature, None) is None
print("all is well")
"""

PROCESS = """
memory.compiled_kernel(form, "").compile(signature)
print(dict(kernel_cache.KERNELS))
"""


@pytest.fixture
def gpu_toolchain():
    """The test is skipped where kernels of numba can't be compiled for GPUs."""
    for package in ("numba_cuda", "nvidia.cu13"):
        try:
            present = find_spec(package)
        except ModuleNotFoundError:
            present = None
        if present is None:
            pytest.skip(f"the toolchain is not here: {package} is missing; pip install 'numba-cuda[cu13]'")


def python(code, *arguments, **options):
    """A process that has run some code."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, **options)


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.slow] if form != FORMS[0] else []) for form in FORMS]
)
def test_kernels_compile_without_a_driver(gpu_toolchain, form):
    done = python(COMPILE, *form.split())
    if "libNVVM" in done.stderr or "nvvm" in done.stderr.lower().splitlines()[-1:]:
        pytest.skip("the toolchain is not here: libNVVM is missing; pip install 'numba-cuda[cu13]'")
    assert done.returncode == 0, done.stderr[-2000:]
    assert ".target sm_90" in done.stdout
    # The scan of a word: one sum, one minimum; and nothing of a walker in local memory.
    assert done.stdout.count("min.u16x2") == done.stdout.count("add.u16x2") >= 6 * 16
    assert ".local" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["groups", "triples"])
def test_kernels_of_warps_compile_without_a_driver(gpu_toolchain, name):
    done = python(LANES, name)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "vote.sync.ballot" in done.stdout
    # What a lane has of its own in triples, the values of forms that a candidate adds, is in local memory.
    assert (".local" in done.stdout) == (name == "triples")


def run(code, folder, home):
    """The output of a process that knows of a card."""
    done = python(CHIP + code, str(folder), env={**os.environ, "LCMA_HOME": str(home)})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_kernel_comes_back_from_the_disk(gpu_toolchain, tmp_path):
    assert run(CODE, tmp_path / "kernels", tmp_path) == "all is well"


def test_a_second_process_compiles_no_kernel(gpu_toolchain, tmp_path):
    assert run(PROCESS, tmp_path, tmp_path / "home") == "{'compiled': 1}"
    assert run(PROCESS, tmp_path, tmp_path / "home") == "{'from the disk': 1}"


class FakeLibrary:
    """The library of a kernel compiled for one card, as numba-cuda 0.30.4 has it: cubins by architecture."""

    nrt = False

    def __init__(self, cubins):
        self.cubins = cubins

    def _reduce_states(self):
        facts = dict.fromkeys(kernel_cache._LIBRARY, "walk") | {"lto": True, "nrt": self.nrt}
        return {**facts, "cubin_cache": self.cubins}


class FakeKernel:
    launch_config_sensitive = False

    def __init__(self, library):
        self.library = library

    def _reduce_states(self):
        return {**dict.fromkeys(kernel_cache._FACTS, None), "codelibrary": self.library}


@pytest.fixture
def compiler(monkeypatch):
    """Modules of a numba-cuda that rebuilds fakes."""
    libraries = SimpleNamespace(_rebuild=lambda cubin_cache, **_: FakeLibrary(cubin_cache))
    kernels = SimpleNamespace(_rebuild=lambda codelibrary, **_: FakeKernel(codelibrary))
    parts = {
        "codegen": {"CUDACodeLibrary": libraries},
        "dispatcher": {"_Kernel": kernels},
        "core.sigutils": {"normalize_signature": lambda signature: (signature, None)},
        "typing": {"signature": lambda *parts: parts},
        "types": {"void": None},
        "cudadrv.driver": {"ObjectCode": SimpleNamespace(from_cubin=lambda cubin, name: cubin)},
    }
    for name, members in parts.items():
        monkeypatch.setitem(sys.modules, f"numba.cuda.{name}", SimpleNamespace(**members))
    monkeypatch.setattr(kernel_cache, "version", lambda package: "0")
    monkeypatch.setattr(kernel_cache, "_capability", lambda: (9, 0))
    monkeypatch.setattr(kernel_cache, "KERNELS", Counter())
    kernel_cache.code_hash.cache_clear()
    yield
    kernel_cache.code_hash.cache_clear()


FORM = WalkerLayout.fitting(parse_target("2x2x2"), 16).form


def test_a_kernel_is_cached_under_the_architecture_that_its_compiler_names(compiler, tmp_path):
    kernel_cache.KernelCache(FORM, "", tmp_path).save_overload(
        ("int64",), FakeKernel(FakeLibrary({(9, 0, "a"): b"12"}))
    )
    again = kernel_cache.KernelCache(FORM, "", tmp_path).load_overload(("int64",), None)
    assert again.library.cubins == {(9, 0, "a"): b"12"}
    assert kernel_cache.KernelCache(FORM, "full", tmp_path).load_overload(("int64",), None) is None
    assert kernel_cache.KERNELS == {"compiled": 1, "from the disk": 1}


def test_a_kernel_that_cannot_be_cached_is_counted(compiler, tmp_path):
    library = FakeLibrary({(9, 0, "a"): b"12"})
    library.nrt = True
    cache = kernel_cache.KernelCache(FORM, "", tmp_path)
    cache.save_overload((), FakeKernel(library))
    cache.save_overload((), FakeKernel(FakeLibrary({})))
    assert kernel_cache.KERNELS == {"compiled and not kept": 2}
    assert cache.load_overload((), None) is None


def test_the_code_of_kernels_has_one_hash(monkeypatch):
    monkeypatch.setattr(kernel_cache, "version", lambda package: "1")
    kernel_cache.code_hash.cache_clear()
    first = kernel_cache.code_hash()
    monkeypatch.setattr(kernel_cache, "version", lambda package: "2")
    assert kernel_cache.code_hash() == first
    kernel_cache.code_hash.cache_clear()
    assert kernel_cache.code_hash() != first
    kernel_cache.code_hash.cache_clear()
