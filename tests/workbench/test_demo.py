"""What the demonstration says last, and its picture; the whole command is tested with the others."""

import shlex
from importlib import import_module
from xml.etree import ElementTree

import pytest

from lcma.workbench.demo import NEXT, draw

COMMANDS = [part.strip() for _, line in NEXT for part in line.partition(" > ")[0].split("&&")]


@pytest.mark.parametrize("line", [*COMMANDS, *(line.partition("&& ")[2] for _, line in NEXT if "&& " in line)])
def test_the_commands_that_it_names_are_understood(line):
    _, name, *arguments = shlex.split(line)
    command = import_module(f"lcma.workbench.commands.{name}").command
    assert command.make_context(name, arguments, resilient_parsing=False).command is command


def test_a_bar_a_contender_with_hostile_names():
    text = draw([("title <&>", {"numpy": 1.0, "<b>": 1.25}), ("second", {"x": 0.5})])
    root = ElementTree.fromstring(text)
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    assert [round(float(bar.get("width")) / float(bars[0].get("width")), 2) for bar in bars] == [1, 1.25, 0.5]
    assert "&lt;b&gt;" in text
