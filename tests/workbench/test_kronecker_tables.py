"""The tables of the Kronecker-sparse benchmark, from invented rows."""

from __future__ import annotations

import numpy as np
import pytest

from lcma.workbench.bench.ks_tables import BEST, COMPARISONS, draw_figures, fit, tables, times_of, won


def row(layout, pattern, density, **ms):
    figures = {"ms": ms, "density": density, "h": density / 2, "size": 1 / density, "permutations": 0.25}
    return {"key": f"{layout} float32 {pattern}", "figures": figures, "refused": None}


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
    assert 0 < fit(noisy, density, h)[3] < 1
    assert fit([1.0] * 20, density, h)[3] == 0.0


def test_the_papers_figures_stand_beside_ours(tmp_path):
    text = "\n".join(tables(ROWS))
    assert "| bsf | auto < min(bmm, einsum, bsr, csr, dense) | 2 | 50 | 2 | 1.167 | Table 6: 20.41, 1.26 |" in text
    assert "| best of both | bmm < min(einsum, bsr, csr, dense) | 1 | 100 | 2 | 2 | Table 2: 90, 1.36 |" in text
    assert "| 49.99% to 87.49% | 1 | 100 | 1.5 |  | 86, 1.23, 0.76 |" in text
    assert "bsf: bmm spends 25%, 25%, 25%" in text
    pytest.importorskip("matplotlib")
    draw_figures(ROWS, tmp_path / "figures.svg")
    assert "<svg" in (tmp_path / "figures.svg").read_text()
