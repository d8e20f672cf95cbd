"""Planning: candidates, limits, reasons, hashes, and the workspace that is promised."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError, SchemeFormatError
from lcma.kernels import Pool, Profile, Request, decision_for, executor_for, plan_for
from lcma.kernels.cpu.cost_model import CALL_SECONDS, LEVEL_SECONDS
from lcma.kernels.cpu.machine import cpu_machine
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.kernels.planning.profile import GemmRate, unmeasured

from ..refusal import refuses


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["scheme:batched", "scheme:tasks", "scheme:loop"])
@pytest.mark.parametrize("kind", ["plain", "steps", "aliased", "batch"])
def test_the_workspace_is_what_was_promised_and_all_of_it_is_written(
    strassen, draw, holds, build_with, monkeypatch, levels, strategy, kind
):
    monkeypatch.setenv("LCMA_NUM_THREADS", "3")
    a, b = draw((45, 46), "float64"), draw((46, 46), "float64")
    out = None
    if kind == "steps":
        a = np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2]
    if kind == "aliased":
        a = draw((46, 46), "float64")
        out = b
    if kind == "batch":
        a = draw((3, 45, 46), "float64")
    copies = a.copy(), b.copy()
    pool = Pool(poison=True)
    chosen = plan_for(Request.of(a, b, out), strassen, levels, strategy=strategy)
    executor = build_with(chosen, pool)
    result = executor.run(a, b, out)
    assert pool.high_water == executor.workspace == chosen.workspace
    for i in np.ndindex(result.shape[:-2]):
        holds(result[i], strassen.target, copies[0][i], copies[1])


def test_flattened_levels_move_less_and_are_chosen(strassen):
    labels = [label for label, _ in arrangements(levels_of(strassen, 3))]
    assert labels == ["2x2x2:7 * 2x2x2:7 * 2x2x2:7", "2x2x2:7 * (2x2x2:7 2x2x2:7)", "(2x2x2:7 2x2x2:7) * 2x2x2:7"]
    chosen = decision_for(Request(1000, 1000, 1000), strassen, 2, machine=cpu_machine(profile=unmeasured(), threads=2))
    assert str(chosen.plan.candidate) == "scheme (2x2x2:7 2x2x2:7), batched"
    beaten = dict(chosen.refused)
    outer, loop = "scheme 2x2x2:7 * 2x2x2:7, batched", "scheme (2x2x2:7 2x2x2:7), loop"
    assert {outer, loop} <= set(beaten)
    assert "flops" in beaten[outer]
    # The library's product has no levels, and other families' products are not this one: they are no candidates.
    assert not any("vendor" in name or "mask" in reason for name, reason in chosen.refused)


def test_stages_add_up(strassen):
    none = cpu_machine(profile=unmeasured())
    chosen = plan_for(Request(64, 64, 64, "float64"), strassen, strategy="scheme:batched", machine=none)
    names = [stage.name for stage in chosen.stages]
    assert names == ["sums of A", "sums of B", "7 full products 32x32x32", "blocks of C"]
    assert chosen.stages[2].flops == 7 * 2 * 32**3
    # Two of the seven sums of each operand are blocks as they stand: 4 blocks read, 5 written.
    assert [stage.bytes // (32 * 32 * 8) for stage in chosen.stages] == [9, 9, 21, 11]
    assert chosen.stages[0].flops == 5 * 32 * 32
    assert chosen.seconds is None


def test_seconds_come_from_a_measured_profile(strassen):
    rates = (GemmRate("float32", 512, 512, 512, 1e9),)
    profile = Profile("mine", "test", gemm=rates, combine_rate=1e9, source="measured")
    machine = cpu_machine(profile=profile, threads=1)
    assert plan_for(Request(1000, 1000, 1000), strassen, 2, machine=machine).seconds > 0
    only = plan_for(Request(1000, 1000, 1000), strassen, 1, strategy="scheme:batched", machine=machine)
    assert only.seconds == sum(stage.seconds for stage in only.stages)
    # 500 x 500 is computed in 32 x 32 tiles of 16 x 16; a level and its seven calls cost the host's time.
    products, moved = 7 * 2 * 512 * 512 * 500, 4 * 500**2 * (9 + 9 + 11)
    assert only.seconds == pytest.approx((products + moved) / 1e9 + LEVEL_SECONDS + 7 * CALL_SECONDS)


def test_limits(strassen):
    free = plan_for(Request(256, 256, 256), strassen, 2, strategy="scheme:batched")
    limited = Request(256, 256, 256, max_workspace=free.workspace - 1)
    tight = decision_for(limited, strassen, 2, strategy="scheme:batched")
    assert tight.plan.workspace < free.workspace
    assert any("bytes of workspace, more than" in reason for _, reason in tight.refused)
    refuses("workspace", plan_for, Request(256, 256, 256, max_workspace=10), strassen)
    refuses("error", plan_for, Request(256, 256, 256, max_error=1e-12), strassen)
    assert plan_for(Request(256, 256, 256, "int64", max_error=1e-12), strassen)
    assert plan_for(Request(256, 256, 256, "float64", max_error=1e-12), strassen)


@pytest.mark.parametrize(
    "changes",
    [
        {"m": -1},
        {"dtype": "int8"},
        {"static": "C"},
        {"max_workspace": -1},
        {"max_error": 0},
        {"max_error": float("nan")},
    ],
)
def test_requests_that_make_no_sense(changes):
    with pytest.raises(PlanError):
        Request(**{"m": 1, "k": 1, "n": 1, **changes})


def test_a_plan_runs_its_own_request_only(strassen):
    executor = plan_for(Request(8, 8, 8, "float64"), strassen).build()
    refuses("plan again", executor.run, np.ones((8, 9)), np.ones((9, 8)))
    refuses("stored by", executor.run, np.ones((8, 8)).T[::-1], np.ones((8, 8)))


def test_the_executor_of_a_request_is_kept(strassen):
    same = Request(3, 1, 1, "int64")
    assert executor_for(same, strassen) is executor_for(same, strassen)


def test_equal_requests_have_equal_hashes_in_every_process():
    """Strings hash differently in every process: a hash that is kept must not travel."""
    there = "import pickle, sys, lcma; r = pickle.load(sys.stdin.buffer); " + (
        "print(hash(r) == hash(lcma.kernels.Request(3, 4, 5)) and {r: 1}[lcma.kernels.Request(3, 4, 5)])"
    )
    request = Request(3, 4, 5)
    assert hash(request) == hash(Request(3, 4, 5)) != hash(Request(3, 5, 4))
    ran = subprocess.run([sys.executable, "-c", there], input=pickle.dumps(request), capture_output=True, check=True)
    assert ran.stdout.split() == [b"1"]


def test_profiles_go_through_json():
    profile = Profile(
        "id", "hw", (("numpy", "2"),), (GemmRate("float32", 1, 2, 3, 4.0),), 1.0, None, (1, 2), None, "measured"
    )
    assert Profile.from_json(profile.to_json()) == profile
    assert profile.gemm_rate("float32", 100, 100, 100) == pytest.approx(4.0)
    assert profile.gemm_rate("float64", 1, 1, 1) is None
    assert unmeasured().source == "unmeasured"
    broken = {**json.loads(profile.to_json()), "source": "guessed"}
    for text in ("{}", "[]", "no", json.dumps(broken)):
        with pytest.raises(SchemeFormatError):
            Profile.from_json(text)


def test_a_pool_gives_buffers_back(strassen):
    pool = Pool(keep=1000)
    with pool.take(100) as first, pool.take(500) as second:
        assert first.array((4,), np.dtype("float64")).ctypes.data % 64 == 0
        second.array((3,), np.dtype("float32"))
        assert second.array((3,), np.dtype("float32")).ctypes.data % 64 == 0
    assert pool.high_water == 128 + 512
    with pool.take(2000):
        pass
    assert sum(map(len, pool._idle)) <= 1000
    pool.trim()
    assert not pool._idle


def test_a_plan_of_operands_runs_them():
    a, b = np.random.default_rng(0).standard_normal((2, 63, 63))
    plan = lcma.plan(a, b, "strassen", 1)
    assert plan.candidate.strategy == "scheme"
    out = np.empty_like(a)
    assert plan.run(a, b, out) is out
    np.testing.assert_allclose(out, a @ b, atol=1e-12)
    assert plan.executor is plan.executor
    refuses("plan again", plan.run, a[:5], b)
    torch = pytest.importorskip("torch")
    refuses(r"pass x\.numpy", lcma.plan, torch.ones(2, 2), torch.ones(2, 2))
