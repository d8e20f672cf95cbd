"""Counts of operations, memory traffic and blocks beyond C, against counts that are known otherwise."""

from fractions import Fraction

import numpy as np
import pytest

import lcma
from lcma.workbench.analysis import causal
from lcma.workbench.analysis.counts import MODELS, PRINTED, Operations, operations, saved, standard, traffic
from lcma.workbench.analysis.pebbling import blocks_beyond, sums_of, weights


@pytest.mark.parametrize("product", ["QK", "PV"])
@pytest.mark.parametrize("levels", [0, 1, 3])
def test_the_classical_blocks_take_what_the_standard_algorithm_takes(product, levels):
    blocks = lcma.naive(lcma.parse_target("4x4x4:tri-left"))
    assert operations(blocks, product, 128, 192, levels) == standard(product, 128, 192)


def test_the_standard_algorithm_by_counting():
    length, width = 7, 3
    cells = [(i, j) for i in range(length) for j in range(i + 1)]
    assert standard("QK", length, width) == Operations(len(cells) * width, len(cells) * (width - 1))
    assert standard("PV", length, width) == Operations(len(cells) * width, sum(i * width for i in range(length)))


def test_an_exact_cover_of_large_sizes_comes_down_to_the_products():
    scheme = lcma.resolve("eca-stage1")[0]
    multiplied = operations(scheme, "QK", 1 << 20, 1 << 20).multiplications
    assert abs(multiplied / (1 << 60) - 29 / 64) < 1e-6


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_published_savings_of_three_models(model):
    """ECA, section 3.2: between 5% and 8%."""
    scheme = lcma.resolve("eca-stage1")[0]
    for product in ("QK", "PV"):
        assert 0.05 < saved(scheme, product, model.length, model.width) < 0.08


def test_where_our_count_of_the_published_identities_differs():
    one, two = (traffic(lcma.resolve(f"eca-stage{i}")[0], product) for i, product in ((1, "QK"), (2, "PV")))
    assert (one.operand, one.uploads, one.merge) == (PRINTED["QK"].operand, PRINTED["QK"].uploads, PRINTED["QK"].merge)
    assert (two.operand, two.merge) == (Fraction(72, 16), Fraction(72, 16))
    assert (PRINTED["PV"].operand, PRINTED["PV"].merge) == (Fraction(71, 16), Fraction(68, 16))
    assert one.products == two.products == Fraction(292, 256) != PRINTED["QK"].products


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


@pytest.mark.parametrize(
    ("name", "beyond"),
    [("eca-stage1", 0), ("4x4x4-tri-out-r34-sparse", 0), ("4x4x4-tri-out-r34", 2), ("strassen", 1)],
)
def test_the_least_number_of_blocks_beyond_the_output(name, beyond):
    assert blocks_beyond(lcma.resolve(name)[0]) == beyond


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
