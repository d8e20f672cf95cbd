"""Compression of the linear layers of a model."""

import contextlib
import time

import numpy as np
import pytest
import torch
from torch import nn

import lcma
from lcma.errors import PlanError, RankError
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.compression import CompressConfig, compress_weight
from lcma.kernels.torch import compression
from lcma.kernels.torch.block_low_rank_layers import BlockLowRankLinear

from ...refusal import refuses
from ..modules import Conv1D


def model():
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(16, 24), nn.GELU(), Conv1D(16, 24))
    return nn.Sequential(block, nn.Linear(16, 16, bias=False), nn.LayerNorm(16), nn.Linear(16, 7))


@pytest.mark.parametrize("kind", ["low-rank", "monarch", "blast"])
def test_the_layers_that_fit_are_replaced_and_every_one_is_reported(kind):
    net, seen = model(), []
    reports = lcma.compress_(net, CompressConfig(kind, 0.9, 4, 50), on_layer=seen.append)
    assert seen == reports
    assert [report.name for report in reports] == ["0.0", "0.2", "1", "3"]
    changed = [name for name, module in net.named_modules() if isinstance(module, BlockLowRankLinear)]
    assert changed == [report.name for report in reports if report.skipped is None]
    assert len(changed) == (4 if kind == "low-rank" else 3)
    for report in reports[: len(changed)]:
        assert report.bytes_after <= 0.9 * report.bytes_before
        assert 0 < report.error < 1
    if kind != "low-rank":
        assert "must divide the 16 inputs and the 7 outputs" in reports[3].skipped
    assert net(torch.randn(3, 16)).shape == (3, 7)


def test_the_nearest_pair_of_a_tensor_is_that_of_an_array():
    weight = np.random.default_rng(3).standard_normal((96, 64))
    structures = CompressConfig("kronecker", 0.6).structures(96, 64)
    assert len(structures) > 1
    seen = []
    theirs = compress_weight(weight, structures)
    mine = compress_weight(torch.from_numpy(weight), structures, on_event=seen.append)
    assert mine.structure == theirs.structure
    assert mine.error == pytest.approx(theirs.error, rel=1e-10)
    dense = [one.structure.multiply_wide([np.asarray(x) for x in one.factors], np.eye(64)) for one in (mine, theirs)]
    np.testing.assert_allclose(*dense, atol=1e-10)
    assert len(seen) == len(structures) + 1
    for text in ("(1,24,16,4)(4,16,16,1)", "(2,48,32,1)", "(1,96,8,1)(1,8,64,1)", "(1,48,8,2)(2,8,8,4)(8,8,8,1)"):
        with contextlib.suppress(PlanError):  # lists that are no pair as Monarch's are factorized as arrays
            chosen = CompressConfig("kronecker", patterns=text).structures(96, 64)
            errors = [compress_weight(one, chosen).error for one in (weight, torch.from_numpy(weight))]
            assert errors[0] == pytest.approx(errors[1], rel=1e-10)


def test_a_weight_that_has_the_structure_is_replaced_without_a_change():
    net = model()
    with torch.no_grad():
        for place in (net[0][0], net[0][2], net[1]):
            left, right = torch.randn(place.weight.shape[0], 3), torch.randn(3, place.weight.shape[1])
            place.weight.copy_(left @ right)
    x = torch.randn(5, 16)
    wanted = net(x)
    reports = lcma.compress_(net, CompressConfig("low-rank", 0.5), lambda name, _: name != "3")
    assert len(reports) == 3
    assert max(report.error for report in reports) < 1e-6
    assert type(net[3]) is nn.Linear
    torch.testing.assert_close(net(x), wanted, atol=1e-4, rtol=1e-4)


def test_ranks_are_the_largest_within_the_budget():
    for kind, wanted in (
        ("low-rank", LowRank(4096, 4096, 1024)),
        ("monarch", Monarch(4096, 4096, 16, 16, 64)),
        ("blast", Blast(4096, 4096, 16, 16, 992)),
    ):
        assert CompressConfig(kind, 0.5).structures(4096, 4096) == (wanted,)
    for kind in ("low-rank", "monarch", "blast"):
        (structure,) = CompressConfig(kind, 0.3, 8).structures(64, 96)
        larger = type(structure)(*structure.sizes[: 2 if kind == "low-rank" else 4], structure.rank + 1)
        assert structure.parameters <= 0.3 * 64 * 96 < larger.parameters


def test_what_cannot_be_compressed_is_refused_and_nothing_is_lost():
    net = model()
    with torch.no_grad():
        net[3].weight[0, 0] = torch.nan
    refuses("the weight of 3 holds NaN or infinity", lcma.compress_, net, CompressConfig("low-rank"))
    assert not [module for module in net.modules() if isinstance(module, BlockLowRankLinear)]
    refuses("no linear layer was taken", lcma.compress_, net, CompressConfig("low-rank"), lambda *_: False)
    reports = lcma.compress_(nn.Sequential(nn.Linear(4, 4)), CompressConfig("low-rank", 0.1))
    assert "below rank one" in reports[0].skipped


def test_kronecker_layers_take_the_nearest_pair_or_a_named_list():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.Linear(128, 64))
    configs = {"0": CompressConfig("kronecker", 0.5), "1": CompressConfig("kronecker", patterns="(1,16,8,4)(4,8,32,1)")}
    reports = lcma.compress_(net, configs)
    assert [type(layer) for layer in net] == [lcma.KSLinear, lcma.KSLinear]
    assert reports[1].structure == "Kronecker-sparse (1,16,8,4)(4,8,32,1)"
    assert reports[0].bytes_after <= 0.5 * reports[0].bytes_before
    assert all(0 < report.error < 1 for report in reports)
    other = lcma.compress_(
        nn.Sequential(nn.Linear(64, 100)), CompressConfig("kronecker", patterns="(1,16,8,4)(4,8,32,1)")
    )
    assert "the patterns are of 64 x 128" in other[0].skipped


def test_a_rank_of_its_own_is_taken_and_one_too_large_is_refused_first():
    net = model()
    with pytest.raises(RankError, match="3: rank 8 exceeds 7") as caught:
        lcma.compress_(net, CompressConfig("low-rank", rank=8))
    assert caught.value.exit_code == 2
    assert not [module for module in net.modules() if isinstance(module, BlockLowRankLinear)]
    reports = lcma.compress_(net, {"0.*": CompressConfig("low-rank", rank=8), "1": None})
    assert [report.structure for report in reports] == ["low-rank 24x16, r 8", "low-rank 16x24, r 8"]


def test_outputs_of_a_calibration_batch_are_compared_and_speed_is_predicted():
    net, x = model(), torch.randn(4, 3, 16)
    with torch.no_grad():
        before = net[0][0](x) - net[0][0].bias
        reports = lcma.compress_(net, CompressConfig("low-rank", 0.5), calibration=x, batch=512)
        after = net[0][0](x) - net[0][0].bias
    assert reports[0].output_error == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-4)
    assert all(report.output_error > 0 and report.predicted > 0 for report in reports)


def test_reports_have_measured_speeds_at_the_rows_that_are_named(monkeypatch):
    clock, seen = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def takes(seconds):
        def after(module, args, result):
            clock[0] += seconds * len(args[0])
            seen.append(len(args[0]))

        return after

    dense, structured = nn.Linear(8, 8), lcma.LowRankLinear(8, 8, 2)
    dense.register_forward_hook(takes(2.0))
    structured.register_forward_hook(takes(8.0))
    assert compression.measured_ratios(dense, structured, (1, 5)) == ((1, 0.25), (5, 0.25))
    assert set(seen) == {1, 5}
    monkeypatch.undo()
    first, *_ = reports = lcma.compress_(model(), CompressConfig("low-rank", 0.9), rows=(1, 3))
    assert all([rows for rows, _ in one.at_rows] == [1, 3] and min(one.at_rows)[1] > 0 for one in reports)
    assert "x at 1 rows" in repr(first)
    with pytest.raises(lcma.LcmaError, match="rows must be at least 1"):
        lcma.compress_(model(), CompressConfig("low-rank", 0.9), rows=(0,))


def test_a_compression_goes_on_from_its_folder(tmp_path):
    config, events = CompressConfig("blast", 0.9, 4, 30), []
    lcma.compress_(first := model(), config, folder=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 3
    lcma.compress_(second := model(), config, folder=tmp_path, on_event=events.append)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    assert not [text for text in events if "step" in text]
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(("kind", "rank"), [("low-rank", 816), ("blast", 784), ("monarch", 51)])
def test_large_ranks_of_a_budget_are_aligned(kind, rank):
    (structure,) = CompressConfig(kind, 0.5).structures(8192, 2048)
    assert structure.rank == rank
    assert structure.parameters <= 0.5 * 8192 * 2048
    (small,) = CompressConfig("low-rank", 0.5).structures(100, 100)
    assert small.rank == 25
