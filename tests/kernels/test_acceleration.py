"""Models whose linear layers run by schemes, and Hugging Face's own, built from their configurations alone."""

import copy
import gc
import io
import os
import pickle

import pytest
import torch
from torch import nn

import lcma
from lcma.kernels.torch import dispatch, layers
from lcma.kernels.torch.layers import FastConv1D, FastLinear
from lcma.kernels.torch.modules import linear_places
from lcma.kernels.torch.packed_weight import PackedWeight

from ..refusal import refuses
from .cases import table
from .modules import Conv1D

GPU = lcma.AccelerateConfig(rows=(64, 8192), device="cuda")


def model(device="meta"):
    with torch.device(device):
        return nn.Sequential(nn.Linear(4096, 11008), nn.GELU(), Conv1D(4096, 11008), nn.Linear(64, 32)).eval()


def converted(model):
    return {name: one for name, one in model.named_modules() if type(one).__module__.startswith("lcma.")}


def test_layers_that_gain_are_replaced_and_products_of_gradients_planned_in_training():
    net, seen = model(), []
    reports = lcma.accelerate_(net, GPU, on_layer=seen.append)
    assert seen == reports
    assert [report.name for report in reports] == ["0", "2", "3"]
    assert list(converted(net)) == ["0", "2"]
    assert isinstance(net[2], FastConv1D)
    small, large = reports[0].buckets
    assert (small.rows, small.plan, small.predicted) == (64, "vendor", 1.0)
    assert large.predicted > 1.1
    assert "scheme" in large.plan
    assert reports[2].refused == "the vendor's product is the fastest for 64, 8192 rows"
    assert (reports[0].inputs, reports[0].outputs, reports[1].inputs, reports[1].outputs) == (4096, 11008, 11008, 4096)
    assert [report.refused for report in lcma.accelerate_(net, GPU)][:2] == ["it runs by schemes already"] * 2
    net = model().train()
    assert ";" not in lcma.accelerate_(model(), GPU)[0].buckets[1].plan
    report = lcma.accelerate_(net, GPU)[0]
    assert report.buckets[1].predicted > 1.1
    assert list(converted(net)) == ["0", "2"]


def test_models_without_layers_that_gain_are_refused_or_left():
    for net in (nn.ReLU(), nn.Sequential(nn.Conv2d(1, 1, 1))):
        refuses("no linear layer", lcma.accelerate_, net)
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    refuses("no linear layer that filter_fn accepts", lcma.accelerate_, net, filter_fn=lambda name, _: False)
    assert [report.name for report in lcma.accelerate_(net, filter_fn=lambda name, _: name == "1")] == ["1"]
    net = nn.Sequential(nn.Linear(8, 8, dtype=torch.bfloat16))
    assert "multiplied in float32 on a processor" in lcma.accelerate_(net)[0].refused

    class Shard(nn.Parameter):
        pass

    layer = FastLinear(4, 3)
    layer.weight = Shard(layer.weight.detach())
    refuses("sharded", layer.pack, 8)


def test_products_and_gradients_of_both_kinds_are_those_of_the_plain_model():
    plain = nn.Sequential(nn.Linear(12, 20), nn.GELU(), Conv1D(10, 20)).double()
    ours = copy.deepcopy(plain)
    for layer in (FastLinear.convert_(ours[0]), FastConv1D.convert_(ours[2])):
        layer.recipe = "strassen"
    for shape in ((12,), (7, 12), (2, 0, 12), (2, 3, 12)):
        x = torch.randn(*shape, dtype=torch.float64)
        torch.testing.assert_close(ours(x), plain(x))
    x = torch.randn(9, 12, dtype=torch.float64)
    found, wanted = (torch.autograd.grad(net(x).square().sum(), net.parameters()) for net in (ours, plain))
    torch.testing.assert_close(found, wanted)


@pytest.fixture
def packable(monkeypatch):
    """Layers on the processor that pack: the sums are those of a weight once, so that a stale product shows."""

    monkeypatch.setattr(dispatch, "pack", lambda recipe, b, rows: (recipe, b.clone()))
    monkeypatch.setattr(layers, "bilinear_mm", lambda a, b, recipe, packed=None: a @ (b if packed is None else packed))
    monkeypatch.setattr(layers, "is_the_vendors", lambda a, b: False)
    reason = layers.unpackable

    def unpackable(weight):
        return None if "GPU" in (found := reason(weight) or "GPU") else found

    monkeypatch.setattr(layers, "unpackable", unpackable)


def step(layer):
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


CHANGES = {
    "write": torch.no_grad()(lambda layer: layer.weight.mul_(2)),
    "replace": lambda layer: setattr(layer, "weight", nn.Parameter(layer.weight.detach() * 2)),
    "write data": lambda layer: layer.weight.data.mul_(2),
    "set data": lambda layer: setattr(layer.weight, "data", layer.weight.detach() * 2),
    "step": step,
    "load": lambda layer: layer.load_state_dict({name: 2 * value for name, value in layer.state_dict().items()}),
}
"""How a weight is changed."""


@pytest.mark.parametrize("change", CHANGES)
def test_packed_sums_of_another_weight_are_never_used(packable, change):
    layer, x = FastLinear(4, 3).eval(), torch.randn(5, 4)
    compiled = torch.compile(layer, backend="eager")
    assert layer.pack(8)
    assert isinstance(layer.weight, PackedWeight)
    assert layer.packed_bytes == 48
    assert layer._current()[1] is not None
    before = layer(x).detach()
    torch.testing.assert_close(compiled(x).detach(), before)
    CHANGES[change](layer)
    after = layer(x).detach()
    assert not torch.allclose(before, after)
    wanted = nn.functional.linear(x, layer.weight, layer.bias).detach()
    torch.testing.assert_close(after, wanted)
    if change not in ("write", "replace"):  # which a compiled graph does not see
        torch.testing.assert_close(compiled(x).detach(), wanted)


def test_restored_layers_have_plain_parameters_and_another_optimizer_leaves_the_sums(packable):
    net = nn.Sequential(FastLinear(4, 3))
    weight = net[0].weight
    net[0].pack(8)
    assert lcma.restore_(net) == 1
    assert net[0].weight is weight
    assert type(weight) is nn.Parameter
    weight.data.mul_(2)
    step(net[0])
    refuses("a ReLU cannot be converted in place to a FastLinear", FastLinear.convert_, nn.ReLU())
    layer, other = FastLinear(4, 3), nn.Linear(2, 2)
    layer.pack(8)
    other(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(other.parameters(), 0.1).step()
    assert layer.packed_bytes == 48


def test_packed_layers_are_copied_and_stored_without_their_sums(packable):
    layer = FastLinear(4, 3)
    layer.pack(8)
    stored = io.BytesIO()
    torch.save(layer.state_dict(), stored)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other.weight) is nn.Parameter
        assert other.packed_bytes == 0
        torch.testing.assert_close(other.weight.detach(), layer.weight.detach())
    weight = layer.weight
    del layer
    gc.collect()
    weight.data.zero_()  # the layer is gone: nothing to drop
    stored.seek(0)
    assert list(torch.load(stored)) == ["weight", "bias"]


def test_memory_is_spent_on_the_layers_that_gain_most_a_byte(monkeypatch):
    from lcma.kernels.torch import acceleration

    packed = []
    monkeypatch.setattr(acceleration, "unpackable", lambda weight: None)
    monkeypatch.setattr(layers.FastModule, "pack", lambda self, rows: packed.append((self.in_features, rows)) or False)
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(4096, 11008), nn.Linear(2048, 8192), nn.Linear(4096, 4096)).eval()
    planner = acceleration._Planner(GPU)
    sizes = acceleration._Planner(lcma.AccelerateConfig((8192,), 1 << 40, "cuda")).packing(
        linear_places(net, new_weight=False)
    )
    assert planner.packing(linear_places(net, new_weight=False)) == {}
    assert sizes["0"] > 4 * 4096 * 11008
    lcma.accelerate_(net, lcma.AccelerateConfig((8192,), max(sizes.values()), "cuda"))
    assert 0 < len(packed) < 3
    assert all(rows == 8192 for _, rows in packed)


os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="module")
def transformers():
    """Import it in the process that runs these tests, not in all that collect them: it takes two seconds."""
    return pytest.importorskip("transformers")


TOKENS, WORDS = 24, 48


def build(transformers, name):
    """A model of transformers by its row of `models`: itself, its number of layers, and why others are left."""
    kind, sizes, layers, left = table(__file__, "models")[name]
    config = getattr(transformers, f"{kind}Config")(**sizes, vocab_size=WORDS)
    return getattr(transformers, name)(config).double().eval(), layers, left


every_model = pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPT2LMHeadModel", "BertForMaskedLM"])


def logits(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


@every_model
@pytest.mark.usefixtures("every_layer_gains")  # sizes for which a scheme does gain would take minutes here
def test_accelerated_models_run_unchanged(transformers, name):
    model, layers, left = build(transformers, name)
    tokens = torch.randint(0, WORDS, (2, TOKENS))
    wanted, names = logits(model, tokens), list(model.state_dict())
    reports = lcma.accelerate_(model, lcma.AccelerateConfig(rows=(2 * TOKENS,)))
    assert {one.name: one.refused for one in reports if one.refused} == left
    assert [one.name for one in reports if not one.refused] == list(converted(model))
    assert len(converted(model)) == layers
    for module in converted(model).values():
        module.recipe = "strassen"
    found = logits(model, tokens)
    assert not torch.equal(found, wanted)  # the scheme was run
    torch.testing.assert_close(found, wanted)
    assert list(model.state_dict()) == names
    assert lcma.restore_(model) == layers
    assert torch.equal(logits(model, tokens), wanted)


@every_model
def test_compressed_models_are_those_of_the_structured_weights(transformers, name):
    model, layers, left = build(transformers, name)
    tokens, dense = torch.randint(0, WORDS, (2, TOKENS)), copy.deepcopy(model)
    reports = lcma.compress_(model, lcma.CompressConfig("low-rank", 0.5))
    assert {one.name: one.skipped for one in reports if one.skipped} == left
    assert len(converted(model)) == len(reports) - len(left) == layers
    for name, layer in converted(model).items():
        weight, plain = layer(torch.eye(layer.in_features).double()), dense.get_submodule(name)
        weight = weight if layer.bias is None else weight - layer.bias
        plain.weight.data = weight.detach() if type(plain).__name__ == "Conv1D" else weight.detach().T
    wanted = logits(dense, tokens)
    stored = model.state_dict()
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(logits(other, tokens), wanted)
        assert all(torch.equal(value, stored[name]) for name, value in other.state_dict().items())
    if model.can_generate():
        options = {"attention_mask": torch.ones_like(tokens[:, :4]), "max_new_tokens": 5, "do_sample": False}
        texts = [one.generate(tokens[:, :4], pad_token_id=0, **options) for one in (model, dense)]
        assert torch.equal(*texts)
    model.train()
    model(tokens, labels=tokens).loss.backward()
    assert all(one.grad is not None for layer in converted(model).values() for one in layer.parameters())


def test_a_layer_that_is_asked_for_its_dtype_stays_dense(transformers):
    model, layers, left = build(transformers, "T5EncoderModel")
    reports = lcma.compress_(model, lcma.CompressConfig("low-rank", 0.5))
    assert {one.name: one.skipped for one in reports if one.skipped} == left
    assert len(converted(model)) == layers
    assert model(torch.ones(1, 4, dtype=torch.long)).last_hidden_state.isfinite().all()
