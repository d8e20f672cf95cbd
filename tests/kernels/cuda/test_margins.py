"""Margins: the predicted gain that a scheme needs to be chosen on a GPU."""

import pytest

from lcma.kernels import Candidate, Machine, Plan, Profile, Request, Stage, strategies
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.planning.planner import gains
from lcma.kernels.precision import fields_of

NONE = Profile("none", "test")


def plan(seconds, dtype="float32", product=(1024, 1024, 1024), size=8192):
    request = Request(size, size, size, **fields_of(dtype), device="cuda")
    strategy = strategies("cuda")["dense", "vendor"]
    stages = Stage("Combine A", 0, 0, 0.0), Stage("products", 0, 0, seconds, product)
    machine = Machine("cuda", NONE, CudaCostModel(NONE))
    return Plan(request, Candidate("dense", "vendor"), strategy, machine, stages, 0)


@pytest.mark.parametrize(("dtype", "product", "enough", "too_much"), [
    ("float32", (1024, 1024, 1024), 0.97, 0.99), ("tf32", (1024, 1024, 1024), 0.97, 0.99),
    ("float32", (1024, 1024, 128), 0.92, 0.94), ("bfloat16", (1024, 1024, 1024), 0.89, 0.91),
    ("bfloat16", (1024, 1024, 128), 0.89, 0.91),
])  # fmt: skip
def test_less_sure_predictions_must_promise_more(dtype, product, enough, too_much):
    vendor = plan(1.0, dtype)
    assert gains(plan(enough, dtype, product), vendor)
    assert not gains(plan(too_much, dtype, product), vendor)


def test_what_is_not_predicted_gains_nothing():
    assert not gains(plan(None), plan(1.0))
    assert not gains(plan(0.5), plan(None))
