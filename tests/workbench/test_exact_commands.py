"""Commands on exact products: run, time, plan, tune and suggest with --ring."""

import numpy as np
import pytest

import lcma
from lcma.kernels.exact.naive import naive_bits


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 50, (40, 70)), rng.integers(0, 50, (70, 30))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    return tmp_path, a, b


@pytest.mark.parametrize("ring", ["Z2", "GF(101)"])
def test_run_on_a_gpu_moves_files_there_and_back(files, run, monkeypatch, ring):
    """The transfers, with a strategy of a GPU that multiplies on the processor."""
    torch = pytest.importorskip("torch")
    from lcma.kernels.exact import tensors
    from lcma.workbench.commands import run as runs
    from lcma.workbench.products import Device

    folder, a, b = files
    moved = runs.to_tensor
    monkeypatch.setattr(Device, "require", lambda device: None)
    monkeypatch.setattr(runs, "to_tensor", lambda matrix: moved(matrix, "cpu"))

    def multiply(leaf, left, right, out, memory):
        bits = [lcma.BitMatrix(x.numpy().view(np.uint64), n) for x, n in ((left, 70), (right, 30))]
        out.copy_(torch.from_numpy(naive_bits(*bits).words.view(np.int64)))

    monkeypatch.setattr(tensors.BitTensorLeaf, "run", multiply)
    arguments = ["run", "auto", str(folder / "a.npy"), str(folder / "b.npy"), "--ring", ring, "--device", "cuda"]
    options = ["--strategy", "leaf", "--out", str(folder / "c.npy"), "--check"]
    assert "transfers included" in run.ok(*arguments, *options)
    assert np.array_equal(np.load(folder / "c.npy"), a @ b % (2 if ring == "Z2" else 101))
