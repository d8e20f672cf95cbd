"""Which linear modules of a model `compress_` and `accelerate_` convert, what stays, and why others are left alone."""

import copy
import io
import pickle
import warnings
from operator import attrgetter

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize, prune

import lcma

from ..refusal import refuses
from .cases import each, table
from .modules import Around, Conv1D

CONFIGS = {
    "low-rank": lcma.CompressConfig("low-rank", 0.5),
    "monarch": lcma.CompressConfig("monarch", 0.5, 4),
    "blast": lcma.CompressConfig("blast", 0.75, 4, 3),
    "kronecker": lcma.CompressConfig("kronecker", patterns="(1,4,4,4)(4,4,4,1)"),
}

every_kind = pytest.mark.parametrize("kind", ["accelerate", *CONFIGS])
both_rules = pytest.mark.parametrize("kind", ["accelerate", "low-rank"])
"""The conversion that leaves weights as they are, and one that replaces them."""


pytestmark = pytest.mark.usefixtures("every_layer_gains")


def reasons(net, kind, filter_fn=None):
    """Convert a model; return the reason for each linear module that is left as it is, and None for the others."""
    if kind == "accelerate":
        return {one.name: one.refused for one in lcma.accelerate_(net, filter_fn=filter_fn)}
    return {one.name: one.skipped for one in lcma.compress_(net, CONFIGS[kind], filter_fn)}


def convert(net, kind, filter_fn=None):
    """The same, for models without layers of ours: each that has no reason must become one."""
    found = reasons(net, kind, filter_fn)
    ours = [name for name, one in net.named_modules() if "lcma." in f"{type(one).__module__}."]
    assert ours == [name for name, reason in found.items() if reason is None]
    return found


def linear(**options):
    return nn.Linear(16, 16, **options)


@every_kind
@pytest.mark.parametrize("bias", [True, False])
def test_identity_biases_modes_attributes_and_frozen_parameters_stay(kind, bias):
    net = nn.Sequential(linear(bias=bias), nn.GELU(), linear(bias=bias))
    layers, biases = [net[0], net[2]], [net[0].bias, net[2].bias]
    net[0].eval().weight.requires_grad_(False)
    net[0].note = "of the user"
    assert convert(net, kind) == {"0": None, "2": None}
    assert net[0] is layers[0]
    assert net[2] is layers[1]
    assert net[0].bias is biases[0]
    assert net[2].bias is biases[1]
    assert (net[0].training, net[2].training, net[0].note) == (False, True, "of the user")
    trained = [{one.requires_grad for one in layer.parameters() if one is not layer.bias} for layer in layers]
    assert trained == [{False}, {True}]


@every_kind
def test_a_module_at_several_places_is_converted_at_all(kind):
    net = nn.ModuleDict({"first": linear(), "block": Around(linear())})
    net["second"], net["again"] = net["first"], net["block"]
    unregistered = [net["first"]]
    assert convert(net, kind) == {"first": None, "block.fc": None}
    assert net["second"] is net["first"] is unregistered[0]
    x = torch.randn(3, 16)
    assert torch.equal(net["again"](x), net["block"](x))


@both_rules
def test_weights_that_are_tied_or_of_layers_selected_by_one_name_only_are_left(kind):
    net = nn.ModuleDict({"first": linear(), "own": linear()})
    net["second"] = net["first"]
    found = convert(net, kind, lambda name, _: name != "second")
    assert found == {"first": "it is second too, which is not selected", "own": None}
    net = nn.ModuleDict({"embedding": nn.Embedding(16, 16), "head": linear(), "up": linear(), "down": linear()})
    net["of_one_memory"] = linear()
    net["head"].weight = net["embedding"].weight
    net["down"].weight = nn.Parameter(net["up"].weight.detach().T)
    net["of_one_memory"].bias = net["up"].bias
    assert convert(net, kind) == {
        "head": "its weight is tied: it is embedding.weight too",
        "up": "its weight is tied: it is down.weight too",
        "down": "its weight is tied: it is up.weight too",
        "of_one_memory": None,
    }
    assert net["head"].weight is net["embedding"].weight
    assert net["of_one_memory"].bias is net["up"].bias


HELD = {
    "its weight is tied: it is {} too": [
        lambda layer: layer.weight,
        lambda layer: nn.Buffer(layer.weight.data),
        lambda layer: layer.weight.detach(),
        lambda layer: [0, layer.weight.detach().T],
        lambda layer: {"fc": layer.weight},
    ],
    "{} holds a method of it": [lambda layer: layer.forward, lambda layer: [abs, layer.forward]],
}
"""Why a layer is left whose module holds something of it, which this is."""


@both_rules
@pytest.mark.parametrize(("reason", "of"), [(reason, of) for reason, several in HELD.items() for of in several])
@pytest.mark.parametrize("label", ["kernel", "_kernel"])
def test_layers_of_which_a_module_holds_something_are_left(kind, reason, of, label):
    net = Around(linear())
    setattr(net, label, of(net.fc))
    assert convert(net, kind) == {"fc": reason.format(label)}


@both_rules
def test_weights_that_are_not_dense_and_models_that_are_layers_are_left(kind):
    net = nn.Sequential(linear(), linear(), linear())
    net[0].weight, net[2].weight = None, nn.Parameter(net[2].weight.detach().to_sparse())
    assert convert(net, kind) == {"0": "it has no dense weight", "1": None, "2": "it has no dense weight"}
    refuses("is a torch module, not dict", reasons, {}, kind)
    refuses("itself a linear layer", reasons, linear(), kind)


@both_rules
@each("register, called", __file__, "hooks")
def test_hooks_still_run(kind, register, called):
    net, seen = nn.Sequential(linear(), linear()), []
    attrgetter(register)(net[0])(lambda *_: seen.append(1))
    reason = f"it has {called}, which may depend on its weight"
    assert convert(net, kind) == {"0": None if kind == "accelerate" else reason, "1": None}
    assert not seen
    net(torch.randn(3, 16, requires_grad=True)).sum().backward()
    net.load_state_dict(net.state_dict())
    assert len(seen) == 1


def normed_by_hooks(layer):
    with pytest.warns(FutureWarning, match="deprecated"):
        nn.utils.weight_norm(layer)


CHANGES = {
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
    "pruned bias": lambda layer: prune.l1_unstructured(layer, "bias", 0.5),
    "parametrized": lambda layer: parametrize.register_parametrization(layer, "weight", nn.Tanh()),
    "normed": parametrizations.weight_norm,
    "normed by hooks": normed_by_hooks,
    "spectral": nn.utils.spectral_norm,
    "adapted": lambda layer: setattr(layer, "lora_A", nn.Parameter(torch.randn(2, 16))),
}


@both_rules
@pytest.mark.parametrize("change", CHANGES)
def test_layers_with_more_than_a_weight_and_a_bias_are_left(kind, change):
    net, x = nn.Sequential(linear(), linear()).eval(), torch.randn(3, 16)
    CHANGES[change](net[0])
    names, wanted = list(net[0].state_dict()), net[0](x)
    besides = next(name for name in (names[-1], names[0]) if name not in ("weight", "bias")).partition(".")[0]
    found = convert(net, kind)
    assert found.pop("1") is None
    assert "besides weight and bias, as of pruning, a parametrization or an adapter" in found["0"]
    assert besides in names[0] + names[-1]
    assert list(net[0].state_dict()) == names
    torch.testing.assert_close(net[0](x), wanted)


@both_rules
@pytest.mark.parametrize("layers", [1, 2])
def test_encoders_of_torch_run_in_inference_and_in_training(kind, layers):
    layer, inputs = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), [torch.randn(2, 4, 16)]
    net = nn.Sequential(layer) if layers == 1 else nn.TransformerEncoder(layer, layers)
    if layers > 1:
        inputs += [None, torch.arange(4).ge(3).expand(2, 4)]
    net.eval()
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):  # nested tensors are a prototype
        wanted = net(*inputs)
        found = convert(net, kind)
        torch.testing.assert_close(net(*inputs), wanted)
    assert {name.rpartition(".")[2] for name in found} == {"out_proj", "linear1", "linear2"}
    assert {reason.rpartition(".")[2] for name, reason in found.items() if "linear" in name} == {
        "forward reads its weight"
    }
    net.train()
    found = convert(net, kind)
    assert {reason is None for name, reason in found.items() if "linear" in name} == {kind == "accelerate"}
    assert net(*inputs).isfinite().all()


@both_rules
def test_layers_whose_product_is_another_are_left(kind):
    class Own(nn.Linear):
        pass

    class Foreign(nn.Module):
        in_features, out_features = 16, 16

    class Wrapped(torch.Tensor):
        pass

    net = nn.ModuleDict({"own": Own(16, 16), "lazy": nn.LazyLinear(16), "foreign": Foreign(), "fast": linear()})
    net["attention"] = nn.MultiheadAttention(16, 2)
    with warnings.catch_warnings(action="ignore"):  # torch says that it will remove its quantised tensors
        net["quantised"] = torch.ao.nn.quantized.dynamic.Linear(16, 16)
    with pytest.warns(DeprecationWarning, match=r"torch\.jit\.script"):
        net["scripted"] = torch.jit.script(Around(linear()))
    for name in ("integers", "eighths", "subclass", "plain", "patched"):
        net[name] = linear()
    net["integers"].weight = nn.Parameter(torch.ones(16, 16, dtype=torch.int8), requires_grad=False)
    net["eighths"].weight = nn.Parameter(torch.ones(16, 16).to(torch.float8_e4m3fn))
    net["subclass"].weight = nn.Parameter(torch.ones(16, 16).as_subclass(Wrapped))
    del net["plain"].weight
    net["plain"].weight = torch.ones(16, 16)
    net["patched"].forward = lambda x: x
    lcma.FastLinear.convert_(net["fast"])
    assert reasons(net, kind) == table(__file__, "others")


def test_a_layer_is_converted_by_its_own_size_once_it_has_data():
    net = nn.Sequential(nn.LazyLinear(16))
    net(torch.randn(3, 16))
    assert convert(net, "low-rank") == {"0": None}
    net = nn.Sequential(linear(device="meta"), linear())
    assert convert(net, "low-rank") == {"0": "its weight has no data (device meta); load it first", "1": None}
    assert convert(nn.Sequential(linear(device="meta")), "accelerate") == {"0": None}
    net = nn.Sequential(linear())
    net[0].weight, net[0].bias = nn.Parameter(torch.randn(8, 16)), None
    assert convert(net, "low-rank") == {"0": None}
    assert net(torch.randn(3, 16)).shape == (3, 8)
    net = nn.Sequential(linear(), linear())
    convert(net, "low-rank")
    assert set(reasons(net, "monarch").values()) == {"it is a LowRankLinear, whose forward may not be a plain product"}


@both_rules
def test_a_model_that_was_compiled_runs_its_new_layers(kind):
    net, x = nn.Sequential(linear(), nn.GELU()).eval(), torch.randn(3, 16)
    compiled = torch.compile(net, backend="eager")
    before = compiled(x)
    convert(net, kind)
    if kind == "accelerate":
        net[0].recipe = "strassen"
    assert not torch.equal(compiled(x), before)
    assert torch.equal(compiled(x), net(x))


@every_kind
def test_converted_models_are_copied_stored_loaded_and_exported(kind):
    net, x = nn.Sequential(linear(), nn.GELU(), Around(linear(bias=False))).eval(), torch.randn(3, 16)
    convert(net, kind)
    if kind == "accelerate":
        net[0].recipe = net[2].fc.recipe = "strassen"
    wanted = net(x).detach()
    stored = io.BytesIO()
    torch.save(net.state_dict(), stored)
    stored.seek(0)
    other = copy.deepcopy(net)
    for parameter in other.parameters():
        parameter.data.zero_()
    assert not torch.equal(other(x), wanted)
    other.load_state_dict(torch.load(stored))
    exported = torch.export.export(net, (x,)).module()
    for one in (other, pickle.loads(pickle.dumps(net)), exported):
        torch.testing.assert_close(one(x).detach(), wanted)


@every_kind
def test_scripting_is_refused_in_one_line(kind):
    net = nn.Sequential(linear())
    convert(net, kind)
    message = "can't be compiled by torch.jit.script; use torch.compile or torch.export"
    with pytest.warns(DeprecationWarning, match=r"torch\.jit\.script"):
        refuses(f"^{type(net[0]).__name__} {message}$", torch.jit.script, net)


def test_restored_layers_are_the_same_objects_with_the_parameters_as_they_are_now():
    net, seen = nn.ModuleDict({"first": linear().eval(), "other": Conv1D(16, 16)}), []
    layer = net["second"] = net["first"]
    layer.register_forward_hook(lambda *_: seen.append(1))
    before = vars(layer).keys()
    convert(net, "accelerate")
    layer.weight = nn.Parameter(layer.weight.detach() * 1)
    parameters = list(net.parameters())
    assert lcma.restore_(net) == 2
    assert net["first"] is net["second"] is layer
    assert (type(layer), type(net["other"]), layer.training) == (nn.Linear, Conv1D, False)
    assert vars(layer).keys() == before
    assert all(one is two for one, two in zip(net.parameters(), parameters, strict=True))
    layer(torch.randn(3, 16))
    assert seen == [1]
    assert lcma.restore_(net) == 0


class Update(nn.Module):
    """A layer below this name, and an update of low rank; the base class of wrappers that read the layer's weight."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.down, self.up = nn.Parameter(torch.randn(2, 16)), nn.Parameter(torch.zeros(16, 2))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


def by_local_names(self, x):
    layer = self.base
    bias = layer.bias
    return functional.linear(x, layer.weight + self.up @ self.down, bias)


@torch.no_grad()
def merge(self):
    self.base.weight += self.up @ self.down


def of_elements(self, x):
    for one in self.layers:
        x = functional.linear(x, one.weight, one.bias)
    return functional.linear(x, self.layers[-1].weight)


def in_lists(self, x):
    return x + sum(one.weight.sum() for one in self.layers) + max([one.weight.max() for one in self.layers])


def chosen(self, name):
    layer = self.get_submodule(str(name))
    return layer.weight


def of_children(self, x):
    for _, child in self.named_children():
        x = functional.linear(x, child.weight)
    return x


def forward(product):
    return {"forward": product}


BY_BASE = forward(lambda self, x: functional.linear(x, self.base.weight + self.up @ self.down, self.base.bias))
READERS = [
    ("base", BY_BASE),
    ("base", forward(by_local_names)),
    ("base", forward(of_children)),
    ("base", forward(lambda self, x: x + sum(child.weight.sum() for _, child in self.named_children()))),
    ("base", forward(lambda self, x: functional.linear(x, getattr(self, "ba" + "se").weight))),
    ("base", {"chosen": chosen, **forward(lambda self, x: functional.linear(x, self.chosen("base")))}),
    ("base", forward(lambda self, x: Update.forward(self, x.to(self.base.weight.dtype)))),
    ("base", {"merge": merge}),
    ("base", {"weight": property(lambda self: self.base.weight)}),
    ("layers.0", forward(of_elements)),
    ("layers.1", forward(in_lists)),
    ("layers.up.0", forward(lambda self, x: functional.linear(x, self.layers["up"][0].weight))),
    ("inner.fc", forward(lambda self, x: functional.linear(x, self.inner.fc.weight))),
]
"""The layer's name in a module, and methods of the module, of which the first reads the layer's weight."""


def wrapped(layer, methods, base=Update):
    """A wrapper with a layer of this name, whose class has these methods."""
    within = {
        "base": linear(),
        "layers.0": nn.ModuleList([linear()]),
        "layers.1": nn.ModuleList([linear(), linear()]),
        "layers.up.0": nn.ModuleDict({"up": nn.Sequential(linear())}),
        "inner.fc": Around(linear()),
    }
    return type("Reader", (base,), methods)(**{layer.partition(".")[0]: within[layer]})


@pytest.mark.parametrize(("layer", "methods"), READERS)
def test_weights_that_a_module_above_reads_are_not_replaced(layer, methods):
    net, x = nn.Sequential(wrapped(layer, methods), linear()), torch.randn(3, 16)
    wanted = net[0](x)
    found = reasons(net, "low-rank")
    assert found[f"0.{layer}"] == f"Reader.{next(iter(methods))} reads its weight"
    assert found["1"] is None
    torch.testing.assert_close(net[0](x), wanted)
    assert {one.refused for one in lcma.accelerate_(nn.Sequential(copy.deepcopy(net[0])))} == {None}


def norms(self):
    return {name: child.weight.norm() for name, child in self.named_children()}


def test_only_methods_and_hooks_that_can_run_hinder():
    reads = type("Reads", (Update,), BY_BASE)
    instead, extends = forward(lambda self, x: self.base(x)), forward(lambda self, x: reads.forward(self, x) + 1)
    first = wrapped("base", {"norms": norms})
    net = nn.Sequential(first, wrapped("base", instead, reads), wrapped("base", extends, reads))
    assert reasons(net, "low-rank") == {"0.base": None, "1.base": None, "2.base": "Reader.forward reads its weight"}
    hooked, replaced, plain = Around(linear()), Around(linear()), wrapped("base", {})
    hooked.register_forward_hook(lambda module, _, y: y + module.fc.weight.sum())
    replaced.forward = lambda x: functional.linear(x, replaced.fc.weight)
    assert reasons(nn.Sequential(hooked, replaced, plain), "low-rank") == {
        "0.fc": "Around.forward_hooks[0] reads its weight",
        "1.fc": "Around.forward reads its weight",
        "2.base": None,
    }
    assert plain(torch.randn(3, 16)).shape == (3, 16)
