"""Predicted times, by which plans are ranked, can be built and are refused: each margin rests on a measurement."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from lcma.kernels import Candidate, Machine, Profile, Request, Stage, decision_for, strategies
from lcma.kernels.cpu.cost_model import CpuCostModel
from lcma.kernels.dense.chains import cost_table
from lcma.kernels.dense.pool import SchemePool
from lcma.kernels.planning.limits import CHECKED, MARGINS, exceeds_kept, margin, margins_text, memory_shortage, refusal
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.plans import families
from lcma.kernels.precision import fields_of
from lcma.kernels.request import structures_of
from lcma.schemes_db.shipped import shipped
from lcma.schemes_db.symmetry import Triangle

from ...refusal import refuses
from ..cases import each
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


NONE = Profile("none", "test")


def test_every_margin_says_what_it_rests_on_and_every_family_has_one():
    for entry in MARGINS:
        assert entry.device in families.DEVICES
        assert set(entry.families) <= {family for family, _ in strategies(entry.device)}
        assert 0.85 <= entry.part < 1
        (percent,) = re.findall(r"^(\d+)%", entry.text)
        assert int(percent) == round(100 * (1 - entry.part))
        assert len(entry.measured.split()) >= 4, entry
        assert any(word in entry.measured for word in ("lcma bench", "lcma time", "H200"))
    for device in families.DEVICES:
        for family, _ in strategies(device):
            request = Request(64, 64, 64, device=device)
            assert margin(family, request, []) < 1, (device, family)
            assert "%" in margins_text(device, family)


@each("device, dtype, sizes, product, part", __file__, "margins")
def test_the_strictest_margin_counts(device, dtype, sizes, product, part):
    request = Request(*sizes, **fields_of(dtype), device=device)
    assert margin("dense", request, [Stage("products", 1, 1, 1, (2048, 2048, product))]) == part
    assert margin("of another package", request, []) == 1.0


def test_limits_are_refused_with_their_numbers():
    machine = Machine("cpu", NONE, CpuCostModel(NONE), kept_bytes=1e6)
    assert memory_shortage(CHECKED, lambda: 100.0) == f"needs {CHECKED} bytes of workspace, and 100 are free"
    assert memory_shortage(CHECKED - 1, lambda: 0.0) is None
    assert memory_shortage(1 << 40, lambda: math.inf) is None
    assert exceeds_kept(2_000_000, machine) == "2.0 MB of workspace exceed the 1.0 MB kept between calls"
    assert exceeds_kept(1_000_000, machine) is None
    machine, vendor = Machine("cpu", NONE, CpuCostModel(NONE)), strategies("cpu")["dense", "vendor"]
    candidate = Candidate("dense", "vendor")

    def refused(**limits):
        return refusal(vendor, candidate, Request(100, 100, 100, **limits), machine, machine.free_bytes)

    assert refused() == (None, 0)
    # The classical product's own bound is k times the unit roundoff of float32.
    assert refused(max_error=100 * 2.0**-24) == (None, 0)
    reason, _ = refused(max_error=99 * 2.0**-24)
    assert reason.startswith("its error can reach 6e-06")
