"""Products of float32 by float16 halves, without a GPU: interpreted, compiled for sm_90, and planned."""

import pytest

import lcma
from lcma.errors import PlanError
from lcma.kernels import Machine
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.planning.planner import decide
from lcma.kernels.plans.families import strategies
from lcma.kernels.precision import fields_of
from lcma.kernels.request import Request

torch = pytest.importorskip("torch")


def decision(dtype, size, strategy=None, **limits):
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    return decide(
        Request(size, size, size, **fields_of(dtype), device="cuda", **limits),
        machine,
        strategies("cuda"),
        strategy,
    )


def test_only_the_precision_asks_for_halves():
    chosen = decision("fp32-accurate", 8192)
    assert chosen.plan.candidate.strategy == "split"
    assert chosen.baseline.candidate.strategy == "vendor"
    assert chosen.gain > 2
    assert decision("float32", 8192).plan.candidate.strategy == "scheme"
    with pytest.raises(PlanError, match="halves are for the precision fp32-accurate"):
        decision("float32", 8192, "split")


def test_without_workspace_the_product_is_the_vendors():
    assert decision("fp32-accurate", 8192, max_workspace=1000).plan.candidate.strategy == "vendor"


def test_precision_is_checked():
    a = torch.ones(4, 4)
    assert torch.equal(lcma.matmul(a, a, precision="fp32-accurate"), a @ a)
    with pytest.raises(PlanError, match="must be fp32-accurate, fp8 or None, not 'fast'"):
        lcma.matmul(a, a, precision="fast")
    with pytest.raises(PlanError, match="is for float32, not for float64"):
        lcma.matmul(a.double(), a.double(), precision="fp32-accurate")
    with pytest.raises(PlanError, match="leave it out for arrays"):
        lcma.matmul(a.numpy(), a.numpy(), precision="fp32-accurate")


def test_the_dtype_is_of_dense_products_on_a_gpu():
    with pytest.raises(PlanError, match="precision fp32-accurate is of products of floats on a GPU; leave it out"):
        Request(8, 8, 8, precision="fp32-accurate")
