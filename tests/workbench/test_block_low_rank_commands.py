"""Block low-rank matrices from the command: `run K X`, `time K`, `plan K`, `tune K`."""

import json

import numpy as np
import pytest

from lcma import block_low_rank, kronecker
from lcma.kernels import safetensors
from lcma.kernels.bfloat16 import converted
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.factor_files import KINDS
from lcma.kernels.kronecker import FactoredMatrix as KroneckerMatrix

STRUCTURES = [Monarch(12, 24, 3, 2, 4), Blast(12, 24, 3, 2, 5), LowRank(12, 24, 5)]


@pytest.fixture(params=STRUCTURES, ids=lambda one: one.kind)
def files(request, stored):
    """A stored matrix, and inputs in both layouts."""
    return stored(block_low_rank, FactoredMatrix.random(request.param))


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("structure", [*STRUCTURES, kronecker.monarch(12, 24, 3)], ids=lambda one: type(one).__name__)
def test_run_multiplies_a_stored_matrix(run, stored, structure, suffix):
    low_rank = structure in STRUCTURES
    family, kind = (block_low_rank, FactoredMatrix) if low_rank else (kronecker, KroneckerMatrix)
    matrix, x, folder = stored(family, kind.random(structure))
    truth = x @ matrix.dense().T
    for name, layout in (("first.npy", "bsf"), ("last.npy", "bsl")):
        out = folder / f"{layout}.npy"
        text = run.ok("run", folder / f"k{suffix}", folder / name, "--layout", layout, "--out", out, "--check")
        assert (matrix.structure.name if low_rank else "Kronecker-sparse (1,4,4,3)(3,4,8,1)") in text
        assert "check: relative error" in text
        np.testing.assert_allclose(np.load(out), truth if layout == "bsf" else truth.T, rtol=1e-4, atol=1e-5)
    text = run.ok("run", folder / f"k{suffix}", folder / "first.npy", "--dtype", "float64", "--strategy", "dense")
    assert text.startswith("dense, slab ")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_processor_multiplies_stored_half_precision_in_float32(run, files, dtype):
    matrix, x, folder = files
    halved = matrix.astype(dtype)
    block_low_rank.save(folder / "half.safetensors", halved)
    kind, stored = KINDS[dtype], converted(x, "float32", dtype)
    (folder / "x.safetensors").write_bytes(safetensors.pack({"X": (kind, stored)}))
    out = folder / "y.safetensors"
    run.ok("run", folder / "half.safetensors", folder / "x.safetensors", "--out", out, "--check")
    (entry,) = safetensors.entries(out).values()
    assert entry.kind == kind
    truth = halved.structure.multiply_wide(halved.astype("float64").factors, converted(stored, dtype, "float64").T).T
    found = converted(safetensors.read(out, entry), dtype, "float64")
    np.testing.assert_allclose(found, truth, rtol=2**-8, atol=1e-3)
    code, text, err = run("time", folder / "half.safetensors", "--batch", "8", "--rounds", "1", "--json")
    found = json.loads(text)
    assert (code, found["structure"], found["dtype"]) == (0, matrix.structure.name, "float32")
    assert f"the factors are stored in {dtype}; a processor computes in float32" in err


def test_time_compares_with_the_papers_form_and_the_dense_matrix(run, files):
    matrix, _, folder = files
    found = run.json("time", folder / "k.npz", "--batch", "64", "--rounds", "2")
    assert found["structure"] == matrix.structure.name
    assert {row["what"] for row in found["rows"]} == {"strided", "permuted", "dense", "auto"}
    assert all(row["relative_error"] < 1e-6 for row in found["rows"])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_stored_matrix_that_is_cut_off_is_unreadable_for_every_command(run, files, suffix):
    _, _, folder = files
    whole = (folder / f"k{suffix}").read_bytes()
    damaged = folder / f"damaged{suffix}"
    for content in (whole[:-7], whole[: len(whole) // 2], whole[:3], b""):
        damaged.write_bytes(content)
        run.refused(65, str(damaged), "run", damaged, folder / "first.npy")
        for command in ("time", "plan", "tune"):
            run.refused(65, str(damaged), command, damaged, "--batch", "8")
