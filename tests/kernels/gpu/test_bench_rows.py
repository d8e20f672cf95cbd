"""The rows of `lcma bench gpu`, as far as they go without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.workbench.bench import rivals
from lcma.workbench.bench.case import Options
from lcma.workbench.bench.gpu_roofline import pictures, points
from lcma.workbench.bench.suites.gpu import SUITE


def test_rows_have_names_of_their_own_and_refuse_without_a_gpu(monkeypatch):
    from lcma.kernels.gpu import machine

    monkeypatch.setattr(machine, "device_reason", lambda index=None: "torch sees no GPU")
    rows = {case.key: case for case in SUITE.cases(Options("cuda", sample=3))}
    assert len(rows) == len(list(SUITE.cases(Options("cuda", sample=3))))
    for kind in ("tile bfloat16 R=49", "combine float64 R=343", "launch"):
        with pytest.raises(PlanError, match="sees no GPU"):
            rows[kind].run(lambda line: None)
    assert sum(key.startswith("layer ") for key in rows) == 3 * 3
    assert sum(key.startswith("choice ") for key in rows) == 4 * 3


def test_the_roofline_takes_the_best_scheme_at_each_intensity(tmp_path):
    pytest.importorskip("matplotlib")

    def row(recipe, online, offline):
        figures = {
            "ratio": 1.1,
            "flops_per_element": 4096.0,
            "vendor_tflops": 50.0,
            "online_tflops": online,
            "offline_tflops": offline,
        }
        return {"key": f"product float32 6144 {recipe}", "figures": figures, "contended": False}

    rows = [row("2x2x2", 55.0, 56.0), row("3x3x3", 52.0, 60.0), {"key": "launch", "figures": {}, "contended": False}]
    assert points(rows) == {"float32": {1024.0: {"vendor": 50.0, "best": 60.0, "name": "3x3x3"}}}
    pictures(rows, tmp_path / "gpu.svg")
    assert "3x3x3" in (tmp_path / "gpu-roofline.svg").read_text()


def test_rivals_work_the_scheme_with_operations_that_libraries_share():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 6)), rng.standard_normal((6, 9))
    formula = rivals._formula(lcma.resolve("2x2x3")[0], a, b, np.asarray)
    np.testing.assert_allclose(formula(a, b), a @ b, atol=1e-12)
