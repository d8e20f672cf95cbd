"""The rows of `lcma bench gpu`, as far as they go without a GPU."""

import numpy as np
import pytest

import lcma
from lcma.errors import VerificationError
from lcma.kernels.cuda import clock, machine
from lcma.kernels.cuda.estimate import h200
from lcma.kernels.cuda.fp8_naive import decode, quantise_rows
from lcma.workbench.bench import gpu_8_bits, gpu_layers, rivals


def test_rivals_work_the_scheme_with_operations_that_libraries_share():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 6)), rng.standard_normal((6, 9))
    scheme = lcma.resolve("2x2x3")[0]
    formula = rivals.formula_of(scheme, np.concatenate)
    np.testing.assert_allclose(formula(a, b), a @ b, atol=1e-12)
    np.testing.assert_allclose(rivals.tasks_adding(scheme, a, b)(), a @ b, atol=1e-12)


def planned_for_an_h200(monkeypatch):
    from lcma.kernels.torch import dispatch

    # Without a GPU plans rest on the shipped profile; only what asks for one by itself is told otherwise.
    for module in (dispatch, machine):
        monkeypatch.setattr(module, "require_device", lambda index=None: None)
    monkeypatch.setattr(machine, "device_profile", lambda index: h200())


def test_shapes_of_the_choice_take_a_few_milliseconds():
    for dtype, rate in gpu_layers.RATES.items():
        sizes = [sizes for _, sizes in gpu_layers.sampled(40, dtype, gpu_layers.SPAN, distinct=True)]
        assert len(set(sizes)) == 40
        assert all(0.9e-3 < 2 * m * k * n / rate < 31e-3 for m, k, n in sizes)
    assert len(list(gpu_layers.sampled(10**6, "float32", gpu_layers.SPAN, distinct=True))) <= 960


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_contenders_are_the_choice_the_models_first_and_the_fixed_ones(dtype, monkeypatch):
    pytest.importorskip("torch")
    planned_for_an_h200(monkeypatch)
    chosen, recipes = gpu_layers.contenders(dtype, (8192, 8192, 8192))
    assert recipes[chosen] == "auto"
    assert {"laderman", "4x4x5"} <= set(recipes.values())
    assert ("strassen/strassen/strassen" in recipes.values()) == (dtype == "float32")
    # At most the choice, six of the model and six fixed ones, and none twice.
    assert 7 <= len(recipes) <= 13
    if dtype == "float32":
        assert chosen != "vendor"
        assert "vendor" not in recipes


def test_only_contenders_near_the_best_go_into_rounds(monkeypatch):
    torch = pytest.importorskip("torch")
    times = {"vendor": 1.0, "mine": 0.8, "close": 0.75, "far": 1.5}
    recipes = {"mine": "auto", "close": "strassen", "far": "laderman"}
    monkeypatch.setattr(gpu_layers, "contenders", lambda dtype, sizes: ("mine", recipes))
    monkeypatch.setattr(
        gpu_layers, "operands", lambda dtype, sizes, seed: tuple(torch.randn(36, 36).double() for _ in range(2))
    )
    calls = iter(["vendor", *(name for name in times for _ in range(2))])
    monkeypatch.setattr(clock, "seconds_of", lambda call, repeats=1: times[next(calls)])
    monkeypatch.setattr(clock, "interleaved", lambda some, *_: {name: [times[name]] for name in some})
    figures = gpu_layers.choice("float64", (36, 36, 36), 3, 0, lambda line: None)
    assert figures["in_rounds"] == ["vendor", "mine", "close"]
    assert figures["best"] == "close"
    assert figures["of_best"] == pytest.approx(0.8 / 0.75)
    assert figures["ratio"] == pytest.approx(1 / 0.8)
    assert figures["each_ms"]["far"] == 1500.0


@pytest.mark.parametrize("short", [True, False])
def test_a_layer_is_timed_where_the_vendor_is_chosen_too(short, monkeypatch):
    torch = pytest.importorskip("torch")
    from lcma.kernels.torch import ops

    plan = type("Plan", (), {"candidate": type("Vendor", (), {"strategy": "vendor"})(), "seconds": 1e-3})()
    monkeypatch.setattr(gpu_layers, "require_measured_gpu", lambda: None)
    monkeypatch.setattr(gpu_layers, "operands", lambda *_: (torch.randn(8, 6).double(), torch.randn(6, 9).double()))
    monkeypatch.setattr(gpu_layers, "recipe_plan", lambda *_: plan)
    monkeypatch.setattr(gpu_layers, "graphed", lambda call: call)
    timed = []

    def paired(calls, sizes, rounds, say, spent, judge):
        for name, call in calls.items():
            judge(name, call())
        timed.append(calls)
        return {"ratio": 1.0}

    monkeypatch.setattr(gpu_layers, "paired", paired)
    monkeypatch.setattr(gpu_layers, "SHORT", 1e-3 if short else 0.0)
    figures = gpu_layers.layer("float64", (8, 6, 9), 3, 0, 0.05, lambda line: None)
    assert (figures["by_scheme"], figures["graphed"], figures["ratio"]) == (False, short, 1.0)
    assert list(timed[0]) == ["vendor", "online"]
    monkeypatch.setattr(ops, "matmul", lambda a, b: a @ b * 1.01)
    with pytest.raises(VerificationError, match="online came out wrong"):
        gpu_layers.layer("float64", (8, 6, 9), 3, 0, 0.05, lambda line: None)
    assert len(timed) == 1


def test_the_rival_in_8_bits_quantises_rows_as_we_do():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(7, 256, generator=generator)
    a[3, :128] = 0.0
    bits, scales = quantise_rows(a.numpy())
    theirs, their_scales = gpu_8_bits.row_quantised(a)
    assert their_scales.stride() == (1, 7)
    np.testing.assert_array_equal(their_scales.numpy(), scales)
    # They divide by the scale, we multiply by its inverse: a tie may be rounded to the other side.
    ours = decode(bits)
    assert np.mean(theirs.float().numpy() != ours) < 1e-2
    np.testing.assert_allclose(theirs.float().numpy(), ours, rtol=2**-3, atol=2**-9)
