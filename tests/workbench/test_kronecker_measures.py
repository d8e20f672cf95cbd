"""Energy, gradients and rounds of Kronecker-sparse products, without a GPU: the meter of a fake library, and tables."""

import statistics
import time
from types import SimpleNamespace

import numpy as np
import pytest

from lcma.kernels.cuda import clock
from lcma.kernels.kronecker import Pattern
from lcma.kernels.structured.naive import multiply
from lcma.workbench import gpu_nvml
from lcma.workbench.bench.ks_measures import energy_figures, energy_lines, gradient_lines, permuted_product
from lcma.workbench.bench.ks_patterns import paper_patterns, sample
from lcma.workbench.bench.suites.ks import worth_timing
from lcma.workbench.gpu_nvml import GpuMonitor, NvmlMeter, energy_of

NAMES = {
    "nvmlInit_v2": "start",
    "nvmlDeviceGetHandleByUUID": "by_uuid",
    "nvmlDeviceGetHandleByIndex_v2": "by_index",
    "nvmlDeviceGetTotalEnergyConsumption": "energy",
    "nvmlDeviceGetPowerUsage": "draw",
    "nvmlDeviceGetClockInfo": "tick",
}


class Driver:
    """NVML of one GPU that draws 200 W, with a counter of energy or without."""

    def __init__(self, counts=True, power=True):
        self.counts, self.power, self.asked = counts, power, []

    def __getattr__(self, name):
        if name not in NAMES:
            raise AttributeError(name)
        return getattr(self, NAMES[name])

    def start(self):
        return 0

    def by_uuid(self, name, device):
        self.asked.append(name.value)
        return 0

    def by_index(self, number, device):
        self.asked.append(number.value)
        return 0

    def energy(self, device, value):
        value._obj.value = int(200_000 * time.perf_counter())
        return 0 if self.counts else 3

    def draw(self, device, value):
        value._obj.value = 200_000
        return 0 if self.power else 3

    def tick(self, device, which, value):
        self.asked.append(which)
        value._obj.value = 1600 if self.power else 1700
        return 0


@pytest.mark.parametrize("counts", [True, False])
def test_joules_are_power_times_seconds(counts):
    driver = Driver(counts)
    meter = NvmlMeter(driver, "GPU-1234")
    assert driver.asked == [b"GPU-1234"]
    began = time.perf_counter()
    joules = meter.joules(lambda: time.sleep(0.1))
    assert 19 < joules <= 200 * (time.perf_counter() - began) + 1
    assert NvmlMeter(driver, "3").joules(lambda: time.sleep(0.1)) > 0
    assert driver.asked[-1] == 3


def test_what_is_not_readable_is_none_and_the_work_is_done():
    done = []
    assert NvmlMeter(Driver(counts=False, power=False), "0").joules(lambda: done.append(1)) is None
    assert done == [1]
    broken = Driver()
    broken.start = lambda: 999
    assert NvmlMeter(broken, "0").joules(lambda: done.append(2)) is None
    assert done == [1, 2]
    assert energy_of({"one": lambda: None}, None, {"one": 1.0}, lambda: None) == {"one": None}


@pytest.mark.parametrize("power", [True, False])
def test_the_state_of_a_gpu_is_a_median_of_what_is_readable(power, monkeypatch):
    driver = Driver(power=power)
    monkeypatch.setattr(gpu_nvml, "gpu_meter", lambda: NvmlMeter(driver, "0"))
    with GpuMonitor() as monitor:
        time.sleep(0.01)
    assert driver.asked[-1] == gpu_nvml.SM_CLOCK
    assert str(monitor.state) == (
        "SM clock 1600 MHz, power 200 W" if power else "SM clock 1700 MHz, power not readable"
    )
    monkeypatch.setattr(gpu_nvml, "gpu_meter", lambda: None)
    with GpuMonitor() as monitor:
        pass
    assert str(monitor.state) == "SM clock not readable, power not readable"


def test_windows_are_as_long_as_asked_and_warmed_up():
    counts, marks = {"fast": 0, "slow": 0}, []

    class Counter:
        def joules(self, work):
            before = dict(counts)
            work()
            marks.append({name: counts[name] - before[name] for name in counts})
            return 60.0

    def call(name):
        counts[name] += 1

    calls = {name: lambda name=name: call(name) for name in counts}
    found = energy_of(calls, Counter(), {"fast": 0.01, "slow": 3.0}, lambda: None, window=1.0)
    assert marks == [{"fast": 100, "slow": 0}, {"fast": 0, "slow": 1}]
    assert counts == {"fast": 150, "slow": 2}
    assert found == {"fast": 0.6, "slow": 60.0}


def row(key, **joules):
    return {"key": key, "refused": None, "figures": energy_figures(joules)}


def test_the_table_says_how_often_less_is_taken():
    rows = [
        row("energy bsl float32 (1,2,2,2)", auto=1.0, bmm=2.0, einsum=4.0, bsr=1.5),
        row("energy bsl float32 (1,2,2,3)", auto=3.0, bmm=2.0, einsum=4.0),
        row("energy bsf float32 (1,2,2,2)", auto=None, bmm=None),
        {"key": "energy bsl float32 (1,2,2,9)", "figures": {}, "refused": "no memory"},
    ]
    lines = list(energy_lines(rows))
    assert "| float32 | bsl | bmm | 2 | 50 | 1 |  |" in lines
    assert "| float32 | bsl | min(bmm, einsum, bsr) | 2 | 50 | 1.08 | 72, 0.85 |" in lines
    assert "| float32 | bsf | bmm | 1 | not readable |  |  |" in lines
    assert rows[2]["figures"]["readable"] == "not readable"


def test_every_beginning_of_a_sample_is_spread_over_the_strata():
    some = sample(paper_patterns(), 120)
    groups = np.array([0 if one.d == 1 else 1 if one.d < 16 else 2 for one in some])
    for count in (20, 40, 80):
        shares = np.bincount(groups[:count], minlength=3) / count
        assert (abs(shares - np.array([22, 301, 304]) / 627) < 0.08).all()


def test_flags_belong_to_their_suites(run):
    for what, count in (("energy", 120), ("gradients", 40)):
        text = run.ok("bench", "ks", "--measure", what, "--device", "cuda", "--dry-run")
        assert text.count(f"{what} bsl float32") == count


@pytest.mark.parametrize("first", [True, False])
def test_the_baseline_multiplies_and_is_differentiable(first):
    torch = pytest.importorskip("torch")
    pattern = Pattern(2, 3, 4, 5)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(pattern.parameter_shape, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.randn(pattern.cols, 7, generator=generator, dtype=torch.float64)
    found = permuted_product(x.T.contiguous() if first else x, weights, pattern, first)
    truth = multiply([weights.detach().numpy()], [pattern], x.numpy())
    torch.testing.assert_close((found.T if first else found).detach(), torch.from_numpy(truth))
    found.sum().backward()
    assert weights.grad.abs().min() > 0


def test_what_cannot_be_the_best_is_not_timed():
    def kept(pattern, dense, device="cuda", chosen=1e-3, strided=None):
        known = {"dense": dense, "auto": chosen}
        some = tuple(
            SimpleNamespace(
                what=name,
                plan=SimpleNamespace(seconds=known.get(name), request=SimpleNamespace(device=device, n=25088)),
            )
            for name in ("bmm", "dense", "bsr", "csr", "auto")
        )
        return [one.what for one in worth_timing(some, pattern, "bsl", strided)]

    everything = ["bmm", "dense", "bsr", "csr", "auto"]
    assert kept(Pattern(2, 4, 4, 1), 7e-3) == everything
    assert kept(Pattern(2, 4, 4, 1), 9e-3) == ["bmm", "bsr", "csr", "auto"]
    assert kept(Pattern(2, 4, 4, 2), 9e-3) == ["bmm", "csr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3) == ["bmm", "bsr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3, strided=2e-2) == ["bmm", "auto"]
    assert kept(Pattern(4, 1024, 1024, 1), 9e-3, strided=5e-2) == ["bmm", "bsr", "auto"]
    assert kept(Pattern(4, 1024, 1024, 2), 9e-3, "cpu") == ["bmm", "dense", "auto"]
    assert kept(Pattern(4, 1024, 1024, 2), 90.0, "cpu", chosen=10.0) == everything
    assert kept(Pattern(4, 1024, 1024, 2), 9e-3, chosen=None) == everything


def test_the_table_of_gradients():
    rows = [
        {"key": f"gradients bsf float32 (1,{size},8,2)", "refused": None, "figures": {"ratio": ratio}}
        for size, ratio in ((8, 0.5), (16, 1.5), (32, 2.5))
    ]
    assert list(gradient_lines(rows))[-1] == "| float32 | bsf | 3 | 66.7 | 1.5 | 0.5 | 2.5 |"


def test_a_hopeless_contender_has_few_rounds(monkeypatch):
    spent = {"quick": 1.0, "near": 3.0, "slow": 40.0}
    monkeypatch.setattr(clock, "seconds_of", lambda call, repeats=1: spent[call()])
    times = clock.interleaved({name: lambda name=name: name for name in spent}, 5, spent=0.1)
    assert {name: len(seconds) for name, seconds in times.items()} == {"quick": 5, "near": 5, "slow": clock.FEW}
    assert [statistics.median(seconds) for seconds in times.values()] == [1.0, 3.0, 40.0]
