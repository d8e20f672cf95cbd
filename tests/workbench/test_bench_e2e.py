"""The suites of transformers on accelerated layers and with Kronecker-sparse ones, at tiny sizes."""

import pytest

torch = pytest.importorskip("torch")

from lcma.errors import VerificationError  # noqa: E402
from lcma.kernels.torch.acceleration import AcceleratedLayer, Bucket  # noqa: E402
from lcma.kernels.torch.layers import FastLinear  # noqa: E402
from lcma.kernels.torch.modules import linear_places  # noqa: E402
from lcma.workbench.bench import layer_models, prefill  # noqa: E402
from lcma.workbench.bench.case import Options  # noqa: E402
from lcma.workbench.bench.prefill import stack  # noqa: E402
from lcma.workbench.bench.requirements import inferred  # noqa: E402
from lcma.workbench.bench.suites import e2e, e2e_ks  # noqa: E402
from lcma.workbench.bench.transformers import Sizes  # noqa: E402
from lcma.workbench.bench.workloads import LAYERS  # noqa: E402

SAY = lambda line: None  # noqa: E731


TINY = {
    "deepseek-r1": Sizes(16, 4, 24, latent=(8, 8, 4, 2), gated=True, rms=True),
    "qwen3.5-397b": Sizes(16, 4, 24, 2, kv=2, width=4, gated_attention=True, gated=True, rms=True),
    "hunyuanvideo": Sizes(16, 4, 24, causal=False, joined=True, singles=1, rms=True, approximate="tanh"),
}


def by_strassen(model, config):
    """Every linear layer by one level of Strassen's scheme, as `accelerate_` reports it."""
    found = []
    for place in linear_places(model, new_weight=False):
        FastLinear.convert_(place.module).recipe = "strassen"
        buckets = tuple(Bucket(rows, "scheme 2x2x2:7, batched", 1.1, None) for rows in config.rows)
        outputs, inputs = place.weight.shape
        found.append(AcceleratedLayer(place.name, inputs, outputs, buckets))
    return found


def test_the_layers_are_those_of_the_models():
    known = {(one.k, one.n) for one in LAYERS}
    own = {(4096, 11264), (11264, 4096)}  # the experts that a token passes, side by side
    parameters = dict(zip(e2e.MODELS, (0.58e9, 0.49e9, 0.34e9), strict=True))
    assert prefill.STACKS.keys() == parameters.keys()
    for name, its in prefill.STACKS.items():
        model = stack(its, device="meta")
        sizes = {(place.weight.shape[1], place.weight.shape[0]) for place in linear_places(model, new_weight=False)}
        assert sizes <= known | own
        assert sum(one.numel() for one in model.parameters()) == pytest.approx(parameters[name], rel=0.02)
        x = torch.empty(2, 8, its.features, device="meta")
        assert model(x).shape == x.shape


def test_causal_models_do_not_look_ahead():
    torch.manual_seed(0)
    for name, its in TINY.items():
        model, x = stack(its, dtype=torch.float64), torch.randn(1, 6, 16, dtype=torch.float64)
        alone = model(x[:, :3])
        assert torch.allclose(model(x)[:, :3], alone) == (name != "hunyuanvideo")


def test_rows_are_measured_stored_and_resumed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(prefill, "STACKS", TINY)
    monkeypatch.setattr(e2e, "ON_CPU", (32,))
    monkeypatch.setattr(prefill, "SEQUENCE", 16)
    monkeypatch.setattr(prefill, "accelerate_", by_strassen)
    arguments = ("bench", "e2e", "--rounds", 2, "--out", tmp_path)
    rows = run.json(*arguments)
    assert [row["key"].split()[0] for row in rows] == ["prefill"] * 3 + ["train"] * 3
    for row in rows:
        figures = row["figures"]
        assert figures["ratio"] == figures["ms"]["dense"] / figures["ms"]["online"]
        assert 0 < figures["difference"] < 1e-4
        assert 0 < figures["attention_share"] < 1
        assert figures["layers_on_lcma"] == figures["work_on_lcma"] == 1
        assert "offline" not in figures
    assert all(0 < row["figures"]["gradient_difference"] < 1e-3 for row in rows[3:])
    assert run.json(*arguments) == rows  # taken from the journal
    assert (tmp_path / "e2e-cpu.svg").exists()


def test_a_wrong_result_or_gradient_is_not_timed(monkeypatch):
    def one_off(model, config):
        found = by_strassen(model, config)
        down = model.blocks[0].feed_forward.inner.down
        down.forward = lambda x: x @ down.weight.t() * 1.01
        return found

    def gradients_off(model, config):
        found = by_strassen(model, config)
        for module in model.modules():
            if isinstance(module, FastLinear):
                module.register_full_backward_hook(lambda module, given, taken: (given[0] * 1.01,))
        return found

    monkeypatch.setattr(prefill, "accelerate_", one_off)
    with pytest.raises(VerificationError, match="online came out wrong"):
        prefill.measured(TINY["deepseek-r1"], 8, (8,), "float32", Options(), SAY)
    monkeypatch.setattr(prefill, "accelerate_", gradients_off)
    with pytest.raises(VerificationError, match="a gradient, online, came out wrong"):
        prefill.measured(TINY["deepseek-r1"], 8, (8,), "float32", Options(), SAY, training=True)


def test_twins_share_the_parameters(monkeypatch):
    monkeypatch.setattr(prefill, "accelerate_", by_strassen)
    model = stack(TINY["qwen3.5-397b"])
    twin = prefill.accelerated(model, prefill.AccelerateConfig((8,)))
    assert [id(one) for one in twin.model.parameters()] == [id(one) for one in model.parameters()]
    assert not any(isinstance(module, FastLinear) for module in model.modules())
    assert len(twin.by_schemes(8)) == 14
    assert twin.by_schemes(16) == []


PATTERNS = dict.fromkeys("qkvo", ((1, 12, 3, 2), (2, 3, 12, 1)))
PATTERNS |= {"up": ((1, 48, 12, 2), (6, 4, 4, 1)), "down": ((1, 8, 8, 3), (6, 4, 16, 1))}
PARTS = [one.part for one in e2e_ks.PARTS if one.name == "vit-s"]
TINY_VIT = Sizes(24, 2, 96, 2, 5, 2, False, layers=PATTERNS)


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_both_kinds_compute_the_same(part):
    where = {"dtype": torch.float64}
    ours, theirs = (layer_models.part_of(TINY_VIT, part, kind, **where) for kind in ("auto", "bmm"))
    layer_models.copy_parameters(ours, theirs)
    x = torch.randn(2, 5, 96 if part == "down" else 24, **where)
    torch.testing.assert_close(inferred(ours, x)(), inferred(theirs, x)())
    dense = layer_models.part_of(TINY_VIT, part, "dense", **where)
    assert inferred(dense, x)().shape == inferred(ours, x)().shape


def test_the_kronecker_sparse_patterns_are_those_of_the_layers():
    for sizes in layer_models.KRONECKER.values():
        n = sizes.features
        for place in sizes.layers:
            inputs, outputs = {"up": (n, 4 * n), "down": (4 * n, n)}.get(place, (n, n))
            layer = layer_models.kronecker_sparse(sizes, "auto", device="meta")(place, inputs, outputs)
            assert (layer.out_features, layer.in_features) == (outputs, inputs)


def test_the_share_of_linear_layers_is_that_of_their_time(tmp_path, run, monkeypatch):
    tiny = Sizes(16, 2, 64, 2, 5, 2, False)
    monkeypatch.setattr(layer_models, "VISION", dict.fromkeys(layer_models.VISION, tiny))
    arguments = ("--measure", "shares", "--dtype", "float32", "--rounds", 2, "--out", tmp_path)
    rows = [row["figures"] for row in run.json("bench", "e2e-ks", *arguments)]
    assert len(rows) == 4
    assert all(0 < row["share"] == row["ms"]["linear"] / row["ms"]["model"] for row in rows)
    assert [round(row["paper"], 2) for row in rows] == [0.44, 0.53, 0.58, 0.62]
    assert len(layer_models.feed_forward_layers(tiny)) == 4
    assert layer_models.VISION.keys() == {name for name, _ in e2e_ks.SHARES}


def test_the_suite_of_kronecker_sparse_layers_runs_and_compares_first(tmp_path, run, monkeypatch):
    monkeypatch.setitem(layer_models.KRONECKER, "vit-s", TINY_VIT)
    arguments = ("bench", "e2e_ks", "--rows", "vit-s*", "--rounds", 2, "--out", tmp_path)
    rows = run.json(*arguments)
    assert [row["key"].split()[1] for row in rows] == PARTS
    assert all(row["figures"]["over_dense"] > 0 and row["figures"]["difference"] < 1e-5 for row in rows)
    monkeypatch.setattr(layer_models, "copy_parameters", lambda source, target: None)
    run.refused(1, "came out wrong", *arguments, "--fresh")
