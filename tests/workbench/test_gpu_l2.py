"""Hit rates of the L2 by ncu: its output, its failures, and what runs under it. ncu is a script here."""

from __future__ import annotations

import os
import stat
import sys
import time

import pytest

from lcma.workbench.bench import gpu_fused, gpu_l2
from lcma.workbench.bench.gpu_l2 import HIT_RATE, MARK, SECTORS, hit_rates, rates_of

HEADER = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"),
    *("Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
)

KERNELS = (
    (f"at::<unnamed>::{MARK}(long)", "0", "12"),
    ("combine", "50", "1,000"),
    ("nvjet_hsh_128x256", "90.5", "3,000"),
    (f"at::<unnamed>::{MARK}(long)", "0", "12"),
    ("fused_product", "81.25", "123,456"),
)


def output(kernels=KERNELS):
    """What ncu prints of kernels (name, hit rate, sectors), with the lines of the program before."""
    lines = ["a line of the program", '==PROF== Profiling "combine" - 1: 0%....100% - 1 pass']
    lines.append(",".join(f'"{name}"' for name in HEADER))
    for number, (name, rate, sectors) in enumerate(kernels):
        for metric, unit, value in ((HIT_RATE, "%", rate), (SECTORS, "sector", sectors)):
            cells = (number, 7, "python", "host", name, 1, 7, "(1, 1, 1)", "(1, 1, 1)", 0, "9.0", "raw", metric, unit)
            lines.append(",".join(f'"{cell}"' for cell in (*cells, value)))
    return "\n".join([*lines, "==PROF== Disconnected from process 7", ""])


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Put a Python script that is named ncu on an otherwise empty PATH; its arguments are left in a file."""

    def install(body):
        script = tmp_path / "ncu"
        keep = f"import sys, time\nopen({str(tmp_path / 'arguments')!r}, 'w').write('\\n'.join(sys.argv[1:]))\n"
        script.write_text(f"#!{sys.executable}\n{keep}{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return tmp_path / "arguments"

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu_l2, "TOOLKIT", str(tmp_path / "none"))
    return install


def test_kernels_of_a_call_weigh_as_their_sectors():
    rates = rates_of(output(), ["three-stage", "fused"])
    assert rates == {"three-stage": pytest.approx((0.5 * 1000 + 0.905 * 3000) / 4000), "fused": 0.8125}


@pytest.mark.parametrize(
    ("kernels", "names", "message"),
    [
        (KERNELS, ["one", "two", "three"], "counted 2 of 3 calls: ==PROF== Disconnected from process 7"),
        ((), ["one"], "counted 0 of 1 calls"),
        (KERNELS[:4], ["one", "two"], "counted no kernel of two"),
        ((KERNELS[0], ("combine", "n/a", "7")), ["one"], f"counted no {HIT_RATE} of combine"),
    ],
)
def test_output_that_is_incomplete_gives_the_reason(kernels, names, message):
    found = rates_of(output(kernels), names)
    assert found.startswith("not readable: ncu ")
    assert message in found


def test_ncu_runs_the_program_and_leaves_clocks_and_caches_alone(ncu):
    arguments = ncu(f"print({output()!r})")
    assert hit_rates("pass", ["three-stage", "fused"])["fused"] == 0.8125
    given = arguments.read_text().splitlines()
    assert given[-3:] == [sys.executable, "-c", "pass"]
    for option, value in (("--clock-control", "none"), ("--cache-control", "none"), ("--profile-from-start", "off")):
        assert given[given.index(option) + 1] == value
    assert given[given.index("--metrics") + 1] == f"{HIT_RATE},{SECTORS}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance')",
            "the driver reserves its counters for administrators (ERR_NVGPUCTRPERM)",
        ),
        (
            "print('==ERROR== Failed to prepare kernel for profiling', file=sys.stderr); print('later'); sys.exit(9)",
            "ncu ended with 9: Failed to prepare kernel for profiling",
        ),
        ("sys.exit(1)", "ncu ended with 1: no output"),
        ("print('==WARNING== No kernels were profiled.')", "0 of 2 calls: ==WARNING== No kernels were profiled."),
    ],
    ids=["permission", "failure", "silent failure", "no kernels"],
)
def test_what_ncu_refuses_is_not_readable(ncu, body, message):
    ncu(body)
    found = hit_rates("pass", ["one", "two"])
    assert found.startswith("not readable: ")
    assert message in found


def test_without_ncu_or_with_a_broken_one_the_reason_is_said(ncu, tmp_path):
    assert hit_rates("pass", ["one"]) == "not readable: there is no ncu (Nsight Compute) on PATH"
    ncu("")
    (tmp_path / "ncu").write_text("#!/nowhere/python\n")
    assert "ncu does not start: No such file or directory" in hit_rates("pass", ["one"])


def test_ncu_and_what_it_started_end_with_their_time(ncu, tmp_path):
    child = tmp_path / "child"
    ncu(
        "import subprocess\n"
        f"child = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(child)!r}, 'w').write(str(child.pid))\ntime.sleep(60)"
    )
    assert hit_rates("pass", ["one"], timeout=1.5) == "not readable: ncu took more than 2 s"
    number = int(child.read_text())
    for _ in range(50):
        try:
            with open(f"/proc/{number}/stat") as state:
                if state.read().split()[2] == "Z":  # a killed process stays until someone waits for it
                    return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    os.kill(number, 9)
    pytest.fail("the child still runs")


def test_every_call_is_run_before_it_is_counted(monkeypatch):
    torch = pytest.importorskip("torch")
    seen = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: seen.append(MARK))
    for name in ("start", "stop"):
        monkeypatch.setattr(torch.cuda.profiler, name, lambda name=name: seen.append(name))
    gpu_l2.count({name: lambda name=name: seen.append(name) for name in ("a", "b")})
    assert seen == ["a", "b", "start", MARK, "a", MARK, "b", "stop"]


def test_all_steps_of_the_ablation_compute_the_product():
    """In plain torch: the products of the same steps."""
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(64, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float32) for seed in (0, 1))
    steps = gpu_fused.steps(a, b)
    assert set(gpu_fused.STEPS) <= set(steps)
    for name, call in steps.items():
        torch.testing.assert_close(call(), a @ b, rtol=0, atol=1e-3, msg=name)


@pytest.mark.parametrize("readable", [True, False])
def test_the_ablation_has_a_hit_rate_or_the_reason(monkeypatch, readable):
    torch = pytest.importorskip("torch")
    from lcma.kernels.cuda import machine

    a, b = (torch.randn(64, 64, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    asked = []

    def rates(program, names):
        asked.append(program)
        return {name: number / 100 for number, name in enumerate(names)} if readable else "not readable: no counters"

    monkeypatch.setattr(machine, "require_device", lambda index=None: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(gpu_fused, "operands", lambda *_: (a, b))
    monkeypatch.setattr(gpu_fused, "paired", lambda calls, *_: {"fused": 1.07, "clock_mhz": 1400.0})
    monkeypatch.setattr(gpu_fused, "hit_rates", rates)
    monkeypatch.setattr(gpu_fused, "count", lambda calls: asked.append(list(calls)))
    figures = gpu_fused.ablation("float32", 64, 3, 0, lambda line: None)
    exec(asked[0])
    names = asked[1]
    assert list(figures["errors"]) == names
    if readable:
        assert list(figures["l2_hit_rates"]) == names
        assert figures["l2_hit_rate"] == figures["l2_hit_rates"]["alone: fused"]
    else:
        assert figures["l2_hit_rate"] == "not readable: no counters"
        assert "l2_hit_rates" not in figures
