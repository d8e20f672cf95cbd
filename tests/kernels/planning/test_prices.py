"""Predicted times: proposals are ranked by those of their plans, plans can be built, and the best chains are found."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lcma.kernels import Profile, Request, decision_for, strategies
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.dense.chains import cost_table
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.request import structures_of
from lcma.schemes_db.shipped import shipped
from lcma.schemes_db.symmetry import Triangle

from ...refusal import refuses
from ..golden import chosen as golden
from ..golden.differences import load
from ..gpu import H200

PLANS = load("plans.json")
SAMPLE = load("requests.json")[::16]


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row["id"])
def test_a_proposal_is_ranked_by_the_price_of_its_plan(row):
    with golden._environment():
        request, machine = golden._request(row), golden._machine(row)
        known = strategies(request.device)
        if "refused" in PLANS[row["id"]]:
            refuses("cannot be run", decision_for, request, machine=machine)
            return
        found = decision_for(request, machine=machine)
        for proposal in found.proposals[:: max(1, len(found.proposals) // 12)]:
            candidate = proposal.candidate
            strategy = known[candidate.family, candidate.strategy]
            if math.isnan(proposal.bound) or strategy.can_run(candidate, request, machine):
                continue
            price = sum(stage.seconds for stage in strategy.predict(candidate, request, machine))
            assert proposal.bound <= price
            assert proposal.bound == pytest.approx(price, rel=2e-9)
        if found.plan.seconds is not None:
            assert found.plan.seconds == sum(stage.seconds for stage in found.plan.stages)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_shared_operand_is_priced_once(device, flat):
    """One B for all matrices of A: on a GPU its sums are computed once; the products are as many."""
    machine = flat if device == "cpu" else H200
    every = Request(2048, 2048, 2048, "float32", (4,), (4,), device)
    shared = replace(every, batch_b=())
    vendor = [decision_for(x, strategy="vendor", machine=machine).plan.seconds for x in (shared, every)]
    assert vendor[0] <= vendor[1]

    def stages(request):
        found = decision_for(request, "strassen", strategy="scheme:batched", machine=machine)
        return {stage.name: (stage.bytes, stage.seconds) for stage in found.plan.stages}

    once, each = stages(shared), stages(every)
    assert once.pop("Combine B")[0] * (4 if device == "cuda" else 1) == each.pop("Combine B")[0]
    assert once == each


@pytest.mark.parametrize("triangle", [None, Triangle("out"), Triangle("left", True), Triangle("right")])
def test_plans_for_a_gpu_build_without_one(triangle):
    """Kernels are compiled when tensors come: a plan builds here, or says in one line why it cannot."""
    pytest.importorskip("torch")
    structured = {} if triangle is None else {"structures": structures_of(triangle)}
    request = Request(4096, 4096, 4096, "float32", device="cuda", **structured)
    found = decision_for(request)
    names = ("vendor", "scheme") if triangle is None else ("vendor", "strips", "kernel", "scheme")
    plans = [found.plan, *(decision_for(request, strategy=name).plan for name in names)]
    for plan in plans:
        assert plan.build().workspace == plan.workspace
        assert plan.seconds > 0


@pytest.mark.parametrize("size", [2048, 4096, 8192])
def test_more_schemes_never_make_the_best_chain_slower(size):
    """Large grids, in all their orientations, must not crowd out the small ones that a further level extends."""
    small = SchemePool.of([shipped("strassen").scheme])
    names = ("strassen", "5x5x7-r127", "5x5x6-r110", "4x5x8-r118", "4x5x7-r104", "4x6x7-r125", "4x5x6-r90")
    large = SchemePool.of([shipped(name).scheme for name in names])
    rates = [
        GemmRate("float32", n, n, n, rate, mode)
        for n, rate in ((128, 6e10), (256, 1.2e11), (512, 1.7e11), (1024, 2e11))
        for mode in ("whole", "tasks")
    ]
    profile = Profile("test", "test", gemm=tuple(rates), combine_rate=3e10, bandwidth=3e10, call_overhead=3e-5)
    model, request = CpuCostModel(profile, 2), Request(size, size, size)

    def best(pool):
        depths = cost_table(request, model, pool.costs)
        return min(np.nanmin(seconds) for depth in depths for _, seconds, _ in depth.methods)

    assert best(large) <= best(small) * (1 + 1e-9)
