"""Weights that a method or hook of a module above reads: `compress_` leaves such layers, and says who reads."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import lcma

from .modules import Around

pytestmark = pytest.mark.usefixtures("every_layer_gains")


def compressed(net):
    """Compress a model; return the reason for each linear module that is left as it is, and None for the others."""
    return {one.name: one.skipped for one in lcma.compress_(net, lcma.CompressConfig("low-rank", 0.5))}


class LowRankUpdate(nn.Module):
    """A frozen layer with an update of low rank; the base class of wrappers that read the layer's weight."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Parameter(torch.randn(2, 16)), nn.Parameter(torch.zeros(16, 2))
        nn.init.normal_(self.base.weight)

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


class Calls(LowRankUpdate):
    pass


class Reads(LowRankUpdate):
    def forward(self, x):
        return functional.linear(x, self.base.weight + self.up @ self.down, self.base.bias)


class ReadsByName(LowRankUpdate):
    def forward(self, x):
        layer = self.base
        bias = layer.bias
        return functional.linear(x, layer.weight + self.up @ self.down, bias)


class Merges(LowRankUpdate):
    @torch.no_grad()
    def merge(self):
        self.base.weight += self.up @ self.down


class HasWeight(LowRankUpdate):
    @property
    def weight(self):
        return self.base.weight


class AsksDtype(LowRankUpdate):
    def forward(self, x):
        return super().forward(x.to(self.base.weight.dtype))


class ReadsElements(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])

    def forward(self, x):
        for one in self.layers:
            x = functional.linear(x, one.weight, one.bias)
        return functional.linear(x, self.layers[-1].weight)


class ReadsKeys(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"up": nn.Sequential(nn.Linear(16, 16))})

    def forward(self, x):
        return functional.linear(x, self.layers["up"][0].weight)


class ReadsInLists(ReadsElements):
    def forward(self, x):
        return x + sum(one.weight.sum() for one in self.layers) + max([one.weight.max() for one in self.layers])


class ReadsBelow(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Around(nn.Linear(16, 16))

    def forward(self, x):
        return functional.linear(x, self.inner.fc.weight)


class LooksUp(LowRankUpdate):
    def forward(self, x):
        return functional.linear(x, getattr(self, "ba" + "se").weight)


class LooksUpBelow(LowRankUpdate):
    def forward(self, x):
        return functional.linear(x, self.chosen("base"))

    def chosen(self, name):
        layer = self.get_submodule(str(name))
        return layer.weight


class LoopsOverNames(LowRankUpdate):
    def forward(self, x):
        return x + sum(child.weight.sum() for _, child in self.named_children())


class LoopsOverChildren(LowRankUpdate):
    def forward(self, x):
        for _, child in self.named_children():
            x = functional.linear(x, child.weight)
        return x


READERS = {
    LooksUp: ("base", "LooksUp.forward"),
    LooksUpBelow: ("base", "LooksUpBelow.chosen"),
    LoopsOverNames: ("base", "LoopsOverNames.forward"),
    LoopsOverChildren: ("base", "LoopsOverChildren.forward"),
    Reads: ("base", "Reads.forward"),
    ReadsByName: ("base", "ReadsByName.forward"),
    Merges: ("base", "Merges.merge"),
    HasWeight: ("base", "HasWeight.weight"),
    AsksDtype: ("base", "AsksDtype.forward"),
    ReadsElements: ("layers.0", "ReadsElements.forward"),
    ReadsKeys: ("layers.up.0", "ReadsKeys.forward"),
    ReadsInLists: ("layers.1", "ReadsInLists.forward"),
    ReadsBelow: ("inner.fc", "ReadsBelow.forward"),
}


@pytest.mark.parametrize("wrapper", READERS)
def test_weights_that_a_module_above_reads_are_not_replaced(wrapper):
    reader = wrapper(nn.Linear(16, 16)) if issubclass(wrapper, LowRankUpdate) else wrapper()
    net = nn.Sequential(reader, nn.Linear(16, 16))
    x = torch.randn(3, 16)
    wanted, (name, reader) = net[0](x), READERS[wrapper]
    found = compressed(net)
    assert found[f"0.{name}"] == f"{reader} reads its weight"
    assert found["1"] is None
    torch.testing.assert_close(net[0](x), wanted)
    assert {one.refused for one in lcma.accelerate_(nn.Sequential(copy.deepcopy(net[0])))} == {None}


class LooksUpToPrint(LowRankUpdate):
    def norms(self):
        return {name: child.weight.norm() for name, child in self.named_children()}


def test_a_lookup_in_a_method_that_forward_does_not_call_does_not_hinder():
    assert compressed(nn.Sequential(LooksUpToPrint(nn.Linear(16, 16)))) == {"0.base": None}


class CallsInstead(Reads):
    def forward(self, x):
        return self.base(x)


class Extends(Reads):
    def forward(self, x):
        return super().forward(x) + 1


def test_only_methods_that_can_run_count():
    net = nn.Sequential(CallsInstead(nn.Linear(16, 16)), Extends(nn.Linear(16, 16)))
    assert compressed(net) == {"0.base": None, "1.base": "Extends.forward reads its weight"}


def test_hooks_of_a_module_above_are_seen():
    net = nn.Sequential(Around(nn.Linear(16, 16)))
    net[0].register_forward_hook(lambda module, _, y: y + module.fc.weight.sum())
    assert compressed(net) == {"0.fc": "Around.forward_hooks[0] reads its weight"}


def test_wrappers_that_call_their_layer_and_methods_that_initialise_do_not_hinder():
    net = nn.Sequential(Calls(nn.Linear(16, 16)))
    assert compressed(net) == {"0.base": None}
    assert net(torch.randn(3, 16)).shape == (3, 16)


def test_a_method_that_was_replaced_on_an_instance_is_seen():
    net = nn.Sequential(Around(nn.Linear(16, 16)))
    around = net[0]
    around.forward = lambda x: functional.linear(x, around.fc.weight)
    assert compressed(net) == {"0.fc": "Around.forward reads its weight"}
