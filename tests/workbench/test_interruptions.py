"""Ctrl-C in every command that can run long: exit 130 in time, and what was kept can be read.

Each command runs as a process of its own, as at a terminal. The fast suite interrupts a search as soon as
it says what it does; the slow one the whole list, 3 s after the start.
"""

import contextlib
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from lcma.errors import PlanError
from lcma.workbench import cli
from lcma.workbench.interrupts import SAME, Interrupts

LIMIT = 10.0
"""Seconds from the signal to the end of the process: 2 on a machine that does nothing else, more beside other tests."""

LONG = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))["long"]
"""The commands that can run longer than 3 s."""


def started(*arguments, **settings):
    """A process of this interpreter that does not ignore SIGINT, as one of a suite in the background would."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **settings,
    )


def interrupted(command, folder, seconds=None, written=None):
    """Return the exit code, the seconds from SIGINT to the end, and what was written.

    The signal comes after so many seconds, else with the first line on stderr, and in the file `written`.
    """
    process = started("-m", "lcma", *command, cwd=folder)
    said = ""
    if seconds is None:
        said = process.stderr.readline()
        while written and process.poll() is None and not (written.exists() and written.stat().st_size):
            time.sleep(0.05)
    else:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=seconds)
            pytest.skip(f"{command[0]} ended by itself in {seconds} s")
    process.send_signal(signal.SIGINT)
    begin = time.perf_counter()
    out, err = process.communicate(timeout=60)
    return process.returncode, time.perf_counter() - begin, out, said + err


@pytest.mark.parametrize("name", ["search", *(pytest.param(x, marks=pytest.mark.slow) for x in LONG if x != "search")])
def test_ctrl_c_ends_a_command_in_time(run, warm_home, tmp_path, name):
    code, seconds, _, err = interrupted(LONG[name].split(), tmp_path, None if name == "search" else 3.0)
    assert code in (130, -signal.SIGINT), err  # killed: the interpreter was still starting; shells say 130, too
    assert seconds <= LIMIT, err
    assert "Traceback" not in err
    assert err.strip() or code < 0, "nothing said what went on"
    assert run("list", "--where", "origin=user", "--json")[0] == 0


@pytest.mark.slow
def test_what_a_search_had_found_is_kept_and_read_by_the_next_command(run, warm_home, tmp_path):
    command = ["search", "2x2x3", "--rank", "11", "--ring", "Z2", "--count", "100000", "--time", "10m", "--out", "run"]
    found = tmp_path / "run" / "found.jsonl"
    code, _, _, err = interrupted(command, tmp_path, written=found)
    assert code == 130, err
    listed = run.json("list", "--where", "origin=user", "2x2x3")
    digests = {entry["digest"] for entry in listed}
    assert 1 <= len(digests) <= len(found.read_text().splitlines())
    assert run("verify", found, "-q")[0] == 0
    assert run("status", tmp_path / "run")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_search_says_how_to_go_on(run, warm_home, tmp_path, number):
    folder = tmp_path / "run"
    words = "search 3x3x3 --rank 22 --ring Z2 --steps 50000 --out"
    process = started("-m", "lcma", *words.split(), str(folder), cwd=tmp_path)
    while not (folder / "run.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"to go on: lcma resume {folder}" in err
    rounds = run.json("status", folder)[0]["rounds"]
    assert run("resume", folder, "--rounds", rounds + 2)[0] == 1
    assert run.json("status", folder)[0]["rounds"] == rounds + 2


def test_an_interrupt_that_a_destructor_loses_comes_again():
    program = """
import sys, time
from lcma.workbench import interrupts
interrupts.AGAIN = 0.5
class Swallows:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(30)
interrupts.insist()
held = Swallows()
del held
time.sleep(30)
"""
    process = started("-c", program)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert "Exception ignored in" in err
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("other", [ImportError("initialization failed"), PlanError("needs ortools")])
def test_an_interrupt_that_a_library_replaces_by_another_exception_is_one(monkeypatch, capsys, other):
    def command(**_):
        try:
            with Interrupts():
                signal.raise_signal(signal.SIGINT)
                time.sleep(SAME + 0.01)
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise other from None

    monkeypatch.setattr(cli.cli, "main", command)
    assert cli.main(["solve"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "lcma: interrupted"
    monkeypatch.setattr(cli.cli, "main", lambda **_: 0)
    assert cli.main(["list"]) == 0


def test_a_signal_to_a_process_and_to_its_group_is_one():
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert interrupts.wanted


def test_an_interrupt_waits_for_the_callback_of_a_weak_reference():
    """Python prints an exception of such a callback, with a traceback, and goes on."""
    program = """
import signal, types, weakref
from lcma.workbench import interrupts
interrupts.insist()
library = types.ModuleType("weakref")
exec("import signal\\ndef remove(_): signal.raise_signal(signal.SIGINT)", library.__dict__)
held = types.ModuleType("held")
reference = weakref.ref(held, library.remove)
del held
signal.pause()
"""
    process = started("-c", program)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert "Exception ignored" not in err
