"""Products that are added into C while they are worked: their order, how they are dealt out, and the kernel, no GPU."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lcma.kernels.codegen.accumulators import accumulator_order, columns_of
from lcma.kernels.codegen.maps import LinearMap
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.schemes_db.resolve import resolve

pytest.importorskip("torch")

from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.fused import schedule


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
