"""The suites of block low-rank layers, at tiny sizes."""

import itertools

import numpy as np
import pytest

from lcma.errors import VerificationError
from lcma.kernels.block_low_rank import FactoredMatrix, Monarch
from lcma.workbench.bench import workloads
from lcma.workbench.bench.baselines import block_low_rank
from lcma.workbench.bench.blr_ablation import STEPS, steps_between
from lcma.workbench.bench.case import Options
from lcma.workbench.bench.runner import chosen_cases, find_suite
from lcma.workbench.bench.suites import blr, compress


def test_a_gpu_gets_every_row_with_its_bars_and_a_processor_those_of_moderate_sides():
    cases = chosen_cases(find_suite("blr"), Options("cuda"))
    keys = [case.key for case in cases]
    # Three kinds of 13 layers at three n; DiT: two kinds of two layers at four, and of adaLN at one.
    assert len(keys) == len(set(keys)) == 3 * 13 * 3 + 2 * 2 * 4 + 2
    assert all(len(case.bars) == 3 for case in cases)
    few = [case.key for case in chosen_cases(find_suite("blr"), Options("cuda", sizes=(2,)))]
    assert len(few) == 3 * 13 + 2 * 3
    assert all(" n=2 " in key for key in few)
    on_cpu = chosen_cases(find_suite("blr"), Options("cpu", sample=3))
    assert not any(case.bars or "11008" in case.key or "Llama-7B gate" in case.key for case in on_cpu)
    assert len({case.key.split(" n=")[0] for case in on_cpu}) <= 9


def test_the_suite_checks_weighs_and_times_every_form(run, tmp_path, monkeypatch):
    tiny = workloads.BlrLayer("tiny", "layer", 24, 36, 5, (8, 4), (6, 3))
    monkeypatch.setattr(blr, "TABLE", (tiny,))
    monkeypatch.setattr(blr, "CPU_TOKENS", (1, 40))
    arguments = ("bench", "blr", "--rounds", 2, "--out", tmp_path)
    rows = run.json(*arguments)
    assert [row["key"] for row in rows[:3]] == [f"tiny layer {kind} n=1 float32" for kind in workloads.KINDS]
    for row in rows:
        figures = row["figures"]
        monarch = " monarch " in row["key"]
        between = {"relaid", "handed-over"} if monarch else set()
        assert {"dense", "permuted", "strided", "auto", "auto or dense"} | between == set(figures["ms"])
        steps = figures["ablation"]
        assert [step["form"] for step in steps] == [
            one.form
            for one in STEPS
            if one.kind == ("monarch" if monarch else row["key"].split()[2]) and one.form in figures["ms"]
        ]
        assert steps[0]["over_first"] == 1
        for before, step in itertools.pairwise(steps):
            assert step["over_last"] == before["ms"] / step["ms"]
            assert step["over_first"] == steps[0]["ms"] / step["ms"]
            assert step["weight_bytes"] == figures["weight_bytes"]
            assert step["peak_bytes"] == figures["peak_bytes"][step["form"]] > 0
        assert {"tiled", "decode"} == set(figures["not_run"])
        assert figures["ratio"] == figures["ms"]["dense"] / figures["ms"]["auto"]
        assert figures["over_best"] == figures["ms"]["dense"] / figures["ms"]["auto or dense"]
        assert figures["over_best_factored"] == figures["ratio"]  # without torch.compile dense is the only rival
        assert max(figures["errors"].values()) < 1e-6
        assert 0 < figures["weight_bytes"] < figures["dense_weight_bytes"] == 4 * 24 * 36
        assert figures["peak_bytes"]["permuted"] >= figures["peak_bytes"]["strided"] > 0
    assert run.json(*arguments) == rows  # taken from the journal
    assert (tmp_path / "blr-cpu.svg").exists()


def test_a_wrong_product_is_not_timed(monkeypatch):
    structure = workloads.BlrLayer("tiny", "layer", 24, 36, 5, (8, 4), (6, 3)).structure("monarch")
    monkeypatch.setattr(
        block_low_rank, "multiply_permuted", lambda structure, factors, x: x @ x.T[:, :1] + 0 * x[:, :1]
    )
    with pytest.raises(VerificationError, match="permuted came out wrong"):
        blr.figures_of(structure, 8, "float32", Options(), lambda _: None)


@pytest.mark.parametrize("name", ["llama-7b", "llama-3.2-1b", "gpt2-s", "vit-b", "dit-xl/2"])
def test_the_models_have_the_layers_of_the_table(name):
    torch = pytest.importorskip("torch")
    from lcma.kernels.torch.block_low_rank_layers import BlockLowRankLinear
    from lcma.workbench.bench import layer_models
    from lcma.workbench.bench.suites import e2e_blr

    assert list(layer_models.MODELS) == list(dict.fromkeys(row.name for row in e2e_blr.ROWS))
    sizes = layer_models.MODELS[name]
    for kind in workloads.KINDS:
        where = {"device": "meta", "dtype": torch.bfloat16}
        block = sizes.block(layer_models.block_low_rank(sizes, kind, **where), **where)
        found = [module for module in block.modules() if isinstance(module, BlockLowRankLinear)]
        wanted = [] if name == "dit-xl/2" and kind == "monarch" else list(sizes.layers.values())
        assert len(found) == len(wanted)
        assert {one.structure for one in found} == {workloads.layer(sizes.model, row).structure(kind) for row in wanted}


def test_whole_models_are_compared_before_they_are_timed(tmp_path, run, monkeypatch):
    torch = pytest.importorskip("torch")
    from lcma.workbench.bench import layer_models
    from lcma.workbench.bench.suites import e2e_blr
    from lcma.workbench.bench.transformers import Sizes

    rows = (workloads.BlrLayer("tiny", "square", 24, 24, 4, (8, 4), (6, 3)),)
    rows += (workloads.BlrLayer("tiny", "modulation", 24, 144, 4, (8, 4), (6, 3)),)
    replaced = {"q": "square", "up": "square", "modulation": "modulation"}
    tiny = {
        name: Sizes(24, 2, 24, 2, 7, gated=gated, rms=gated, modulated=adaptive, model="tiny", layers=replaced)
        for name, gated, adaptive in (("gpt2-s", False, False), ("llama-7b", True, False), ("dit-xl/2", False, True))
    }
    monkeypatch.setattr(layer_models, "TABLE", rows)
    monkeypatch.setattr(layer_models, "MODELS", tiny)
    monkeypatch.setattr(e2e_blr, "ROWS", [row for row in e2e_blr.ROWS if row.name in tiny])
    found = run.json("bench", "e2e-blr", "--rounds", 2, "--out", tmp_path)
    assert len(found) == 8
    for row in found:
        weights = row["figures"]["weight_bytes"]
        kind = row["key"].split()[1]
        assert 0 < weights[kind] < weights["dense"]
        assert row["figures"]["ratio"] == row["figures"]["ms"]["dense"] / row["figures"]["ms"][kind]
        assert row["figures"]["difference"] < 1e-5
        ms = row["figures"]["ms"]
        assert row["figures"]["ratio_or_dense"] == ms["dense"] / ms.get(e2e_blr.OR_DENSE, ms[kind])
        assert (row["figures"]["dense_layers"] > 0) == (e2e_blr.OR_DENSE in ms) == (row["figures"]["extra_bytes"] > 0)
    model = layer_models.transformer(tiny["dit-xl/2"], "blast", 2).eval()
    x, condition = torch.randn(1, 7, 24), torch.randn(1, 24)
    with torch.inference_mode():
        wanted = model(x, condition)
        for layer in e2e_blr._layers(model):
            layer.strategy = "dense"  # in place of the planner's choice, which depends on this machine
        count, extra = e2e_blr.take_dense(model, x, condition)
        assert (count, extra) == (len(e2e_blr._layers(model)), sum(one.packed_bytes for one in e2e_blr._layers(model)))
        torch.testing.assert_close(model(x, condition), wanted)
    monkeypatch.setattr(e2e_blr, "multiply_permuted", lambda structure, factors, x: torch.zeros(len(x), structure.rows))
    with pytest.raises(VerificationError, match="came out wrong"):
        e2e_blr.measured("gpt2-s", "blast", "float32", Options(), lambda _: None)


def test_a_model_is_trained_compressed_and_trained_again(tmp_path, run, one_thread):
    pytest.importorskip("torch")
    arguments = ["bench", "compress", "--sizes", "64", "--rounds", "1", "--out", str(tmp_path)]
    (row,) = (row["figures"] for row in run.json(*arguments, "--sample", "24", "--rows", "monarch 0.5*"))
    uniform = 5.545  # log 256
    assert row["loss_dense"] < row["loss_compressed"] < uniform
    assert row["loss_retrained"] < row["loss_compressed"]
    assert row["loss_dense_retrained"] < row["loss_dense"]
    assert all(one > 0 for one in row["seconds"].values())
    assert (row["layers"], 0.4 < row["bytes"] <= 0.5, 0 < row["weight_error"] < 1) == (12, True, True)
    assert row["ratio"] == row["ms"]["dense"] / row["ms"]["compressed"]
    assert (tmp_path / "compress-cpu.svg").read_text().startswith("<?xml")
    text = run.ok(*arguments, "--dry-run")
    assert text.count("features=64") == 4 * 3
    places = [text.index(f"{kind} {budget:g} features") for budget in compress.BUDGETS for kind in compress.KINDS]
    assert places == sorted(places)  # every kind has a row before one has two
    assert run("bench", "compress", "--sizes", "65", "--out", tmp_path)[0] == 3


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_every_step_of_the_ablation_is_the_product(library, interleaved):
    matrix = FactoredMatrix.random(Monarch(20, 24, 3, 4, 5, interleaved), dtype="float64")
    x = np.random.default_rng(0).standard_normal((7, 24))
    factors, given, out = matrix.factors, x.T, np.empty((7, 20)).T
    if library == "torch":
        torch = pytest.importorskip("torch")
        factors, given, out = (
            [torch.from_numpy(w) for w in factors],
            torch.from_numpy(x).T,
            torch.empty(7, 20).double().T,
        )
    calls = steps_between(matrix.structure, factors, given, out)
    assert list(calls) == ["relaid", "handed-over"]
    for call in calls.values():
        out[...] = np.nan
        np.testing.assert_allclose(np.asarray(call()), matrix.dense() @ x.T, atol=1e-12)
