"""The tables of the Kronecker-sparse benchmark, from invented rows."""

import json

import numpy as np
import pytest

from lcma.workbench.bench.ks_tables import BEST, COMPARISONS, UNTIMED, fit, products, tables, times_of, won
from lcma.workbench.bench_report import benchmarks_page
from lcma.workbench.figures.kronecker import BMM_FIGURE, GENERIC_FIGURE, Speedup, by_decade, layout_ratios, speedups


@pytest.fixture
def stored(tmp_path):
    """stored(rows): the folder of results with them, as those of a GPU."""

    def store(rows):
        lines = (json.dumps({"suite": "ks", "code": "0", **one}) for one in rows)
        (tmp_path / "ks-cuda.jsonl").write_text("\n".join(lines) + "\n")
        return tmp_path

    return store


def row(layout, pattern, density, predicted=None, dtype="float32", **ms):
    figures = {"ms": ms, "density": density, "h": density / 2, "size": 1 / density, "permutations": 0.25}
    return {
        "key": f"{layout} {dtype} {pattern}",
        "figures": {**figures, "predicted_ms": predicted},
        "refused": None,
        "contended": False,
        "options": {"device": "cuda"},
    }


ROWS = [
    row("bsf", "(1,2,2,2)", 0.25, auto=1.0, bmm=2.0, einsum=4.0, bsr=5.0, csr=9.0, dense=3.0),
    row("bsl", "(1,2,2,2)", 0.25, auto=2.0, bmm=1.5, einsum=4.0, bsr=5.0, csr=9.0, dense=8.0),
    row("bsf", "(1,2,2,9)", 0.1, auto=3.0, bmm=2.0, einsum=4.0, bsr=5.0, csr=9.0, dense=1.0),
    {"key": "bsl float32 (1,2,2,9)", "figures": {}, "refused": "no memory"},
]


def test_times_are_by_layout_and_the_best_of_both():
    assert list(times_of(ROWS, "float32", "bsl")) == ["(1,2,2,2)"]
    least = {"auto": 1.0, "bmm": 1.5, "einsum": 4.0, "bsr": 5.0, "csr": 9.0, "dense": 3.0}
    assert times_of(ROWS, "float32", BEST) == {"(1,2,2,2)": least}
    assert times_of(ROWS, "float16", "bsf") == {}


def test_comparisons_take_the_fastest_of_each_side():
    times = list(times_of(ROWS, "float32", "bsf").values())
    aware, bmm, auto = (one.ratios(times) for one in COMPARISONS)
    assert aware == [3.0, 0.5]
    assert bmm == [1.5, 0.5]
    assert auto == pytest.approx([2.0, 1 / 3])
    assert won(auto) == (50.0, 2.0)
    assert won([0.5]) == (0.0, None)
    assert COMPARISONS[2].ratios([{"auto": 1.0}]) == []


def test_a_law_of_powers_is_fitted_exactly():
    rng = np.random.default_rng(0)
    density, h = rng.uniform(0.01, 1, 20), rng.uniform(0.01, 0.1, 20)
    speedups = 2 * density**-0.3 * h**0.5
    assert fit(speedups, density, h) == pytest.approx((np.log(2), -0.3, 0.5, 1.0))
    noisy = speedups * np.exp(rng.standard_normal(20))
    u, v, w, adjusted = fit(noisy, density, h)
    rest = np.log(noisy) - u - v * np.log(density) - w * np.log(h)
    assert adjusted == pytest.approx(1 - (1 - (1 - rest.var() / np.log(noisy).var())) * 19 / 17)
    assert fit([1.0] * 20, density, h)[3] == 0.0


def test_the_papers_figures_stand_beside_ours():
    text = "\n".join(tables(ROWS))
    assert "| bsf | auto < min(bmm, einsum, bsr, csr, dense) | 2 | 50 | 2 | 1.167 | Table 6: 20.41, 1.26 |" in text
    assert "| best of both | bmm < min(einsum, bsr, csr, dense) | 1 | 100 | 2 | 2 | Table 2: 90, 1.36 |" in text
    assert "| 49.99% to 87.49% | 1 | 100 | 1.5 |  | 86, 86, 1.23, 0.76 |" in text
    assert "bsf: bmm spends 25%, 25%, 25% of its time in permutations (q10, q50, q90) (paper: 10% to 50%)" in text
    assert "At least" not in text


def test_the_papers_regression_stands_beside_the_fit_of_both_layouts():
    rows = [
        row(layout, f"(1,2,2,{d})", 1 / d, auto=1.0, bmm=0.5 * d**0.25, einsum=9.0, dense=1.0)
        for layout in ("bsf", "bsl")
        for d in (1, 2, 4, 16, 64)
    ]
    (line,) = (line for line in tables(rows) if line.startswith("- best of both: log"))
    assert line.endswith("4 patterns (paper: 1.69 - 0.031 log density + 0.325 log h, R2 0.697)")


def test_baselines_that_were_not_timed_bound_the_ratios(stored):
    hopeless = [
        row("bsf", "(1,2,2,2)", 0.25, 0.5, auto=1.0, bmm=2.0, einsum=4.0),
        row("bsl", "(1,2,2,2)", 0.25, 1.0, auto=2.0, bmm=1.5, einsum=4.0, csr=3.0),
    ]
    assert times_of(hopeless, "float32", "bsf")["(1,2,2,2)"][UNTIMED] == 4.0
    assert times_of(hopeless, "float32", "bsl")["(1,2,2,2)"][UNTIMED] == 8.0
    best = [times_of(hopeless, "float32", BEST)["(1,2,2,2)"]]
    assert best[0][UNTIMED] == 4.0
    first, last = ([*times_of(hopeless, "float32", layout).values()] for layout in ("bsf", "bsl"))
    assert COMPARISONS[0].ratios(first) == [4.0]
    assert COMPARISONS[0].bounded(first) == 1
    assert COMPARISONS[0].ratios(last) == [2.0]
    assert COMPARISONS[0].bounded(last) == 0
    assert COMPARISONS[2].ratios(first) == [2.0]
    assert COMPARISONS[2].bounded(first) == 0
    text = "\n".join(tables(hopeless))
    compared = "min(auto, bmm, einsum, bsr) < min(csr, dense)"
    assert f"| bsf | {compared} | 1 | 100 | >= 4 | >= 4 | Table 6: 97.61, 18.5 |" in text
    assert f"| bsl | {compared} | 1 | 100 | 2 | 2 | Table 6: 98.09, 6.53 |" in text
    assert "At least (>=): csr and dense were not timed" in text
    assert speedups(GENERIC_FIGURE, stored(hopeless)) == [Speedup(4.0, 4.0, True)]


OTHERS = [
    {"key": "gradients bsl float32 (1,2,2,2)", "figures": {"ms": {"ours": 1.0}, "ratio": 2.0}, "refused": None},
    {
        "key": "energy bsl float32 (1,2,2,2)",
        "figures": {"energy_over_bmm": 0.5, "energy_over_best": 0.75, "joules": {"auto": 1.0}},
        "refused": None,
    },
]


def test_figures_have_a_point_for_each_pattern_timed_in_both_layouts(stored):
    results = stored([*OTHERS, *ROWS])
    assert products([*OTHERS, *ROWS]) == ROWS[:3]
    assert speedups(GENERIC_FIGURE, results) == [Speedup(4.0, 3.0, False)]
    assert speedups(BMM_FIGURE, results) == [Speedup(4.0, 4.0 / 1.5, False)]
    assert layout_ratios(results)["bmm"] == [2.0 / 1.5]
    assert layout_ratios(stored(ROWS[:1])) == {}
    assert by_decade([Speedup(10.0, 2.0, False), Speedup(9.0, 1.0, False), Speedup(99.0, 3.0, True)]) == {
        0: [1.0],
        1: [2.0, 3.0],
    }


def test_the_page_of_benchmarks_has_the_tables(stored):
    page = benchmarks_page(stored([*OTHERS, *ROWS]))
    assert "Table 2: 98.1, 6.5" in page
    assert "| float32 | bsl | 1 | 100 | 2 | 2 | 2 |" in page
    assert "| float32 | bsl | bmm | 1 | 100 | 0.5 |  |" in page
