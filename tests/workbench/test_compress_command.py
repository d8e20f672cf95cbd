"""`lcma compress`: layers of a stored model, their reports, broken runs, and models loaded again."""

import json

import numpy as np
import pytest

import lcma
from lcma.kernels import safetensors
from lcma.kernels.compressed_files import structures_in
from lcma.workbench import compression
from lcma.workbench.compression import stored_weights

from ..refusal import refuses, refuses_with


def tensors(seed=0):
    """A model of two linear layers, an embedding and a norm; nn.Linear's layout."""
    rng = np.random.default_rng(seed)
    shapes = {"embed.weight": (9, 16), "up.weight": (24, 16), "up.bias": (24,), "down.weight": (16, 24)}
    shapes |= {"down.bias": (16,), "norm.weight": (16,), "head.weight": (7, 16)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def write(path, arrays, kind="F32"):
    path.write_bytes(safetensors.pack({name: (kind, x) for name, x in arrays.items()}))
    return path


def read(path):
    return {name: np.array(safetensors.read(path, entry)) for name, entry in safetensors.entries(path).items()}


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "model.safetensors", tensors())


@pytest.mark.parametrize("kind", ["low-rank", "monarch", "blast", "kronecker"])
def test_every_kind_reports_its_layers_and_keeps_all_other_tensors(run, model, tmp_path, kind):
    out = tmp_path / "out.safetensors"
    arguments = ("--kind", f"{kind}:budget=0.9:blocks=4:steps=40", "--layer", "head=dense")
    code, text, err = run("compress", model, "--out", out, *arguments, "--json")
    if kind == "kronecker":  # blocks of these sides are too small for the lists that are suggested
        assert (code, "no layer would change: up: no pair of Kronecker-sparse factors" in err) == (3, True)
        assert not out.exists()
        return
    assert code == 0
    found = json.loads(text)["layers"]
    assert [layer["name"] for layer in found] == ["up", "down"]
    there, structures = read(out), structures_in(out)
    for layer in found:
        weight = read(model)[f"{layer['name']}.weight"]
        structure = structures[layer["name"]]
        factors = [there[f"{layer['name']}.{part}"] for part in ("U", "S", "V") if f"{layer['name']}.{part}" in there]
        dense = structure.multiply_wide(factors, np.eye(weight.shape[1]))
        error = np.linalg.norm(dense - weight) / np.linalg.norm(weight)
        assert layer["error"] == pytest.approx(error, rel=1e-4)
        assert layer["bytes_after"] == sum(one.nbytes for one in factors) <= 0.9 * layer["bytes_before"]
        assert layer["predicted"] > 0
    for name in ("embed.weight", "up.bias", "norm.weight", "head.weight"):
        np.testing.assert_array_equal(there[name], read(model)[name])
    assert not (tmp_path / "out.safetensors.layers").exists()


def test_biases_say_how_weights_are_stored(tmp_path):
    arrays = {"a.weight": np.zeros((4, 6), "f4"), "a.bias": np.zeros(6, "f4"), "b.weight": np.zeros((4, 4), "f4")}
    path = write(tmp_path / "conv1d.safetensors", arrays)
    assert [(one.layer, one.turned, one.shape) for one in stored_weights(path)] == [
        ("a", True, (6, 4)),
        ("b", True, (4, 4)),
    ]
    assert [one.turned for one in stored_weights(path, "linear")] == [False, False]
    arrays |= {"c.weight": np.zeros((4, 6), "f4"), "c.bias": np.zeros(4, "f4")}
    mixed = stored_weights(write(tmp_path / "mixed.safetensors", arrays))
    assert [one.turned for one in mixed] == [True, False, False]


def test_a_broken_run_goes_on_where_it_stopped(run, model, tmp_path, monkeypatch):
    out = tmp_path / "out.safetensors"
    line = ("compress", model, "--out", out, "--kind", "low-rank:rank=3")
    decompose = compression.Compression._decomposed

    def broken(self, task, matrix, say):
        if task.weight.layer == "down":
            raise KeyboardInterrupt
        return decompose(self, task, matrix, say)

    with monkeypatch.context() as patch:
        patch.setattr(compression.Compression, "_decomposed", broken)
        run.said(130, *line)
    assert not out.exists()
    (part,) = (tmp_path / "out.safetensors.layers").iterdir()
    assert (run.json(*line)["resumed"], part.exists()) == (1, False)
    resumed = out.read_bytes()
    assert run.json(*line, "--fresh", "--force")["resumed"] == 0
    assert out.read_bytes() == resumed
    assert not part.parent.exists()


def test_a_damaged_part_is_done_again(run, model, tmp_path, monkeypatch):
    out = tmp_path / "out.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(compression.Compression, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("compress", model, "--out", out, "--kind", "low-rank:rank=3")[0] == 130
    parts = sorted((tmp_path / "out.safetensors.layers").iterdir())
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    assert run.json("compress", model, "--out", out, "--kind", "low-rank:rank=3")["resumed"] == len(parts) - 1


@pytest.fixture
def net():
    """net(): a new model of two layers with the same weights; net(twice=True): one of them stands in it twice."""
    torch = pytest.importorskip("torch")

    def made(twice=False):
        torch.manual_seed(0)
        found = torch.nn.ModuleDict({"up": torch.nn.Linear(16, 24), "down": torch.nn.Linear(24, 16)})
        return torch.nn.ModuleDict({**found, "again": found["up"]}) if twice else found

    return made


@pytest.fixture
def stored(net, tmp_path):
    """The file of that model, and one for its compressed layers."""
    state = {name: x.numpy() for name, x in net().state_dict().items()}
    return write(tmp_path / "net.safetensors", state), tmp_path / "out.safetensors"


def test_a_model_takes_its_compressed_layers_back(run, net, stored):
    import torch

    model, out = stored
    options = ("--kind", "monarch:blocks=2:budget=0.8", "--layer", "down=(1,8,6,2)(2,6,12,1)")
    run.ok("compress", model, "--out", out, *options)
    loaded, here = net(), net()
    assert lcma.load_compressed_(loaded, out) == ["up", "down"]
    config = {"up": lcma.CompressConfig("monarch", 0.8, 2), "down": lcma.CompressConfig.parse("(1,8,6,2)(2,6,12,1)")}
    reports = lcma.compress_(here, config)
    assert [report.skipped for report in reports] == [None, None]
    x = torch.randn(5, 16)
    torch.testing.assert_close(*(one["down"](one["up"](x)) for one in (loaded, here)), rtol=1e-4, atol=1e-5)
    other = torch.nn.Sequential(torch.nn.Linear(16, 24))
    refuses("the model has no such linear layer", lcma.load_compressed_, other, out)
    refuses_with(lcma.SchemeFormatError, "holds no compressed layers", lcma.load_compressed_, net(), model)


def test_compressed_layers_go_into_shared_modules_and_not_where_a_weight_is_needed(run, net, stored):
    import torch

    model, out = stored
    run.ok("compress", model, "--out", out, "--kind", "monarch:blocks=2")
    loaded, hooked, tied = (net(twice=True) for _ in range(3))
    loaded["down"].eval()
    assert lcma.load_compressed_(loaded, out) == ["up", "down"]
    assert loaded["again"] is loaded["up"]
    assert type(loaded["up"]) is lcma.MonarchLinear
    assert not loaded["down"].training
    hooked["down"].register_forward_hook(lambda *_: None)
    tied["down"].weight = torch.nn.Parameter(tied["up"].weight.detach().T)
    for other, reason in ((hooked, "it has forward hooks"), (tied, "its weight is tied: it is down.weight too")):
        refuses(f"in the model {reason}", lcma.load_compressed_, other, out)
        assert type(other["up"]) is torch.nn.Linear
