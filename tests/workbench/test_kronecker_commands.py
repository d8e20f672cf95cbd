"""Kronecker-sparse matrices from the command: `run K X`, `time K`, the suite `ks`."""

import json
import math

import numpy as np
import pytest

from lcma import kronecker
from lcma.kernels.kronecker import FactoredMatrix, Pattern
from lcma.workbench.bench.ks_patterns import paper_patterns, sample


@pytest.fixture
def files(stored):
    """A stored matrix, and inputs in both layouts."""
    return stored(kronecker, FactoredMatrix.random(kronecker.monarch(12, 24, 3)))


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
