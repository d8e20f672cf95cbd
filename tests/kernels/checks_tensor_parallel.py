"""Checks of products of DTensors on two processes, which checks_sharded.py starts."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import lcma


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


def check_styles(mesh, rank):
    """ColwiseParallel and RowwiseParallel: one sum in each direction; with sequence-parallel ends a gather and a scatter."""
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


def check(rank):
    """All checks, on the process of this rank."""
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    check_styles(mesh, rank)
    check_data_parallel(mesh)
