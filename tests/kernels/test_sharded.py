"""Sharding rules against products of all parts of a mesh; layers under DDP, FSDP2 and as DTensors, on two processes."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import lcma

from ..refusal import refuses
from .gradients import drawn

if not torch.distributed.is_available():
    pytest.skip("torch without torch.distributed", allow_module_level=True)


MESH = (2, 2)
PROCESSES = list(itertools.product(*map(range, MESH)))


@pytest.fixture(scope="module", autouse=True)
def _placements():
    """Import them in the process that runs these tests, not in all that collect them: DTensor takes two seconds."""
    global Partial, Replicate, Shard, ShardedOperand, dual, fitting_left, product_rule, shown
    from torch.distributed.tensor import Partial, Replicate, Shard

    from lcma.kernels.torch.placements import ShardedOperand, dual, fitting_left, product_rule, shown


def parts(x, placements):
    """The local tensor of every process."""
    found = {(): x}
    for size, placement in zip(MESH, placements, strict=True):
        split = {}
        for place, part in found.items():
            pieces = [part] * size
            if isinstance(placement, Shard):
                pieces = list(part.chunk(size, placement.dim))
                pieces += [pieces[0].narrow(placement.dim, 0, 0)] * (size - len(pieces))
            elif placement.is_partial():
                noise = torch.randn_like(part)
                pieces = [noise, part - noise]
            split.update({(*place, index): piece for index, piece in enumerate(pieces)})
        found = split
    return found


def whole(found, placements):
    """The tensor of these parts."""
    for size, placement in reversed(list(zip(MESH, placements, strict=True))):
        joined = {}
        for place in {one[:-1] for one in found}:
            pieces = [found[*place, index] for index in range(size)]
            if isinstance(placement, Shard):
                joined[place] = torch.cat(pieces, placement.dim)
            elif placement.is_partial():
                joined[place] = sum(pieces)
            else:
                torch.testing.assert_close(pieces[0], pieces[1])
                joined[place] = pieces[0]
        found = joined
    return found[()]


def placements_of(shape):
    return [Replicate(), Partial(), *map(Shard, range(len(shape)))]


@pytest.mark.parametrize(("a_shape", "b_shape"), [
    ((5, 6), (6, 3)), ((4, 3, 5), (5, 2)), ((4, 3, 5), (4, 5, 2)), ((1, 3, 5), (3, 5, 2)), ((3, 2), (4, 2, 3)),
])  # fmt: skip
def test_local_products_and_gradients_assemble_to_the_whole_ones(a_shape, b_shape):
    a, b = drawn(*a_shape), drawn(*b_shape)
    c = a @ b
    grad = torch.randn_like(c)
    wanted = torch.autograd.grad(c, (a, b), grad)
    allowed = 0
    for of_a in itertools.product(placements_of(a_shape), repeat=2):
        for of_b in itertools.product(placements_of(b_shape), repeat=2):
            try:
                rule = product_rule(ShardedOperand(of_a, a_shape), ShardedOperand(of_b, b_shape))
            except lcma.PlanError:
                continue
            allowed += 1
            left, right = parts(a.detach(), of_a), parts(b.detach(), of_b)
            grads = parts(grad, tuple(map(dual, rule.result)))
            products, lefts, rights = {}, {}, {}
            for place in PROCESSES:
                pair = left[place].clone().requires_grad_(), right[place].clone().requires_grad_()
                products[place] = pair[0] @ pair[1]
                lefts[place], rights[place] = torch.autograd.grad(products[place], pair, grads[place])
            torch.testing.assert_close(whole(products, rule.result), c)
            torch.testing.assert_close(whole(lefts, rule.grads[0]), wanted[0])
            torch.testing.assert_close(whole(rights, rule.grads[1]), wanted[1])
    assert allowed >= 16


def test_refusals_name_placements_that_have_a_rule():
    for b_shape in ((5, 2), (4, 5, 2)):
        for of_b in itertools.product(placements_of(b_shape), repeat=2):
            b = ShardedOperand(of_b, b_shape)
            assert product_rule(ShardedOperand(fitting_left((4, 3, 5), b), (4, 3, 5)), b).result
    a, b = ShardedOperand((Shard(1), Replicate()), (8, 6)), ShardedOperand((Shard(1), Partial()), (6, 4))
    placed = "a (8, 6) has the placements [Shard(1), Replicate()] and b (6, 4) [Shard(1), Partial()]"
    mend = "a.redistribute(placements=[Replicate(), Replicate()])"
    refuses(f"{re.escape(placed)}.*{re.escape(mend)}", product_rule, a, b)
    average = ShardedOperand((Partial("avg"), Replicate()), (6, 4))
    refuses(r"b\.redistribute", product_rule, a, average)
    assert shown(average.placements) != shown((Partial(), Replicate()))
    weight = ShardedOperand((Shard(0), Shard(1), Replicate(), Partial()), (12, 16))
    assert weight.transposed() == ShardedOperand((Shard(1), Shard(0), Replicate(), Partial()), (16, 12))


@pytest.mark.slow
@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")
def test_layers_train_as_on_one_process_and_refuse_parts_of_weights(tmp_path):
    command = [sys.executable, str(Path(__file__).with_name("checks_sharded.py")), str(tmp_path / "store")]
    started = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]
    try:
        said = [one.communicate(timeout=240)[0] for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0, 0], "\n".join(text[-3000:] for text in said)
