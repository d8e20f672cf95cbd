"""Run in a process of its own, with ARCH=80 or 89, by test_triton_kernels.py: kernels compiled for other GPUs.

What products launch there is recorded on tensors without data, compiled, and looked at for spills. Triton asks once a
process for what a launch needs, whatever the target: hence a process for each.
"""

import os
import re

import pytest
import torch
from triton.runtime.driver import driver

from lcma.kernels import Request
from lcma.kernels.codegen.modules import load
from lcma.kernels.cuda import stack
from lcma.kernels.cuda.int8 import multiply, packed_columns
from lcma.kernels.cuda.level import CudaMethod, cuda_level
from lcma.kernels.cuda.precompile import kernels_of
from lcma.kernels.cuda.precompile_worker import OfflineDriver

from ..cases import table
from ..gpu import H200, SCHEME, blank, candidate, program, resources

TWO = ("strassen", "strassen")

SPILLED = {80: 24, 89: 0}
"""Bytes of a thread that the masked merge of 23 products may spill: with these rows it takes all 255 registers."""

ARCH = int(os.environ["ARCH"])


@pytest.fixture(autouse=True)
def other_gpu():
    driver.set_active(OfflineDriver("cuda", ARCH, 32))


@pytest.fixture
def visible(monkeypatch):
    """The GPU as torch would show it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: divmod(ARCH, 10))
    stack.missing_accelerator.cache_clear()


def product(levels, sizes, dtype, method=CudaMethod.BATCHED):
    m, k, n = sizes
    a, b, out = (blank(1, *shape, dtype=dtype) for shape in ((m, k), (k, n), (m, n)))
    return lambda: cuda_level(program(*levels.split("/")), method).run(a, b, out)


def int8_product():
    a, b, out = (blank(*size, dtype="int8") for size in ((1000, 2000), (2000, 999), (1000, 999)))
    multiply(a, packed_columns(b), out.int())


def test_generated_kernels_do_not_spill(tmp_path):
    cases = table(__file__, "other_gpus")
    kernels = kernels_of([*(product(*case) for case in cases), int8_product])
    written = [kernel.name for kernel in kernels if not kernel.generated]
    assert written == ["multiply_int8"]  # checks_compiled.py compiles it
    assert len(kernels) > 2 * len(cases) + len(written)
    for kernel in kernels:
        if not kernel.generated:
            continue
        made = getattr(load(kernel.text), kernel.name).preload(kernel.asked)
        assert f".target sm_{ARCH}" in made.asm["ptx"]
        assert "cp.async.bulk" not in made.asm["ptx"]
        allowed = SPILLED[ARCH] if kernel.text.startswith('"""merge: 23 sources') else 0
        spilled = re.search(r"STACK:(\d+)", resources(made.asm["cubin"], tmp_path)).group(1)
        assert int(spilled) <= allowed, kernel.text[:80]


REASON = rf"tensor memory accelerator, which compute capability {ARCH // 10}\.{ARCH % 10} has not"


def test_a_stack_is_refused_and_falls_back_to_the_vendors_batch(visible):
    assert re.search(REASON, stack.missing_accelerator(torch.device("meta")))
    request = Request(4096, 4096, 4096, "bfloat16", device="cuda")
    assert re.search(REASON, SCHEME.can_run(candidate(*TWO, method="stack"), request, H200))
    a, b, out = (blank(4, 256, 256, dtype="bfloat16") for _ in range(3))
    assert not stack.multiply_stack(a, b, out)
    kernels = kernels_of([product("/".join(TWO), (1024, 2048, 1024), "float16", CudaMethod.STACK)])
    assert {kernel.name for kernel in kernels} == {"combine"}  # and no stack_gemm
