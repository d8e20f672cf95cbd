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


@pytest.mark.parametrize(
    ("ring", "scheme", "modulus"), [("Z2", "4x4x4:47", 2), ("GF(101)", "strassen", 101), ("Z", "auto", 0)]
)
def test_run_multiplies_files_of_integers(files, run, ring, scheme, modulus):
    folder, a, b = files
    out = folder / "c.npy"
    arguments = ["run", scheme, str(folder / "a.npy"), str(folder / "b.npy"), "--ring", ring, "--out", str(out)]
    assert "check: exact" in run.ok(*arguments, "--check")
    assert np.array_equal(np.load(out), a @ b % modulus if modulus else a @ b)


def test_run_multiplies_bit_matrices(run, tmp_path):
    a, b = lcma.BitMatrix.random(90, 130, seed=1), lcma.BitMatrix.random(130, 70, seed=2)
    a.save(tmp_path / "a.npz")
    b.save(tmp_path / "b.npz")
    names = [str(tmp_path / f"{name}.npz") for name in "abc"]
    run.ok("run", "4x4x5:60", *names[:2], "--ring", "Z2", "--out", names[2])
    assert lcma.BitMatrix.load(names[2]) == naive_bits(a, b)


def test_plan_and_suggest_name_schemes_modulo_2(run):
    found = run.json("plan", "32768", "32768", "32768", "--ring", "Z2", "--explain")
    assert found["strategy"] == "scheme"
    assert found["baseline"] == "leaf"
    schemes = [one["schemes"] for one in run.json("suggest", "32768", "32768", "32768", "--ring", "Z2")["candidates"]]
    assert any("4x4x4:47" in label for label in schemes)


def test_time_and_tune_check_what_they_measure(run):
    found = run.json("time", "strassen", "--ring", "GF(1021)", "64", "--rounds", "2")
    assert found["baseline"] == "leaf"
    assert found["ring"] == "GF(1021)"
    assert [row["relative_error"] for row in found["rows"]] == [0.0, 0.0]
    (tuned,) = run.json("tune", "128", "128", "128", "--ring", "Z2", "--rounds", "2")
    assert tuned["candidates"][0]["strategy"] == "leaf"


@pytest.mark.parametrize("ring", ["Z2", "GF(8388593)", "Z"])
def test_plan_and_suggest_know_a_gpu(run, ring):
    sizes = ["8192", "8192", "8192"]
    assert "on NVIDIA H200" in run.ok("plan", *sizes, "--ring", ring, "--device", "cuda", "--explain")
    run.ok("suggest", *sizes, "--ring", ring, "--device", "cuda")


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
