"""Run in a process of its own (test_sharded.py does), which starts another: layers of a model on two processes."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import checks_tensor_parallel
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import lcma
from lcma.kernels import Profile
from lcma.kernels.cpu import machine
from lcma.kernels.planning.profile import GemmRate

LAYERS = {
    "fast": lambda: lcma.FastLinear(16, 16, scheme="strassen"),
    "auto": lambda: lcma.FastLinear(16, 16),
    "kronecker": lambda: lcma.KSLinear(lcma.kronecker.monarch(16, 16, 4)),
    "monarch": lambda: lcma.MonarchLinear(16, 16, 4, 2),
    "blast": lambda: lcma.BlastLinear(16, 16, 4, 4),
}


def steps(layer, batches):
    """Outputs before each of three steps of training on this process's batches, and one after."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    found = []
    for x in batches:
        found.append(layer(x))
        found[-1].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [*(one.detach() for one in found), layer(batches[0]).detach()]


def sharded(layer, mesh):
    """The layer with every parameter cut along its first dimension, as tensor parallelism leaves it."""
    for name, parameter in list(layer.named_parameters()):
        above, _, attribute = name.rpartition(".")
        part = nn.Parameter(distribute_tensor(parameter.detach(), mesh, [Shard(0)]))
        layer.get_submodule(above).register_parameter(attribute, part)
    return layer


def check(rank):
    mesh = init_device_mesh("cpu", (2,))
    for name, make in LAYERS.items():
        torch.manual_seed(0)
        layer, batches = make(), torch.randn(3, 2, 5, 16)
        wanted = steps(copy.deepcopy(layer), batches)
        replicated = steps(nn.parallel.DistributedDataParallel(copy.deepcopy(layer)), batches[:, rank])
        under_fsdp = fully_shard(copy.deepcopy(layer), mesh=mesh)
        assert all(isinstance(one, DTensor) for one in under_fsdp.parameters())
        for kind, found in (("DDP", replicated), ("FSDP2", steps(under_fsdp, batches[:, rank]))):
            for ours, theirs in zip(found, wanted, strict=True):
                torch.testing.assert_close(ours, theirs[rank], msg=lambda text, k=kind, n=name: f"{n}, {k}: {text}")
        assert not torch.equal(wanted[0], wanted[-1])
        whole = distribute_tensor(batches[0, 0], mesh, [Replicate()])
        given = [batches[0, 0]] if name in ("fast", "auto") else [whole, batches[0, 0]]
        for x in given:
            with pytest.raises(lcma.PlanError, match=r"DTensor|distribute_tensor each with \[Replicate\(\)\]"):
                sharded(copy.deepcopy(layer), mesh)(x)
    model = fully_shard(nn.Sequential(nn.Linear(16, 16), nn.GELU()), mesh=mesh)
    (report,) = lcma.accelerate_(model)
    assert "sharded already" in report.refused
    assert type(model[0]) is nn.Linear
    (report,) = lcma.compress_(model, lcma.CompressConfig("low-rank"))
    assert "sharded already" in report.skipped
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 16)))
    (report,) = lcma.compress_(model, lcma.CompressConfig("low-rank"))
    assert report.skipped == "DistributedDataParallel holds its weight; compress the model before"


if __name__ == "__main__":
    torch.set_num_threads(1)
    machine.profile_for = lambda dtype: Profile(  # nothing is measured
        "flat", "test", (), (GemmRate(dtype, 64, 64, 64, 1e11),), 5e10, 5e10
    )
    store, rank = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        check(rank)
        checks_tensor_parallel.check(rank)
    finally:
        dist.destroy_process_group()
