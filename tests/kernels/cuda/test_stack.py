"""The kernel for stacks of products without a GPU: interpreted on the CPU, compiled for sm_90, and planned."""

import numpy as np
import pytest

from lcma.kernels import Candidate, Machine
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.kernels.dense.given import GivenProgram
from lcma.kernels.plans.families import strategies
from lcma.kernels.request import Request
from lcma.schemes_db.resolve import resolve

pytest.importorskip("torch")


def test_a_stack_has_rates_of_its_own():
    model = CudaCostModel(h200())
    batched, stacked = (model.gemm("bfloat16", 4096, 4096, 4096, 49, mode) for mode in ("batched", "stack"))
    assert stacked < batched
    assert np.isnan(model.gemm("float64", 4096, 4096, 4096, 49, "stack"))


@pytest.mark.parametrize(
    ("sizes", "dtype", "reason"),
    [
        ((4096, 4096, 4096), "bfloat16", None),
        ((4096, 4096, 4096), "float32", "stacks are multiplied in bfloat16 and float16, not in float32"),
        ((4100, 4096, 4096), "float16", "blocks of 1032x1024 are no whole tiles of 128x64"),
    ],
)
def test_what_a_stack_refuses(sizes, dtype, reason):
    program = arrangements(levels_of([resolve("strassen")[0]] * 2, 1))[0][1]
    candidate = Candidate("dense", "scheme", GivenProgram("strassen/strassen", program), (("method", "stack"),))
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    request = Request(*sizes, dtype=dtype, device="cuda")
    assert strategies("cuda")["dense", "scheme"].can_run(candidate, request, machine) == reason
