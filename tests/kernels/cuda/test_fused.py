"""Products that are added into C while they are worked: their order, how they are dealt out, and the kernel, no GPU."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from lcma.kernels.codegen.accumulators import accumulator_order, columns_of
from lcma.kernels.codegen.maps import LinearMap
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.schemes_db.resolve import resolve

pytest.importorskip("torch")

import torch

from lcma.errors import PlanError
from lcma.kernels import Candidate, Machine, Request, decision_for
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.fused import schedule
from lcma.kernels.cuda.h200 import h200
from lcma.kernels.cuda.level import Method, cuda_level
from lcma.kernels.dense.given import GivenProgram
from lcma.kernels.families import strategies


def merge_of(name):
    return flat_program(arrangements(levels_of([resolve(name)[0]], 1))[0][1]).merge


def worked(order, values):
    """The blocks of C by the steps of an order, and the most that were unfinished at once."""
    held, done, most = {}, {}, 0
    for step in order.steps:
        assert tuple(sorted(held)) == step.live
        weights = dict(step.column)
        pivot, weight = step.pivot, weights[step.pivot]
        others = [(block, factor) for block, factor in step.column if block != pivot]
        if step.begins:
            assert pivot in step.begins
            made = values[step.product]
            for block, factor in others:
                held[block] = held.get(block, Fraction(0)) + factor * made
            held[pivot] = weight * made
        else:
            for block, factor in others:
                held[block] -= factor / weight * held[pivot]
            held[pivot] += weight * values[step.product]
            for block, factor in others:
                held[block] += factor / weight * held[pivot]
        most = max(most, len(held))
        for block in step.finishes:
            done[block] = held.pop(block)
    assert not held
    return done, most


@pytest.mark.parametrize(("name", "peak"), [("strassen", 3), ("winograd", 4), ("2x2x3", 4), ("3x3x3", 9)])
def test_an_order_works_every_product_once(name, peak):
    merge = merge_of(name)
    order = accumulator_order(merge)
    assert sorted(step.product for step in order.steps) == list(range(merge.sources))
    values = [Fraction(int(x)) for x in np.random.default_rng(3).integers(-99, 99, merge.sources)]
    done, most = worked(order, values)
    wanted = [Fraction(0)] * len(merge.results)
    for value, column in zip(values, columns_of(merge), strict=True):
        for block, factor in column:
            wanted[block] += factor * value
    assert [done[i] for i in range(len(wanted))] == wanted
    assert most == order.peak
    assert order.peak <= peak


def test_factors_other_than_one_are_divided_out():
    merge = LinearMap(3, (), (((1, 0), (Fraction(1, 2), 1), (3, 2)), ((1, 0), (2, 1), (5, 2))))
    done, _ = worked(accumulator_order(merge), [Fraction(7), Fraction(11), Fraction(13)])
    assert done == {0: 7 + Fraction(11, 2) + 39, 1: 7 + 22 + 65}


@pytest.mark.parametrize(("groups", "programs"), [(1024, 132), (4096, 132), (256, 132), (133, 132), (9, 3), (264, 132)])
@pytest.mark.parametrize("aligned", [False, True])
def test_all_programs_have_the_same_work(groups, programs, aligned):
    """By the formulas of the kernel each product of each group is worked once, and nobody waits."""
    products = 7
    plan = schedule(groups, programs, True, aligned)
    if not plan.split:
        assert groups % programs == 0
        return
    units = (groups - plan.rounds * programs) * products
    worked = np.zeros((groups, products), int)
    ends = {}
    for program in range(programs):
        begin, end = program * units // programs, (program + 1) * units // programs
        clock = plan.rounds * products
        for turn in range(plan.rounds):
            worked[program + turn * programs] += 1
        base = plan.rounds * programs
        if end % products:
            worked[base + end // products, : end % products] += 1
            clock += end % products
            ends[program] = clock
        for group in range(-(-begin // products), end // products):
            worked[base + group] += 1
            clock += products
        if begin % products:
            assert clock >= ends[program - 1]  # done before it is asked for
            worked[base + begin // products, begin % products :] += 1
            clock += products - begin % products
        assert abs(clock - groups * products / programs) < 1
    assert (worked == 1).all()


@pytest.mark.slow
def test_the_interpreted_kernel_is_the_product(run_checks):
    pytest.importorskip("triton")
    run_checks("checks_fused_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.slow
def test_the_kernel_fits_sm_90(run_checks, tmp_path):
    pytest.importorskip("triton")
    run_checks("checks_fused_compiled.py", TRITON_CACHE_DIR=str(tmp_path))


def program_of(names):
    return arrangements(levels_of([resolve(name)[0] for name in names.split("/")], 1))[0][1]


@pytest.mark.parametrize("names", ["strassen", "2x2x3", "strassen/strassen", "2x2x3/winograd"])
@pytest.mark.parametrize(("lead_a", "lead_b"), [((1,), (1,)), ((3,), (3,)), ((3,), (1,)), ((1,), (3,))])
def test_a_fused_level_is_the_product(names, lead_a, lead_b):
    """By plain torch, the twin of the kernel: several items, shared operands, sums of B made before, pieces."""
    level = cuda_level(program_of(names), Method.FUSED)
    for m, k, n in ((64, 32, 96), (70, 50, 130)):
        a, b = torch.randn(*lead_a, m, k, dtype=torch.float64), torch.randn(*lead_b, k, n, dtype=torch.float64)
        for right in (b.half(), level.prepare(b.half())):
            for pieces in (1, 2):
                out = torch.full((max(*lead_a, *lead_b), m, n), torch.nan).half()
                level.run(a.half(), right, out, pieces)
                truth = a @ b
                assert (out.double() - truth).norm() <= 6e-3 * truth.norm()


def test_a_named_fused_plan_has_no_products_in_memory():
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    request = Request(8192, 8192, 8192, "bfloat16", device="cuda")
    plan = decision_for(request, machine=machine, strategy="scheme:fused").plan
    assert str(plan.candidate) == "scheme 2x2x2:7, fused"
    assert [stage.name.split()[0] for stage in plan.stages] == ["Combine", "Combine", "7"]
    assert plan.workspace == 2 * 7 * 4096 * 4096 * 2  # A~ and B~
    stack = decision_for(request, machine=machine, scheme="2x2x2:7", strategy="scheme:stack").plan
    assert stack.workspace == plan.workspace + 7 * 4096 * 4096 * 2
    larger = decision_for(replace(request, m=16384, k=16384, n=16384), machine=machine, strategy="scheme:fused").plan
    assert str(larger.candidate) == "scheme 2x2x2:7 * 2x2x2:7, fused"
    assert larger.stages[-1].name == "Combine H"
    odd = decision_for(replace(request, m=8200), machine=machine, strategy="scheme:fused").plan
    assert any(stage.name == "Copy C" for stage in odd.stages)  # tiles do not divide its blocks


@pytest.mark.parametrize(
    ("names", "dtype", "reason"),
    [
        ("strassen", "float32", "products are fused in bfloat16 and float16, not in float32"),
        ("4x4x4", "bfloat16", "accumulators, more than the 5"),
        ("strassen/strassen/strassen", "bfloat16", "programs of one or two levels"),
    ],
)
def test_what_fusing_refuses(names, dtype, reason):
    candidate = Candidate("dense", "scheme", GivenProgram(names, program_of(names)), (("method", "fused"),))
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    request = Request(8192, 8192, 8192, dtype, device="cuda")
    assert reason in strategies("cuda")["dense", "scheme"].can_run(candidate, request, machine)


def test_a_named_method_that_gains_nothing_says_so():
    machine = Machine("cuda", h200(), CudaCostModel(h200()))
    with pytest.raises(PlanError, match="nothing is predicted to be faster than the vendor's product"):
        decision_for(Request(4096, 4096, 4096, "bfloat16", device="cuda"), machine=machine, strategy="scheme:fused")
