"""What commands write where: links, devices, inputs, and files that exist."""

import os
import pty
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

import lcma
from lcma.kernels import safetensors
from lcma.workbench.cli import COMMANDS, cli

FOLDERS = {"search", "improve", "site"}
"""Commands whose --out is a folder of theirs: a new one, or for a site one that a site stands in."""


@pytest.fixture
def inputs(tmp_path, home, run):
    """A folder with inputs of all commands, and `there`, a file that none of them may replace."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "there").write_text("mine")
    for name in ("there.npz", "there.safetensors", "there.svg", "there.json"):
        (folder / name).write_text("mine")
    np.save(folder / "a.npy", np.eye(8, dtype=np.float32))
    (folder / "m.safetensors").write_bytes(
        b"".join(safetensors.chunks({"up.weight": ("F32", np.eye(8, dtype="f4"))}, {}))
    )
    assert run("export", "strassen", "--format", "exp", "--out", folder / "s.exp")[0] == 0
    return folder


COMMANDS_OF = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
WRITING = COMMANDS_OF["writing"]


@pytest.mark.parametrize("line", WRITING)
def test_a_file_that_exists_is_left_as_it_is(line, inputs, run, monkeypatch):
    monkeypatch.chdir(inputs)
    run.refused(3, "--force", *line.split())
    assert all(path.read_text() == "mine" for path in inputs.glob("there*"))


def test_every_command_that_writes_a_file_leaves_one_alone():
    written = {"out", "outs", "picture", "certificates", "destination"}
    asking = set()
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        names = {option.name for option in command.params}
        if names & written - {"picture"} or any(
            option.name == "picture" and not option.is_flag for option in command.params
        ):
            asking.add(name)
    assert {line.split()[0] for line in WRITING} | FOLDERS | {"bench"} == asking


@pytest.mark.parametrize("name", ["s.exp", "hard.exp", "soft.exp"])
def test_an_input_is_never_replaced(name, inputs, run, monkeypatch):
    monkeypatch.chdir(inputs)
    os.link("s.exp", "hard.exp")
    os.symlink("s.exp", "soft.exp")
    os.link("a.npy", "hard.npy")
    os.link("m.safetensors", "hard.safetensors")
    before = {path.name: path.read_bytes() for path in inputs.iterdir()}
    for line in COMMANDS_OF["replacing"]:
        run.refused(3, "the same file as", *line.replace("<>", name).split())
    assert before == {path.name: path.read_bytes() for path in inputs.iterdir()}


def test_a_pipe_is_written_to(inputs, run):
    pipe = inputs / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert run("export", "strassen", "--format", "exp", "--out", pipe)[0] == 0
    reader.join()
    assert got == [(inputs / "s.exp").read_bytes()]
    assert pipe.is_fifo()


def _lcma(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "lcma", *map(str, arguments)], text=True, check=False, **options)


def test_stdout_by_its_name_is_continued(inputs):
    log = inputs / "log"
    log.write_text("first\n")
    with log.open("a") as stream:
        assert _lcma("export", "strassen", "--format", "exp", "--out", "/dev/stdout", stdout=stream).returncode == 0
    assert log.read_text() == "first\n" + (inputs / "s.exp").read_text()
    piped = _lcma("convert", inputs / "s.exp", "/dev/stdout", "--to", "exp", stdout=subprocess.PIPE)
    assert piped.stdout == (inputs / "s.exp").read_text()


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 3), (b"y\n", 0)])
def test_a_terminal_is_asked(inputs, answer, code):
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    there = inputs / "there"
    command = [sys.executable, "-m", "lcma", "export", "strassen", "--format", "exp", "--out", str(there)]
    done = subprocess.run(command, stdin=theirs, stderr=theirs, check=False)
    assert b"exists. Replace it?" in os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert there.read_text() == ("mine" if code else (inputs / "s.exp").read_text())


@pytest.mark.parametrize(
    "line",
    ["list", "--help", *(pytest.param(f"{name} strassen", marks=pytest.mark.slow) for name in ("export", "show"))],
)
def test_a_full_disk_below_stdout_is_said(line, home):
    with open("/dev/full", "w") as full:
        done = _lcma(*line.split(), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert done.stderr.startswith("lcma: stdout")
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_streams_that_are_closed():
    command = f"{sys.executable} -m lcma"
    done = subprocess.run(f"{command} verify - <&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr == "lcma: -: can't be read: standard input is closed\n"
    assert subprocess.run(f"{command} --version >&- 2>&- <&-", shell=True, check=False).returncode == 0


def test_an_api_follows_links_too(tmp_path):
    (tmp_path / "link.npz").symlink_to("k.npz")
    bits = lcma.BitMatrix.from_array(np.eye(4, dtype=np.uint8))
    bits.save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert lcma.BitMatrix.load(tmp_path / "k.npz") == bits
