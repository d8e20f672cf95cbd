"""Plans for a GPU that is not here."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lcma.errors import PlanError
from lcma.kernels import Request
from lcma.kernels.cuda.h200 import NAME, h200
from lcma.kernels.dense import decision
from lcma.kernels.dense.decision import gpu_decision, gpu_profile
from lcma.workbench.commands.plan import command


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr(decision, "device_reason", lambda: "torch sees no GPU")


def test_the_decision_says_what_was_considered():
    found = gpu_decision(Request(8192, 8192, 8192, "float32", device="cuda"), h200())
    assert found.schemes
    assert found.gain > 1.2
    times = [seconds for seconds, _ in found.considered]
    assert times == sorted(times)
    assert sum(term["seconds"] for term in found.terms() if term["way"] == found.label) == pytest.approx(
        found.plan.seconds
    )


def test_small_products_are_the_vendors_and_the_reason_is_given():
    tiny = gpu_decision(Request(256, 256, 256, "bfloat16", device="cuda"), h200())
    assert (tiny.label, tiny.gain) == ("GEMM", 1.0)
    assert "launches alone" in tiny.reason
    assert "no scheme" in gpu_decision(Request(4096, 4096, 4096, "bfloat16", device="cuda"), h200()).reason


def test_profiles_come_from_a_file_the_gpu_or_the_h200(tmp_path, monkeypatch):
    assert gpu_profile(None) is gpu_profile(NAME) is h200()
    path = tmp_path / "mine.json"
    path.write_text(h200().to_json())
    assert gpu_profile(str(path)) == h200()
    with pytest.raises(PlanError, match="or nvidia-h200"):
        gpu_profile(str(tmp_path / "none.json"))
    monkeypatch.setattr(decision, "device_reason", lambda: None)
    monkeypatch.setattr(decision, "device_profile", lambda index: None)
    with pytest.raises(PlanError, match="was not measured"):
        gpu_profile(None)


def test_the_command_plans_for_a_gpu():
    sizes = ["8192"] * 3
    shown = CliRunner().invoke(command, [*sizes, "--device", "cuda", "--explain"])
    assert shown.exit_code == 0, shown.output
    assert "NVIDIA H200 (published, nvidia-h200)" in shown.output
    assert "ratio to GEMM" in shown.output
    data = json.loads(CliRunner().invoke(command, [*sizes, "--device", "cuda", "--json"]).output)
    assert data["predicted_seconds"] < data["gemm_seconds"]
    assert {term["way"] for term in data["terms"]} == {"GEMM", data["chosen"]}
    refused = CliRunner().invoke(command, [*sizes, "--device", "cuda", "--dtype", "int8"])
    assert isinstance(refused.exception, PlanError)
