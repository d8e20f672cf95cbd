"""The commands that run, time, plan and tune products: `run`, `time`, `plan`, `suggest`, `tune`."""

import json
import re

import numpy as np
import pytest

from lcma.kernels.cpu.bench import CpuBench
from lcma.kernels.cpu.hardware import machine_id
from lcma.kernels.cpu.threads import thread_count
from lcma.kernels.dense.cpu import NumpyProduct
from lcma.kernels.planning import wisdom
from lcma.kernels.planning.profile import GemmRate, Profile
from lcma.kernels.planning.profiles import forget_profiles, keep_profile, published
from lcma.kernels.plans import tuning
from lcma.schemes_db.symmetry import ATTENTION_PRODUCTS
from lcma.workbench import products
from lcma.workbench.products import FACTORS, Device, sizes_of

DTYPES = ("float32", "float64", "complex64", "bfloat16")


@pytest.fixture(scope="module", autouse=True)
def _measured():
    """A profile of this machine, so that no plan waits for an estimate; removed after the tests of this file."""
    threads = thread_count()
    sizes = ((256, 2e10), (1024, 4e10), (4096, 5e10))
    rates = [
        GemmRate(dtype, n, n, n, rate, mode) for dtype in DTYPES for mode in ("whole", "tasks") for n, rate in sizes
    ]
    profile = Profile(
        machine_id(threads), "a test", (), tuple(rates), 1e10, 1e10, (1 << 15, 1 << 20), 1e-6, "measured", 1e10
    )
    path = keep_profile(profile)
    yield
    path.unlink()
    forget_profiles()


@pytest.fixture
def matrices(tmp_path):
    rng = np.random.default_rng(0)
    length, width = 48, 20
    arrays = {"q": (length, width), "k": (length, width), "p": (length, length), "v": (length, width), "w": (width, 31)}
    for name, shape in arrays.items():
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float32))
    return lambda name: tmp_path / f"{name}.npy"


@pytest.mark.parametrize("name", list(ATTENTION_PRODUCTS))
def test_run_multiplies_the_products_of_causal_attention(run, matrices, tmp_path, name):
    """The operands are those that the formula names; garbage above a triangle is not used."""
    files = {"Q": "q", "K": "k", "V": "v", "dO": "q", "P": "p", "dS": "p"}
    first, second = (factor.removesuffix("^T") for factor in FACTORS[name])
    x, y = (np.load(matrices(files[factor])) for factor in (first, second))
    x, y = (np.tril(factor) if label in ("P", "dS") else factor for factor, label in ((x, first), (y, second)))
    left, right = (m.T if "^T" in factor else m for m, factor in zip((x, y), FACTORS[name], strict=True))
    truth = np.tril(left @ right) if ATTENTION_PRODUCTS[name].side == "out" else left @ right
    out = tmp_path / "c.npy"
    operands = (matrices(files[first]), matrices(files[second]))
    text = run.ok("run", "auto", *operands, "--causal", name.lower(), "--out", out, "--check")
    assert "check: relative error" in text
    np.testing.assert_allclose(np.load(out), truth, atol=1e-4)


def test_time_compares_the_planners_choice_with_the_vendor(run):
    data = run.json("time", "auto", "40x50x60", "--batch", 2, "--rounds", 3)
    assert [row["what"] for row in data["rows"]] == ["vendor", "auto"]
    assert (data["baseline"], data["basis"], data["gpu"], data["batch"]) == ("vendor", "predicted", None, 2)
    vendor, auto = data["rows"]
    assert (vendor["ratio"], vendor["interval"], vendor["is_baseline"]) == (1.0, None, True)
    assert auto["interval"][0] <= auto["interval"][1]
    assert auto["strategy"] == "vendor"
    assert auto["effective_gflops"] == pytest.approx(2e-9 * 2 * 40 * 50 * 60 / auto["median_s"])
    assert vendor["plan"].startswith("vendor (")


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "int64"])
def test_time_takes_every_dtype(run, dtype):
    data = run.json("time", "auto", 32, "--rounds", 1, "--dtype", dtype, "--strategy", "vendor")
    assert data["dtype"] == dtype
    assert (data["rows"][1]["relative_error"] == 0) == (dtype == "int64")


def test_time_takes_triangular_products_to_the_fastest_of_three_baselines(run):
    data = run.json("time", "auto", "64x16", "--causal", "qk", "--rounds", 3)
    assert data["size"] == [64, 16, 64]
    assert [row["what"] for row in data["rows"]] == ["vendor", "strips", "halving", "auto"]
    best = min((row for row in data["rows"] if row["is_baseline"]), key=lambda row: row["median_s"])
    assert data["baseline"] == best["what"]
    assert data["rows"][3]["ratio"] == pytest.approx(best["median_s"] / data["rows"][3]["median_s"])
    assert "ratios are to" in run("time", "auto", 64, "--causal", "pv", "--rounds", 1)[1]


def test_nothing_wrong_is_timed(run, monkeypatch):
    monkeypatch.setattr(CpuBench, "errors", lambda *_: lambda product: 1.0)
    code, out, err = run("time", "auto", 32, "--rounds", 1)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("lcma: vendor came out wrong: relative error 1.0e+00; nothing was timed")


def test_sizes_and_devices():
    assert str(Device("cuda", 3)) == "cuda:3"
    assert sizes_of("7") == (7, 7, 7)
    assert sizes_of("2X3x4") == (2, 3, 4)
    assert [sizes_of("8x3", name) for name in ("QK", "PV", "dV", "dP")] == [(8, 3, 8), (8, 8, 3), (8, 8, 3), (8, 3, 8)]


PLANNED = ("plan", 4096, 4096, 4096, "--profile", "amd-epyc-9k84")


def test_plan_explains_products_of_every_kind_alike(run, no_gpu):
    kinds = (
        PLANNED,
        ("plan", 8192, 8192, 8192, "--device", "cuda"),
        ("plan", 8192, 4096, 8192, "--device", "cuda", "--causal", "qk"),
        ("plan", 4096, 1024, 4096, "--causal", "qk"),
        ("plan", 512, 512, 512, "--batch", 8, "--device", "cuda:0", "--dtype", "bfloat16"),
    )
    for arguments in kinds:
        text = run.ok(*arguments, "--explain")
        assert [word in text for word in ("plan:  ", "predicted:", "flop/byte")] == [True] * 3, arguments
        data = run.json(*arguments)
        assert data["basis"] == "predicted"
        assert data["ratio"] == pytest.approx(data["baseline_seconds"] / data["predicted_seconds"])
        by = {term["candidate"] for term in data["terms"]}
        assert data["baseline"] in by
        mine = [term["seconds"] for term in data["terms"] if term["candidate"] != data["baseline"]]
        if data["ratio"] != 1:
            assert sum(mine) == pytest.approx(data["predicted_seconds"])
            assert data["margins"]
            assert data["considered"][0]["seconds"] == pytest.approx(data["predicted_seconds"])


@pytest.mark.parametrize("rate", ["1e30", "1" + 30 * "0", "1e-300"])
def test_a_profile_with_a_rate_that_no_machine_has_is_unreadable(run, tmp_path, rate):
    path = tmp_path / "profile.json"
    text = published()["amd-epyc-9k84"].to_json()
    path.write_text(re.sub(r'"rate": [0-9.e+]+', f'"rate": {rate}', text, count=1))
    run.refused(65, "must be a number from 1 to 1e+18", "plan", 64, 64, 64, "--profile", path)


def test_suggest_lists_the_planners_proposals(run, no_gpu):
    sizes = (8192, 8192, 8192)
    data = run.json("suggest", *sizes, "--device", "cuda", "--top", 3)
    assert len(data["candidates"]) == 3
    seconds = [one["seconds"] for one in data["candidates"]]
    assert seconds == sorted(seconds)
    assert all(len(digest) == 64 for one in data["candidates"] for digest in one["digests"])
    plan = run.json("plan", *sizes, "--device", "cuda")
    assert plan["predicted_seconds"] == pytest.approx(seconds[0])
    assert "ratio to baseline" in run("suggest", *sizes, "--profile", "amd-epyc-9k84")[1]


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


def test_a_lack_of_memory_is_one_line(run, monkeypatch, matrices):
    def exhausted(self, a, b, out=None):
        raise MemoryError

    monkeypatch.setattr(NumpyProduct, "run", exhausted)
    run.refused(3, "out of memory", "run", "auto", matrices("q"), matrices("w"))
