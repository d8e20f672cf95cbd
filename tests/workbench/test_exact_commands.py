"""Commands on exact products: run, time, plan, tune and suggest with --ring."""

import numpy as np
import pytest

import lcma
from lcma.kernels.exact.naive import naive_bits


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
