"""The kernel for stacks of products without a GPU: interpreted on the CPU, compiled for sm_90, and planned."""

from __future__ import annotations

import pytest

from lcma.kernels.cuda.cost_model import Rates
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.cuda.level import Method
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.kernels.families import CUDA as STRATEGIES
from lcma.kernels.request import Request
from lcma.schemes_db.resolve import resolve

pytest.importorskip("torch")


@pytest.mark.slow
def test_the_interpreted_kernel_is_the_product(run_checks):
    pytest.importorskip("triton")
    run_checks("checks_stack_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernel_fits_sm_90(run_checks, tmp_path):
    pytest.importorskip("triton")
    run_checks("checks_stack_compiled.py", TRITON_CACHE_DIR=str(tmp_path))


def test_a_stack_has_rates_of_its_own():
    rates = Rates(h200(), "bfloat16")
    batched, stacked = (rates.seconds((4096, 4096, 4096), 49, way) for way in (Method.BATCHED, Method.STACK))
    assert stacked < batched
    assert Rates(h200(), "float64").seconds((4096, 4096, 4096), 49, Method.STACK) is None


@pytest.mark.parametrize(
    ("sizes", "dtype", "reason"),
    [
        ((4096, 4096, 4096), "bfloat16", None),
        ((4096, 4096, 4096), "float32", "stacks are worked in bfloat16 and float16, not in float32"),
        ((4100, 4096, 4096), "float16", "blocks of 1032x1024 are no whole tiles of 128x64"),
    ],
)
def test_what_a_stack_refuses(sizes, dtype, reason):
    strategy = next(one for one in STRATEGIES if one.name == "gpu-stack")
    program = arrangements(levels_of([resolve("strassen")[0]] * 2, 1))[0][1]
    assert strategy.can_run(program, Request(*sizes, dtype=dtype, device="cuda"), h200()) == reason
