"""Block low-rank and Kronecker-sparse matrices from the command: `run`, `time`, `plan`, `tune`, the suite `ks`."""

import json
import math

import numpy as np
import pytest

from lcma import block_low_rank, kronecker
from lcma.errors import PlanError
from lcma.kernels import safetensors
from lcma.kernels.bfloat16 import converted
from lcma.kernels.block_low_rank import Blast, FactoredMatrix, LowRank, Monarch
from lcma.kernels.kronecker import FactoredMatrix as KroneckerMatrix
from lcma.kernels.kronecker import Pattern
from lcma.workbench.bench.ks_patterns import paper_patterns, sample

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
    kind, stored = safetensors.KINDS[dtype], converted(x, "float32", dtype)
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


def test_a_baseline_that_cannot_run_is_left_out(run, stored, monkeypatch):
    from lcma.workbench.bench.baselines import kronecker as baselines

    def fail(*_):
        raise PlanError("a library lacks the dtype")

    _, _, folder = stored(kronecker, KroneckerMatrix.random(kronecker.monarch(12, 24, 3)))
    arguments = ("time", folder / "k.npz", "--batch", "64", "--rounds", "2")
    monkeypatch.setitem(baselines.PRODUCTS, "csr", fail)
    names = [row["what"] for row in run.json(*arguments)["rows"]]
    assert ("csr" in names, names[-1]) == (False, "auto")
    monkeypatch.setitem(baselines.PRODUCTS, "bmm", fail)
    run.refused(3, "a library lacks the dtype", *arguments)


def test_a_sample_is_the_same_for_a_seed_and_covers_the_strata():
    known = paper_patterns()
    some = sample(known, 120, 1)
    assert some == sample(known, 120, 1)
    assert len(set(some)) == 120
    assert some != sample(known, 120, 2)
    shares = [sum(low <= one.d <= high for one in some) for low, high in ((1, 1), (2, 12), (16, 128))]
    assert [abs(share - 120 * number / 627) <= 1 for share, number in zip(shares, (22, 301, 304), strict=True)]
    densities = np.array([one.density for one in known])
    edges = np.quantile(densities, [0.25, 0.5, 0.75])
    counts = np.bincount(np.searchsorted(edges, [one.density for one in some]), minlength=4)
    wanted = np.bincount(np.searchsorted(edges, densities), minlength=4) * 120 / 627
    assert (abs(counts - wanted) <= 4).all()
    assert sample(known, 1000) == known


def test_the_suite_names_its_rows_and_runs_one(run, tmp_path, monkeypatch):
    from lcma.workbench.bench.suites import ks

    text = run.ok("bench", "ks", "--dry-run")
    assert text.count("bsf float32") == 24
    monkeypatch.setattr(ks, "paper_patterns", lambda: (Pattern(2, 64, 64, 8),))
    monkeypatch.setattr(ks, "CPU_BATCH", 32)
    code, text, _ = run("bench", "ks", "--rounds", "2", "--out", tmp_path, "--json")
    assert code in (0, 1)  # the bar is a figure of this machine at this moment
    rows = [json.loads(line) for line in (tmp_path / "ks-cpu.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    assert "ratio_to_bmm" in json.dumps(rows[0])
    # 1 less a ratio of two measured times: of so small a product on a busy machine it can be far below 0
    assert all(math.isfinite(share := row["figures"]["permutations"]) and share < 1 for row in rows)
    text = run.ok("report", "benchmarks", "--results", tmp_path)
    assert "Table 6: 20.41, 1.26" in text
    assert "of its time in permutations" in text
