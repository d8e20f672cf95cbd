"""Options that change one thing of a command, and that no other test needs."""

import numpy as np

from lcma.kernels import safetensors
from lcma.search.improve.run import ImprovementPlan
from lcma.workbench.commands import improve


def test_a_format_that_is_named_is_not_guessed(run, tmp_path):
    scheme = tmp_path / "s"
    assert run("export", "strassen", "--format", "exp", "--out", scheme)[0] == 0
    assert run("convert", scheme, tmp_path / "right.json", "--from", "exp")[0] == 0
    assert run("convert", scheme, tmp_path / "wrong.json", "--from", "sms")[0] == 65
    assert not (tmp_path / "wrong.json").exists()


def test_explore_stops_at_its_limit(run):
    whole = run("explore", "naive:2x2x2", "--radius", "1")[1]
    cut = run("explore", "naive:2x2x2", "--radius", "1", "--limit", "3")[1]
    assert "cut at" not in whole
    assert "3 schemes of rank 8" in cut
    assert "cut at 3" in cut


def test_additions_of_a_scheme_as_it_is(run):
    data = run.json("additions", "strassen", "--as-is", "--time", "0.1s", "--seed", "1")
    shown = run.json("show", "strassen")
    assert data["digest"] == shown["digest"]


def test_improve_hands_retry_to_the_run(run, monkeypatch):
    seen = []
    monkeypatch.setattr(improve, "plan", lambda config: seen.append(config.retry) or ImprovementPlan([], {}))
    for more in ((), ("--retry",)):
        assert run("improve", "2x2x2", "--dry-run", *more)[0] == 0
    assert seen == [False, True]


def test_lift_looks_for_ternary_coefficients_by_all_means(run, tmp_path):
    assert run("search", "2x2x2", "--rank", 7, "--ring", "Z2", "--out", tmp_path / "run")[0] == 0
    assert "ternary (100%)" in run.ok("lift", tmp_path / "run", "--sparse", "--walk", "2", "--signs", "1s")


def test_resume_takes_no_address_of_nothing(run, tmp_path):
    assert run("search", "2x2x2", "--rank", 7, "--out", tmp_path / "run")[0] == 0
    run.refused(3, "head:", "resume", tmp_path / "run", "--ray", "head:")


def test_compress_descends_until_the_tolerance(run, tmp_path):
    weight = np.random.default_rng(0).standard_normal((32, 32), dtype=np.float32)
    model = tmp_path / "m.safetensors"
    model.write_bytes(b"".join(safetensors.chunks({"up.weight": ("F32", weight)}, {})))
    errors = []
    for number, tolerance in enumerate(("0", "0.9")):
        out = tmp_path / f"{number}.safetensors"
        what = f"blast:blocks=4:steps=60:tolerance={tolerance}"
        found = run.json("compress", model, "--out", out, "--kind", what, "--layout", "linear", "--device", "cpu")
        errors.append(found["layers"][0]["error"])
    assert errors[0] < errors[1]


def test_structure_repeats_random_factors_by_their_seed(run, tmp_path):
    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((16, 16)))
    line = ("structure", tmp_path / "w.npy", "--patterns", "(1,4,4,4)(4,4,4,1)", "--by", "alternating", "--json")
    first, again, other = (
        {key: value for row in run.json(*line, "--seed", seed)["algorithms"] for key, value in row.items()}
        for seed in ("1", "1", "2")
    )
    assert first["error"] == again["error"] != other["error"]


def test_tune_multiplies_small_integers(run):
    line = ("tune", "32", "32", "32", "--dtype", "int8", "--rounds", "1", "--top", "1")
    assert "max_abs" in run(*line)[2]
    assert {one["relative_error"] for one in run.json(*line, "--max-abs", "5")[0]["candidates"]} == {0.0}


def test_bench_lists_rows_of_the_threads_that_are_named(run):
    text = run.ok("bench", "cpu", "--rows", "* 1T", "--dtype", "float32", "--seed", "3", "--dry-run")
    assert ("float32 2048 1T" in text, "2T" in text, "float64" in text) == (True, False, False)
