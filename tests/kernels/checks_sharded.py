"""Run in a process of its own (test_sharded.py does), which starts another: layers and products on two processes."""

from __future__ import annotations

import copy
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import lcma
from lcma.kernels.cpu import machine
from lcma.kernels.planning.profile import Profile
from lcma.kernels.torch.placements import shown
from lcma.tests.kernels.cases import call, table
from lcma.tests.refusal import refuses


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


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def agree(ours, theirs):
    """Compare tensors, of which ours may be distributed."""
    torch.testing.assert_close([whole(one) for one in ours], list(theirs))


def sharded(layer, mesh):
    """The layer with every parameter cut along its first dimension, as tensor parallelism leaves it."""
    for name, parameter in list(layer.named_parameters()):
        above, _, attribute = name.rpartition(".")
        part = nn.Parameter(distribute_tensor(parameter.detach(), mesh, [Shard(0)]))
        layer.get_submodule(above).register_parameter(attribute, part)
    return layer


def check_training(mesh):
    """Layers under DDP and FSDP2, and refusals of those that are cut, or whose model is."""
    rank = dist.get_rank()
    for name in table(__file__, "trained"):
        torch.manual_seed(0)
        layer, batches = call(name)(), torch.randn(3, 2, 5, 16)
        wanted = steps(copy.deepcopy(layer), batches)
        replicated = steps(nn.parallel.DistributedDataParallel(copy.deepcopy(layer)), batches[:, rank])
        under_fsdp = fully_shard(copy.deepcopy(layer), mesh=mesh)
        assert all(isinstance(one, DTensor) for one in under_fsdp.parameters())
        for kind, found in (("DDP", replicated), ("FSDP2", steps(under_fsdp, batches[:, rank]))):
            for ours, theirs in zip(found, wanted, strict=True):
                torch.testing.assert_close(ours, theirs[rank], msg=lambda text, k=kind, n=name: f"{n}, {k}: {text}")
        assert not torch.equal(wanted[0], wanted[-1])
        whole = distribute_tensor(batches[0, 0], mesh, [Replicate()])
        given = [batches[0, 0]] if name.startswith("FastLinear") else [whole, batches[0, 0]]
        for x in given:
            refuses(r"DTensor|distribute_tensor each with \[Replicate\(\)\]", sharded(copy.deepcopy(layer), mesh), x)
    model = fully_shard(nn.Sequential(nn.Linear(16, 16), nn.GELU()), mesh=mesh)
    assert "sharded already" in lcma.accelerate_(model)[0].refused
    assert type(model[0]) is nn.Linear
    config = lcma.CompressConfig("low-rank")
    assert "sharded already" in lcma.compress_(model, config)[0].skipped
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 16)))
    (report,) = lcma.compress_(model, config)
    assert report.skipped == "DistributedDataParallel holds its weight; compress the model before"


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


def check_steps(layer, reference, given, x, forward, backward):
    """Compare outputs, gradients and three steps of training with the layer on one process, and count collectives."""
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (layer, reference)]
    for _ in range(3):
        given, x = given.detach().requires_grad_(), x.detach().requires_grad_()
        with collectives(**forward):
            y = layer(given)
        wanted = reference(x)
        torch.testing.assert_close(whole(y), wanted)
        loss = y.square().sum() / wanted.numel()
        with collectives(**backward):
            loss.backward()
        wanted.square().mean().backward()
        torch.testing.assert_close(whole(given.grad), x.grad)
        for (name, ours), theirs in zip(layer.named_parameters(), reference.parameters(), strict=True):
            assert ours.grad.device_mesh == ours.device_mesh
            torch.testing.assert_close(whole(ours.grad), theirs.grad, msg=lambda m, n=name: n + m)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        agree(layer.parameters(), reference.parameters())


def check_styles(mesh):
    """One sum in each direction under the styles of torch; a gather and a scatter with sequence-parallel ends."""
    x = torch.randn(2, 4, 16)
    for hidden in (12, 7, 1):  # whole, uneven, none on the second process
        reference = mlp(16, hidden)
        up = ColwiseParallel(use_local_output=hidden % 2 == 0)  # a local tensor does not tell that parts are uneven
        layer = parallelize_module(copy.deepcopy(reference), mesh, {"0": up, "2": RowwiseParallel()})
        check_steps(layer, reference, x, x, {"all_reduce": 1}, {"all_reduce": 1})
    reference = mlp(16, 12)
    down = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    plan = {"0": ColwiseParallel(input_layouts=Shard(1)), "2": down}
    layer = parallelize_module(copy.deepcopy(reference), mesh, plan)
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


def check_structured(mesh):
    """Structured layers with replicated factors, for inputs sharded along batch dimensions."""
    for name in table(__file__, "replicated"):
        reference, last = call(name)(), "layout=bsl" in name
        layer = distribute_module(copy.deepcopy(reference), mesh)
        for shape, dim in (((3, 6), 0), ((2, 5), 1)):
            x = torch.randn(16, *shape) if last else torch.randn(*shape, 16)
            given = distribute_tensor(x, mesh, [Shard(dim + last)])
            check_steps(layer, reference, given, x, {}, {})
        row = torch.randn(16, 1) if last else torch.randn(1, 16)  # no row for the second process
        torch.testing.assert_close(whole(layer(distribute_tensor(row, mesh, [Shard(int(last))]))), reference(row))
        features = distribute_tensor(x, mesh, [Shard(0 if last else 2)])
        message = rf"{re.escape(shown(features.placements))}.*x\.redistribute\(placements=\[Replicate\(\)\]\)"
        refuses(message, layer, features)


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
    refuses(r"x Shard\(2\) and V Shard\(1\)", layer, distribute_tensor(x, mesh, [Shard(2)]))


def replicated_product(a, b):
    return lcma.matmul(a, b, "strassen").redistribute(placements=[Replicate()])


def second_gradients(product, a, b):
    """Return the gradients of the squared gradients of a sum of cubes of a product."""
    first = torch.autograd.grad((product(a, b) ** 3).sum(), (a, b), create_graph=True)
    return torch.autograd.grad(sum(whole(one).square().sum() for one in first), (a, b))


def check_matmul(mesh):
    """Products of DTensors themselves: any derivative, no communication, and what is refused."""
    a, b = torch.randn(6, 8, dtype=torch.float64), torch.randn(8, 4, dtype=torch.float64)

    def placed(of_a, of_b):
        return [distribute_tensor(x, mesh, [place]).requires_grad_() for x, place in ((a, of_a), (b, of_b))]

    for of_a, of_b in ((Replicate(), Shard(1)), (Shard(1), Shard(0)), (Shard(0), Replicate())):
        left, right = placed(of_a, of_b)
        with collectives():
            y = lcma.matmul(left, right, "strassen")
        torch.testing.assert_close(y.full_tensor(), a @ b)
        plain = [x.clone().requires_grad_() for x in (a, b)]
        agree(second_gradients(replicated_product, left, right), second_gradients(torch.matmul, *plain))
    left, right = placed(Shard(1), Shard(0))
    square = torch.randn(4, 4, dtype=torch.float64)
    third = distribute_tensor(square, mesh, [Replicate()])
    with collectives():
        partial = lcma.matmul(lcma.matmul(left, right, "strassen"), third, "strassen")
    assert partial.placements == (Partial(),)
    replicated = partial.redistribute(placements=[Replicate()])
    torch.testing.assert_close(replicated.to_local(), a @ b @ square)
    with collectives():
        found = torch.autograd.grad((replicated**2).sum(), (left, right))
    agree(found, torch.autograd.grad((plain[0] @ plain[1] @ square).square().sum(), plain))
    refused = {
        (Shard(0), Shard(0)): r"a \(6, 8\) has the placements \[Shard\(0\)\] and b \(8, 4\) \[Shard\(0\)\].*"
        r"call a\.redistribute\(placements=\[Shard\(1\)\]\)",
        (Shard(1), Replicate()): r"call a\.redistribute\(placements=\[Replicate\(\)\]\)",
    }
    for (of_a, of_b), text in refused.items():
        operands = placed(of_a, of_b)
        with collectives():
            refuses(text, lcma.matmul, *operands)
    left, right = placed(Shard(0), Shard(0))
    refuses(r"DTensor\.from_local\(a, mesh, \[Shard\(1\)\]\)", lcma.matmul, a, right, "strassen")
    refuses(r"distribute_tensor\(b, a\.device_mesh, \[Replicate\(\)\]\)", lcma.matmul, left, b, "strassen")


def check_gradient_to_be_summed(mesh):
    """A replicated layer before a column-parallel one: refused, and mended as the refusal says."""
    x = torch.randn(3, 16)
    first, second = lcma.FastLinear(16, 16, scheme="strassen"), lcma.FastLinear(16, 16, scheme="strassen")
    reference = nn.Sequential(copy.deepcopy(first), copy.deepcopy(second))
    distribute_module(first, mesh)
    parallelize_module(second, mesh, ColwiseParallel(use_local_output=False))
    given = distribute_tensor(x, mesh, [Replicate()])
    y = lcma.matmul(lcma.matmul(given, first.weight.t(), "strassen"), second.weight.t(), "strassen")
    refuses(r"y\.redistribute\(placements=\[Replicate\(\)\]\) on the result y", y.sum().backward)
    first.zero_grad()
    second.zero_grad()
    check_steps(nn.Sequential(first, Redistributed(), second), reference, given, x, {}, {"all_reduce": 1})


def check_compiled(mesh):
    """The block under both styles in one graph of torch.compile."""
    reference, x = mlp(16, 12), torch.randn(2, 4, 16)
    layer = parallelize_module(copy.deepcopy(reference), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = torch.compile(layer, backend="aot_eager", fullgraph=True)(ours), reference(theirs)
    torch.testing.assert_close(y, wanted)
    operands = [ours, *layer.parameters()], [theirs, *reference.parameters()]
    agree(*(torch.autograd.grad(c.square().mean(), given) for c, given in zip((y, wanted), operands, strict=True)))


def check_accelerate(mesh):
    """Linear layers that are parallelised already are planned for their parts, and converted and restored in place."""
    model = nn.Sequential(nn.Linear(8192, 22016, device="meta"), nn.GELU(), nn.Linear(22016, 16, device="meta")).eval()
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    linear, hooks = model[0], len(model[0]._forward_pre_hooks)
    first, second = lcma.accelerate_(model, lcma.AccelerateConfig(rows=(8192,), device="cuda"))
    assert (first.inputs, first.outputs, first.refused) == (8192, 11008, None)
    assert "vendor's product is the fastest" in second.refused
    assert model[0] is linear
    assert type(linear) is lcma.FastLinear
    assert len(linear._forward_pre_hooks) == hooks > 0
    assert lcma.restore_(model) == 1
    assert type(linear) is nn.Linear
    assert "recipe" not in linear.__dict__
    reference = nn.Sequential(nn.Linear(16, 12), nn.GELU(), nn.Linear(12, 16))
    layer = parallelize_module(copy.deepcopy(reference), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    lcma.FastLinear.convert_(layer[0])
    lcma.FastLinear.convert_(layer[2])
    x = torch.randn(2, 4, 16)
    check_steps(layer, reference, x, x, {"all_reduce": 1}, {"all_reduce": 1})


class Redistributed(nn.Module):
    """The module that replicates its input."""

    def forward(self, x):
        return x.redistribute(placements=[Replicate()])


CHECKS = (
    *(check_training, check_styles, check_data_parallel, check_structured, check_low_rank, check_matmul),
    *(check_gradient_to_be_summed, check_accelerate, check_compiled),
)


if __name__ == "__main__":
    torch.set_num_threads(1)
    machine.profile_for = lambda dtype: Profile("unmeasured", "none")
    store, rank = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        mesh = init_device_mesh("cpu", (2,))
        for check in CHECKS:
            torch.manual_seed(0)
            check(mesh)
    finally:
        dist.destroy_process_group()
