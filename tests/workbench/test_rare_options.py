"""Options that change one thing of a command, and that no other test needs."""

import numpy as np

from lcma.kernels import safetensors
from lcma.search.improve.run import ImprovementPlan
from lcma.workbench.commands import improve


def test_improve_hands_retry_to_the_run(run, monkeypatch):
    seen = []
    monkeypatch.setattr(improve, "plan", lambda config: seen.append(config.retry) or ImprovementPlan([], {}))
    for more in ((), ("--retry",)):
        assert run("improve", "2x2x2", "--dry-run", *more)[0] == 0
    assert seen == [False, True]


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


def test_the_cache_is_shown_and_cleared(run, home):
    (home / "cache" / "kernels").mkdir(parents=True)
    (home / "cache" / "kernels" / "x").write_text("0123")
    assert run.json("cache")["bytes"] == 4
    assert "cleared" in run("cache", "--clear")[1]
    assert run.json("cache")["files"] == 0
