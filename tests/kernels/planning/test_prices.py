"""One price: what a proposal is ranked by is what its plan states; and every plan that is made can be built."""

import math
from dataclasses import replace

import pytest

from lcma.kernels import Request, decision_for, strategies
from lcma.kernels.request import structures_of
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
