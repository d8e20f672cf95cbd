"""Plans for a GPU that is not here."""

import json

import pytest
from click.testing import CliRunner

from lcma.errors import PlanError
from lcma.kernels import Machine, Request, decision_for
from lcma.kernels.cuda import machine
from lcma.kernels.cuda.cost_model import CudaCostModel
from lcma.kernels.cuda.estimate import device_profile
from lcma.kernels.cuda.h200 import NAME, h200
from lcma.kernels.cuda.machine import cuda_machine
from lcma.kernels.planning.profiles import find_profile
from lcma.kernels.ring import exact_ring
from lcma.workbench.cli import cli
from lcma.workbench.commands.plan import command
from lcma.workbench.commands.tune import require_prices

from ..gpu import H200

pytestmark = pytest.mark.usefixtures("no_gpu")


def decide(*sizes_and_dtype):
    request = Request(*sizes_and_dtype, device="cuda")
    return decision_for(request, machine=H200)


def test_the_decision_says_what_was_considered():
    found = decide(8192, 8192, 8192, "float32")
    assert found.plan.candidate.source is not None
    assert found.gain > 1.2
    times = [proposal.bound for proposal in found.proposals]
    assert times == sorted(times)
    assert sum(stage.seconds for stage in found.plan.stages) == pytest.approx(found.plan.seconds)


def test_small_products_are_the_vendors_and_the_reason_is_given():
    tiny = decide(256, 256, 256, "bfloat16")
    assert (tiny.plan.label, tiny.gain) == ("vendor", 1.0)
    assert "launches alone" in tiny.reason
    assert "nothing is predicted to be faster" in decide(4096, 4096, 4096, "bfloat16").reason


def test_profiles_come_from_a_file_the_gpu_or_the_h200(tmp_path, monkeypatch):
    assert cuda_machine().profile is h200()
    assert find_profile(NAME) == h200()
    path = tmp_path / "mine.json"
    path.write_text(h200().to_json())
    assert find_profile(str(path)) == h200()
    with pytest.raises(PlanError, match="nvidia-h200"):
        find_profile(str(tmp_path / "none.json"))


class Properties:
    """What torch reports of a GPU with half the multiprocessors of an H200, at its clock and bandwidth."""

    multi_processor_count = 66
    clock_rate = 1_980_000
    memory_clock_rate = 3_125_000
    memory_bus_width = 6144


def test_a_gpu_that_was_never_measured_has_an_estimate_that_chooses_nothing(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(machine, "device_reason", lambda index=None: None)
    monkeypatch.setattr(machine, "device_id", lambda index: "cuda-mine")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "mine")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties)
    machine._unmeasured.cache_clear()
    unknown = cuda_machine()
    machine._unmeasured.cache_clear()
    profile = unknown.profile
    assert (profile.id, profile.hardware, profile.source) == ("cuda-mine", "mine", "estimated")
    assert profile.gemm[0].rate == pytest.approx(h200().gemm[0].rate / 2)
    assert profile.bandwidth == pytest.approx(h200().bandwidth, rel=0.01)
    request = Request(8192, 8192, 8192, device="cuda")
    found = decision_for(request, machine=unknown)
    assert found.is_baseline
    assert "nothing was timed on this machine yet" in found.reason
    assert found.proposals[0].candidate.source is not None
    require_prices(request, unknown)


def test_a_gpu_of_a_shipped_kind_has_its_rates():
    found = device_profile("NVIDIA H100 80GB HBM3", Properties)
    assert (found.id, found.source) == ("nvidia-h100", "published")
    shipped = Machine("cuda", found, CudaCostModel(found))
    assert decision_for(Request(8192, 8192, 8192, device="cuda"), machine=shipped).plan.candidate.source is not None


def test_products_without_rates_of_their_own_can_be_tuned():
    sizes, ring = (512, 512, 512), exact_ring("GF(1021)")
    for request in (
        Request(*sizes, "int8", device="cuda", max_abs=31),
        Request(*sizes, "bfloat16", device="cuda", precision="fp8"),
        Request(*sizes, device="cuda", precision="fp32-accurate"),
        Request(*sizes, "int64", device="cuda", ring=ring),
        Request(*sizes, device="cuda"),
    ):
        require_prices(request, H200)


def test_the_command_plans_for_a_gpu():
    sizes = ["8192"] * 3
    shown = CliRunner().invoke(command, [*sizes, "--device", "cuda", "--explain"])
    assert shown.exit_code == 0, shown.output
    assert "NVIDIA H200 (published, nvidia-h200)" in shown.output
    data = json.loads(CliRunner().invoke(cli, ["plan", *sizes, "--device", "cuda", "--json"]).output)
    assert data["predicted_seconds"] < data["baseline_seconds"]
    refused = CliRunner().invoke(command, [*sizes, "--device", "cuda", "--dtype", "int8"])
    assert isinstance(refused.exception, PlanError)
