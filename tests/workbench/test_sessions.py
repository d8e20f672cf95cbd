"""Sessions of the command: each section of the pages in sessions/ is typed in a folder and with a home of its own.

A page is written as those of the documentation (tests/docs/blocks.py), with commands of lcma alone: `> FILE` at the end
of one writes its stdout. Below a command that fails stands all that it says; below another its stdout, also with its
stderr, or nothing. What stands above the first section comes before each.
"""

import re
import shlex
from pathlib import Path

import pytest

from lcma.kernels.cpu.bench import CpuLoadMonitor

from ..docs.blocks import blocks_in, commands_of, masked, matches, shown_and_code

PAGES = sorted(Path(__file__).with_name("sessions").glob("*.md"))


def sections():
    """The sections of all pages, each with what stands above the first one."""
    for page in PAGES:
        before, *parts = re.split(r"^## ", page.read_text("utf-8"), flags=re.M)
        for part in parts:
            yield pytest.param(before + part, id=f"{page.stem}: {part.splitlines()[0]}")


def typed(run, command, wanted):
    """Run a command, and compare what it says and its exit code."""
    line, _, file = command.partition(" > ")
    program, *arguments = shlex.split(line)
    assert program == "lcma", command
    shown, expected = shown_and_code(wanted)
    code, out, err = run(*arguments)
    assert code == expected, f"$ {command} ended with {code}: {out}{err}"
    if file:
        Path(file).write_text(out)
        out = ""
    same = any(matches(masked(shown), masked(said)) for said in (out + err, *([] if code else [out])))
    assert same or not (code or shown), f"$ {command} says\n{out}{err}"


@pytest.mark.parametrize("section", list(sections()))
def test_a_session_goes_as_its_page_says(section, run, warm_home, no_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(CpuLoadMonitor, "share", lambda monitor: 0.0)  # nobody else computes
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    names = {}
    for block in blocks_in(section):
        if block.mark == "file":
            Path(block.value).write_text(block.body)
        elif block.language == "python":
            exec(compile(block.body, "a page", "exec"), names)
        else:
            for command, wanted in commands_of(block.body):
                typed(run, command, wanted)
