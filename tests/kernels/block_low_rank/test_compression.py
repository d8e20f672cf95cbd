"""Compression of the linear layers of a model."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import lcma  # noqa: E402
from lcma.errors import PlanError  # noqa: E402
from lcma.kernels.block_low_rank import Blast, LowRank, Monarch  # noqa: E402
from lcma.kernels.torch.block_low_rank_layers import BlockLowRankLinear  # noqa: E402
from lcma.kernels.torch.compression import CompressConfig  # noqa: E402


class Conv1D(nn.Module):
    """A linear layer as Hugging Face's GPT-2 has it: the weight is (inputs, outputs)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight, self.bias = nn.Parameter(torch.randn(nx, nf) / nx**0.5), nn.Parameter(torch.randn(nf))

    def forward(self, x):
        return x @ self.weight + self.bias


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
    assert CompressConfig("low-rank", 0.5).structure(4096, 4096) == LowRank(4096, 4096, 1024)
    assert CompressConfig("monarch", 0.5).structure(4096, 4096) == Monarch(4096, 4096, 16, 16, 64)
    assert CompressConfig("blast", 0.5).structure(4096, 4096) == Blast(4096, 4096, 16, 16, 992)
    for kind in ("low-rank", "monarch", "blast"):
        structure = CompressConfig(kind, 0.3, 8).structure(64, 96)
        larger = type(structure)(*structure.sizes[: 2 if kind == "low-rank" else 4], structure.rank + 1)
        assert structure.parameters <= 0.3 * 64 * 96 < larger.parameters


def test_what_cannot_be_compressed_is_refused_and_nothing_is_lost():
    net = model()
    with torch.no_grad():
        net[3].weight[0, 0] = torch.nan
    with pytest.raises(PlanError, match="the weight of 3 holds NaN or infinity"):
        lcma.compress_(net, CompressConfig("low-rank"))
    assert not [module for module in net.modules() if isinstance(module, BlockLowRankLinear)]
    with pytest.raises(PlanError, match="no linear layer was taken"):
        lcma.compress_(net, CompressConfig("low-rank"), lambda *_: False)
    for arguments, message in (
        (("svd",), "kind 'svd' is not known"),
        (("blast", 1.0), "budget is a part"),
        (("blast", 0.5, 0), "must be at least 1"),
    ):
        with pytest.raises(PlanError, match=message):
            CompressConfig(*arguments)
    reports = lcma.compress_(nn.Sequential(nn.Linear(4, 4)), CompressConfig("low-rank", 0.1))
    assert "below rank one" in reports[0].skipped
