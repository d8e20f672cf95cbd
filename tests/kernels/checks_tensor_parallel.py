"""Checks of products of DTensors on two processes, which checks_sharded.py starts."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import lcma
from lcma.kernels.torch.placements import shown


def mlp(features, hidden):
    """A block of FastLinear layers, whose scheme is run for any size."""
    up = lcma.FastLinear(features, hidden, scheme="strassen")
    down = lcma.FastLinear(hidden, features, scheme="strassen")
    return nn.Sequential(up, nn.GELU(), down)


@contextmanager
def collectives(**wanted):
    """Check that these collectives, by name and number, are issued, and no others."""
    with CommDebugMode() as mode:
        yield
    found = {str(op).rpartition(".")[2].rstrip("')>"): count for op, count in mode.get_comm_counts().items() if count}
    assert found == wanted, found


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def check_steps(layer, reference, given, x, forward, backward, seen=lambda y: y):
    """Compare outputs, gradients and three steps of training with the layer on one process, and count collectives."""
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (layer, reference)]
    for _ in range(3):
        given, x = given.detach().requires_grad_(), x.detach().requires_grad_()
        with collectives(**forward):
            y = layer(given)
        wanted = reference(x)
        torch.testing.assert_close(seen(whole(y)), seen(wanted))
        loss = y.square().sum() / wanted.numel()
        with collectives(**backward):
            loss.backward()
        wanted.square().mean().backward()
        torch.testing.assert_close(seen(whole(given.grad)), seen(x.grad))
        for (name, ours), theirs in zip(layer.named_parameters(), reference.parameters(), strict=True):
            assert ours.grad.device_mesh == ours.device_mesh
            torch.testing.assert_close(whole(ours.grad), theirs.grad, msg=lambda m, n=name: n + m)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for ours, theirs in zip(layer.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(whole(ours), theirs)


def check_styles(mesh):
    """One sum in each direction under the styles of torch; a gather and a scatter with sequence-parallel ends."""
    x = torch.randn(2, 4, 16)
    for hidden in (12, 7, 1):  # whole, uneven, none on the second process
        reference = mlp(16, hidden)
        layer = copy.deepcopy(reference)
        up = ColwiseParallel(use_local_output=hidden % 2 == 0)  # a local tensor does not tell that parts are uneven
        parallelize_module(layer, mesh, {"0": up, "2": RowwiseParallel()})
        check_steps(layer, reference, x, x, {"all_reduce": 1}, {"all_reduce": 1})
    reference = mlp(16, 12)
    layer = copy.deepcopy(reference)
    plan = {
        "0": ColwiseParallel(input_layouts=Shard(1)),
        "2": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    parallelize_module(layer, mesh, plan)
    part = distribute_tensor(x, mesh, [Shard(1)])
    moved = {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 1}
    check_steps(layer, reference, part, x, moved, moved)
    with torch.inference_mode(), collectives(**moved):
        y = layer(part)
    torch.testing.assert_close(y.full_tensor(), reference(x))


def check_data_parallel(mesh):
    """Inputs sharded along a batch dimension, weights replicated: nothing is communicated."""
    x = torch.randn(4, 6, 16)
    for dim in (0, 1):
        reference = mlp(16, 12)
        layer = distribute_module(copy.deepcopy(reference), mesh)
        check_steps(layer, reference, distribute_tensor(x, mesh, [Shard(dim)]), x, {}, {})
        assert [one.placements for one in layer.parameters()] == [(Replicate(),)] * 4
    vector = torch.randn(16)
    row = distribute_tensor(vector, mesh, [Replicate()])
    torch.testing.assert_close(whole(layer(row)), reference(vector))


STRUCTURED = {
    "kronecker": lambda: lcma.KSLinear(lcma.kronecker.monarch(12, 16, 4)),
    "batch last": lambda: lcma.KSLinear((2, 6, 8, 1), layout="bsl"),
    "monarch": lambda: lcma.MonarchLinear(16, 12, 4, 2),
    "blast": lambda: lcma.BlastLinear(16, 12, 4, 3),
    "low-rank": lambda: lcma.LowRankLinear(16, 12, 4),
}


def check_structured(mesh):
    """Structured layers with replicated factors, for inputs sharded along batch dimensions."""
    for name, make in STRUCTURED.items():
        reference = make()
        layer = distribute_module(copy.deepcopy(reference), mesh)
        last = name == "batch last"
        for shape, dim in (((3, 6), 0), ((2, 5), 1)):
            x = torch.randn(16, *shape) if last else torch.randn(*shape, 16)
            given = distribute_tensor(x, mesh, [Shard(dim + last)])
            check_steps(layer, reference, given, x, {}, {})
        row = torch.randn(16, 1) if last else torch.randn(1, 16)  # no row for the second process
        torch.testing.assert_close(whole(layer(distribute_tensor(row, mesh, [Shard(int(last))]))), reference(row))
        features = distribute_tensor(x, mesh, [Shard(0 if last else 2)])
        with pytest.raises(lcma.PlanError, match=r"x\.redistribute\(placements=\[Replicate\(\)\]\)") as refused:
            layer(features)
        assert shown(features.placements) in str(refused.value)


def check_low_rank(mesh):
    """LowRankLinear with sharded factors: by columns, by rows, and along the rank."""
    x = torch.randn(2, 3, 16)
    for of_x, of_u, of_v, of_bias in (
        (Replicate(), Shard(0), Replicate(), Shard(0)),
        (Shard(2), Replicate(), Shard(1), Replicate()),
        (Replicate(), Shard(1), Shard(0), Replicate()),
    ):
        reference = lcma.LowRankLinear(16, 12, 5)
        layer = copy.deepcopy(reference)
        for name, placement in (("U", of_u), ("V", of_v), ("bias", of_bias)):
            setattr(layer, name, nn.Parameter(distribute_tensor(getattr(layer, name).detach(), mesh, [placement])))
        pair = nn.Sequential(layer, Redistributed())
        moved = {"all_gather_into_tensor": 1} if of_u == Shard(0) else {"all_reduce": 1}
        check_steps(pair, reference, distribute_tensor(x, mesh, [of_x]), x, moved, {})
    with pytest.raises(lcma.PlanError, match=r"x Shard\(2\) and V Shard\(1\)"):
        layer(distribute_tensor(x, mesh, [Shard(2)]))


class Redistributed(nn.Module):
    """The module that replicates its input."""

    def forward(self, x):
        return x.redistribute(placements=[Replicate()])


def check(rank):
    """All checks, on the process of this rank."""
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    check_styles(mesh)
    check_data_parallel(mesh)
    check_structured(mesh)
    check_low_rank(mesh)
