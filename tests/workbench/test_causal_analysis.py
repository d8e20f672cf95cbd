"""Counts of operations, memory traffic and blocks beyond C, against counts that are known otherwise."""

import numpy as np
import pytest

import lcma
from lcma.workbench.analysis import causal
from lcma.workbench.analysis.pebbling import blocks_beyond, sums_of, weights


def test_the_command_counts_measures_and_draws(home, run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("torch")
    monkeypatch.setattr(causal, "TABLE_SIZE", (64, 16))
    picture = tmp_path / "saved.svg"
    arguments = ("--scheme", "eca-stage1", "--levels", 1, "--errors", "--picture", picture)
    tables = run.json("analyse", "causal", *arguments)
    assert tables["Operations saved, 1 level(s)"][0]["QK %"] == pytest.approx(6.3)
    (placed,) = next(rows for title, rows in tables.items() if title.startswith("Stage I in the blocks of S"))
    assert placed == {"scheme": "eca-stage1", "blocks of S": 10, "beyond": 0, "additions": 62}
    assert "gpt-oss" in picture.read_text()
    errors = tables["Errors of elements at L = 4096, d = 128"]
    assert {row["product"] for row in errors} == {"QK", "PV"}
    worst = {row["dtype"]: float(row["max"]) for row in errors if row["by"] == "eca-stage1"}
    assert 0 < worst["float32"] < worst["float16"] < worst["bfloat16"] < 0.1


def possible(columns, sums, cells):
    """Return whether some order of the products fits: all of them, by the sets of products that can have been done."""
    rank = len(sums)
    reached = {0}
    for _ in range(rank):
        after = set()
        for done in reached:
            for r in range(rank):
                now = done | 1 << r
                if not done >> r & 1 and now not in after:
                    held = np.linalg.matrix_rank(columns[:, [t for t in range(rank) if now >> t & 1]])
                    if held + sums[r] <= cells:
                        after.add(now)
        reached = after
    return bool(reached)


@pytest.mark.parametrize("name", ["strassen", "winograd", pytest.param("2x2x4", marks=pytest.mark.slow)])
def test_no_order_of_the_products_needs_less(name):
    scheme = lcma.resolve(name)[0]
    columns, sums, beyond = weights(scheme), sums_of(scheme), blocks_beyond(scheme)
    assert possible(columns, sums, len(columns) + beyond)
    assert beyond > 0
    assert not possible(columns, sums, len(columns) + beyond - 1)
