"""The commands that run, time, plan and tune products: `run`, `time`, `plan`, `suggest`, `tune`."""

import json

import numpy as np
import pytest

import lcma
from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.dense.cpu import NumpyProduct
from lcma.kernels.exact.naive import naive_bits
from lcma.kernels.planning import wisdom
from lcma.kernels.plans import tuning
from lcma.workbench import products


def test_nothing_wrong_is_timed(run, monkeypatch):
    monkeypatch.setattr(CpuBench, "errors", lambda *_: lambda product: 1.0)
    code, out, err = run("time", "auto", 32, "--rounds", 1)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("lcma: vendor came out wrong: relative error 1.0e+00; nothing was timed")


@pytest.fixture
def small_sums(monkeypatch):
    """Only the baseline is measured: compiling candidates takes seconds."""
    both = tuning.candidates
    monkeypatch.setattr(tuning, "candidates", lambda *arguments: both(*arguments)[:1])


def test_tune_measures_keeps_and_goes_on(run, small_sums, tmp_path):
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("m,k,n,dtype,causal\n60,50,40,,\n40,50,60,float64,\n64,16,64,,qk\n")
    code, text, err = run("tune", "--from", shapes, "--rounds", 2, "--json", "--budget", "0s")
    first = json.loads(text)
    assert (code, len(first)) == (0, 1)
    assert "1 of 3 products; the same command continues from there" in err
    (figures,) = first[0]["candidates"]
    assert (figures["strategy"], figures["ratio"]) == ("vendor", 1.0)
    again = run.json("tune", "--from", shapes, "--rounds", 2)
    assert [bool(one["skipped"]) for one in again] == [True, False, False]
    assert [one["request"] for one in again] == ["60x50x40 float32", "40x50x60 float64", "64x16x64:tri-out float32"]
    assert again[2]["candidates"][0]["strategy"] == "strips"
    planned = run.json("plan", 60, 50, 40)
    assert (planned["basis"], planned["measured_seconds"]) == ("measured", figures["median_s"])
    assert "measured:" in run("plan", 64, 16, 64, "--causal", "qk")[1]
    assert "ratio to baseline" in run.ok("tune", 60, 50, 40, "--again", "--rounds", 1)


def test_wrong_candidates_are_never_stored(run, small_sums, monkeypatch):
    monkeypatch.setattr(CpuBench, "errors", lambda *_: lambda product: float("nan"))
    run.refused(1, "nothing was stored", "tune", 30, 30, 30)


def test_times_that_cannot_be_stored_are_one_line(run, small_sums, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wisdom, "write_atomic", full)
    run.refused(2, "No space left on device; set LCMA_HOME", "tune", 31, 31, 31)


def test_matrices_that_do_not_fit_are_never_made(run, monkeypatch):
    monkeypatch.setattr(products, "free_bytes", lambda: 1e6)
    for command in (("time", "auto", 4096), ("tune", 4096, 4096, 4096, "--dtype", "float64")):
        assert "GB are free" in run.said(3, *command).splitlines()[-1]


def test_a_lack_of_memory_is_one_line(run, monkeypatch, tmp_path):
    def exhausted(self, a, b, out=None):
        raise MemoryError

    monkeypatch.setattr(NumpyProduct, "run", exhausted)
    np.save(tmp_path / "a.npy", np.ones((8, 8)))
    run.refused(3, "out of memory", "run", "auto", tmp_path / "a.npy", tmp_path / "a.npy")


@pytest.mark.parametrize("ring", ["Z2", "GF(101)"])
def test_run_on_a_gpu_moves_files_there_and_back(tmp_path, run, monkeypatch, ring):
    """The transfers, with a strategy of a GPU that multiplies on the processor."""
    torch = pytest.importorskip("torch")
    from lcma.kernels.exact import tensors
    from lcma.workbench.commands import run as runs
    from lcma.workbench.products import Device

    rng = np.random.default_rng(0)
    a, b, out = rng.integers(0, 50, (40, 70)), rng.integers(0, 50, (70, 30)), tmp_path / "c.npy"
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    moved = runs.to_tensor
    monkeypatch.setattr(Device, "require", lambda device: None)
    monkeypatch.setattr(runs, "to_tensor", lambda matrix: moved(matrix, "cpu"))

    def multiply(leaf, left, right, out, memory):
        bits = [lcma.BitMatrix(x.numpy().view(np.uint64), n) for x, n in ((left, 70), (right, 30))]
        out.copy_(torch.from_numpy(naive_bits(*bits).words.view(np.int64)))

    monkeypatch.setattr(tensors.BitTensorLeaf, "run", multiply)
    options = ("--ring", ring, "--device", "cuda", "--strategy", "leaf", "--out", out, "--check")
    assert "transfers included" in run.ok("run", "auto", tmp_path / "a.npy", tmp_path / "b.npy", *options)
    assert np.array_equal(np.load(out), a @ b % (2 if ring == "Z2" else 101))
