"""Run in a process of its own by test_triton_kernels.py: kernels compiled ahead for sm_90, without a GPU."""

import sys
import threading
from functools import partial

import pytest
import torch
from triton import knobs
from triton.runtime.driver import driver

import lcma
from lcma.kernels import Request
from lcma.kernels.cuda import bench, precompile
from lcma.kernels.cuda.level import CudaMethod
from lcma.kernels.cuda.precompile import Kernel, compile_ahead, kernels_of
from lcma.kernels.cuda.precompile_worker import OfflineDriver
from lcma.kernels.planning.planner import plan_candidate
from lcma.kernels.structured import decode
from lcma.kernels.structured.block_low_rank import LowRank

from ...refusal import refuses
from ..gpu import H200, SCHEME, blank, candidate


@pytest.fixture(autouse=True)
def hopper():
    driver.set_active(OfflineDriver("cuda", 90, 32))


@pytest.fixture
def compilations():
    """Return whether each kernel that this process asked Triton for was in the cache."""
    found = []
    knobs.compilation.listener = lambda *, cache_hit, **_: found.append(cache_hit)
    yield found
    knobs.compilation.listener = None


def product(sizes, dtype, method=CudaMethod.BATCHED, levels=("strassen",)):
    """A call on tensors without data, as a plan would make it."""
    m, k, n = sizes
    request = Request(m, k, n, dtype, device="cuda")
    executor = SCHEME.build(candidate(*levels, method=method.value), request, H200)
    a, b = blank(m, k, dtype=dtype), blank(k, n, dtype=dtype)
    return lambda: executor.run(a, b)


def test_a_named_scheme_says_what_is_compiled_and_its_launches_find_it(compilations, monkeypatch, capsys):
    request = Request(256, 384, 128, "float64", device="cuda")
    plan = plan_candidate(SCHEME, candidate("strassen"), request, H200)
    bench.compile_now(plan)
    assert capsys.readouterr().err == ""  # three small kernels are left to their launches
    monkeypatch.setattr(bench, "QUICK", 0.01)
    bench.compile_now(plan)
    said = capsys.readouterr().err
    assert said.startswith("lcma: compiling 3 kernels of scheme strassen, batched, about 0 s")
    bench.compile_now(plan)
    assert capsys.readouterr().err == ""
    assert compilations == []
    product((256, 384, 128), "float64")()
    assert compilations == [True] * 3


def test_launches_find_what_was_compiled_ahead(compilations):
    call, seen = product((256, 512, 128), "float32"), []
    done = compile_ahead([call, call], lambda *counts: seen.append(counts), processes=2)
    assert (done.kernels, done.failed) == (3, ())
    assert [number for number, _ in seen] == [1, 2, 3]
    assert seen[-1] == (3, 3)
    assert compile_ahead([call]).kernels == 0
    assert compilations == []
    call()
    assert compilations == [True] * 3
    # Other kernels: columns that are no multiple of 16 bytes are read more narrowly.
    assert len(kernels_of([product((256, 512, 129), "float32"), product((255, 512, 128), "float32")])) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_second_shape_needs_no_other_kernel(dtype, tmp_path, monkeypatch):
    """One compiled form for all shapes: edges, batches and strides are arguments."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def of(sizes):
        return product(sizes, dtype, levels=("2x2x3",))

    first = kernels_of([of((4096, 4096, 4096))])
    assert len(first) == 3
    for sizes in ((4096, 4096, 4608), (4100, 5000, 6144), (2000, 1 << 20, 3072), (4099, 8192, 8184)):
        assert kernels_of([of((4096, 4096, 4096)), of(sizes)]) == first


def test_products_of_many_shapes_are_compiled_together(monkeypatch, compilations):
    from lcma.kernels.torch import dispatch
    from lcma.kernels.torch import ops as products

    refuses("no GPU", products.compile_products, [])
    for module in (products, dispatch):
        monkeypatch.setattr(module, "require_device", lambda index=None: None)
    monkeypatch.setattr(dispatch, "index_of", lambda device: 0)
    x, *weights = (blank(rows, 96, dtype="float16") for rows in (512, 128, 150))
    pairs = [(x, weight.t()) for weight in weights]
    # Sums of A and B are shared, the second merge has masked edges.
    assert 3 < products.compile_products(pairs, ["strassen"]).kernels < 6
    for a, b in pairs:
        dispatch.run(dispatch.ProductRecipe(("strassen",)), a, b)
    assert compilations
    assert all(compilations)
    refuses("tensors are on cpu and meta", products.compile_products, [(torch.ones(2, 2), x)])


def test_descriptors_of_the_accelerator_are_part_of_what_is_asked(compilations):
    call = product((256, 128, 512), "bfloat16", CudaMethod.STACK)
    names = [kernel.name for kernel in kernels_of([call])]
    assert names == ["combine", "combine", "stack_gemm", "combine"]
    assert compile_ahead([call]).failed == ()
    assert kernels_of([call]) == []
    call()
    assert compilations == [True] * 4


def test_numbers_in_tuples_are_part_of_what_is_asked(compilations, monkeypatch):
    structure = LowRank(512, 512, 64)
    monkeypatch.setattr(decode, "programs_of", lambda device: 132)
    half = partial(blank, dtype="bfloat16")

    def call():
        decode._launches.cache_clear()
        decode.multiply_few(structure, [half(*shape) for shape in structure.factor_shapes], half(512, 1), half(512, 1))

    assert compile_ahead([call]).failed == ()
    call()
    assert compilations == [True]


def test_what_cannot_be_planned_or_compiled_is_left_to_its_launch(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {"deadly": "...long", "json": "..."}  # of kernels, compiled by one process, the longest first
    kernels = [Kernel(module, False, text, "nothing", "{}") for module, text in (*texts.items(), ("deadly", ""))]
    monkeypatch.setattr(precompile, "_record_kernels", lambda calls, keep: list(map(keep, kernels)))
    with pytest.warns(UserWarning, match="3 kernels are left to their launches; deadly.nothing: the compiler ended"):
        failed = compile_ahead([], processes=1).failed
    assert failed[0] == failed[2] == "deadly.nothing: the compiler ended with 9"
    assert failed[1].startswith("json.nothing: AttributeError")
    assert "deadly" not in sys.modules


def test_a_broken_rehearsal_ends_the_compilers():
    def broken():
        product((96, 96, 96), "float32")()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_ahead([broken], processes=2)
    assert compile_ahead([lambda: lcma.resolve("no such scheme")]).kernels == 0


def test_other_threads_and_launches_are_not_recorded(compilations):
    mine, other = product((64, 64, 64), "float64"), product((32, 32, 32), "float64", levels=("3x3x2",))

    def both():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        mine()

    kernels = kernels_of([both])
    assert len(kernels) == len(compilations) == 3
