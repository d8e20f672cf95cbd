"""Kronecker-sparse matrices from the command: `run K X`, `time K`, the suite `ks`."""

import json
import math

import numpy as np
import pytest

from lcma import kronecker
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern
from lcma.kernels.structured.pattern import chain_reason, parse_patterns
from lcma.workbench.bench.ks_patterns import paper_patterns, sample


@pytest.fixture
def files(stored):
    """A stored matrix, and inputs in both layouts."""
    return stored(kronecker, FactoredMatrix.random(kronecker.monarch(12, 24, 3)))


def test_time_compares_with_every_baseline_that_can_run(run, files):
    _, _, folder = files
    for layout in ("bsf", "bsl"):
        found = run.json("time", folder / "k.npz", "--batch", "64", "--rounds", "2", "--layout", layout)
        assert found["kronecker"] == [[1, 4, 4, 3], [3, 4, 8, 1]]
        assert [row["what"] for row in found["rows"]][-1] == "auto"
        assert {"bmm", "einsum", "dense"} <= {row["what"] for row in found["rows"]}
        assert all(row["relative_error"] < 1e-6 for row in found["rows"])


def test_a_baseline_that_cannot_run_is_left_out(run, files, monkeypatch):
    from lcma.errors import PlanError
    from lcma.workbench.bench.baselines import kronecker

    def fail(*_):
        raise PlanError("a library lacks the dtype")

    _, _, folder = files
    arguments = ("time", folder / "k.npz", "--batch", "64", "--rounds", "2")
    monkeypatch.setitem(kronecker.PRODUCTS, "csr", fail)
    names = [row["what"] for row in run.json(*arguments)["rows"]]
    assert ("csr" in names, names[-1]) == (False, "auto")
    monkeypatch.setitem(kronecker.PRODUCTS, "bmm", fail)
    run.refused(3, "a library lacks the dtype", *arguments)


def test_suggest_ranks_patterns_within_the_density(run):
    base = ("suggest", "1024", "512")
    rows = run.json(*base, "--density", "0.25", "--top", "50")["candidates"]
    assert len(rows) > 5
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    for row in rows:
        structure = KroneckerSparse(parse_patterns(row["patterns"]))
        assert (structure.rows, structure.cols) == (1024, 512)
        assert row["density"] == structure.density <= 0.25
        assert len(structure.patterns) == 1 or chain_reason(structure.patterns) is None
    text = run.said(0, *base, "--density", "0.25")
    assert ("ratio to dense" in text, "padded" in text) == (True, False)
    assert "192 x 128" in run.said(0, "suggest", "130", "97", "--density", "0.5")


def test_structure_tells_error_and_speed_of_a_weight(run, tmp_path):
    matrix = FactoredMatrix.random(kronecker.monarch(64, 64, 4), dtype="float64")
    np.save(tmp_path / "w.npy", matrix.dense())
    rows = run.json("structure", tmp_path / "w.npy", "--density", "0.5", "--top", "99")["candidates"]
    errors = {row["patterns"]: row["error"] for row in rows}
    assert list(errors.values()) == sorted(errors.values())
    assert errors["(1,16,16,4)(4,16,16,1)"] < 1e-12
    assert max(errors.values()) > 0.1
    pytest.importorskip("matplotlib")
    assert "error" in run.ok("structure", tmp_path / "w.npy", "--density", "0.5", "--picture", tmp_path / "w.svg")
    assert "<svg" in (tmp_path / "w.svg").read_text()


def test_one_list_is_factorised_by_every_algorithm(run, tmp_path):
    patterns = "(1,16,4,4)(4,4,16,1)"
    matrix = FactoredMatrix.random(kronecker.monarch(64, 64, 4), dtype="float64")
    np.save(tmp_path / "w.npy", matrix.dense())
    arguments = ("structure", tmp_path / "w.npy", "--patterns", patterns)
    found = run.json(*arguments, "--out", tmp_path / "k.npz")
    rows = {row["by"]: row for row in found["algorithms"]}
    assert set(rows) == {"hierarchical", "alternating"}
    assert [row["error"] for row in found["algorithms"]] == sorted(row["error"] for row in rows.values())
    assert rows["hierarchical"]["error"] <= rows["hierarchical"]["bound"] * (1 + 1e-9)
    assert all(row["seconds"] > 0 and row["refused"] is None for row in rows.values())
    assert found["speed"]["patterns"] == patterns
    stored = kronecker.load(tmp_path / "k.npz").dense()
    error = np.linalg.norm(stored - matrix.dense()) / np.linalg.norm(matrix.dense())
    assert error == pytest.approx(min(row["error"] for row in rows.values()), rel=1e-6)
    run.said(3, "structure", tmp_path / "w.npy", "--patterns", "(1,32,8,3)(6,4,16,1)", "--by", "hierarchical")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((96, 96)))
    text = run.ok("structure", tmp_path / "v.npy", "--patterns", "(1,32,8,3)(6,4,16,1)")
    assert "is not chainable" in text or "no integer" in text


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
