"""What the demonstration says last."""

import shlex
from importlib import import_module

import pytest

from lcma.workbench.demo import NEXT

COMMANDS = [part.strip() for _, line in NEXT for part in line.partition(" > ")[0].split("&&")]


@pytest.mark.parametrize("line", [*COMMANDS, *(line.partition("&& ")[2] for _, line in NEXT if "&& " in line)])
def test_the_commands_that_it_names_are_understood(line):
    _, name, *arguments = shlex.split(line)
    command = import_module(f"lcma.workbench.commands.{name}").command
    assert command.make_context(name, arguments, resilient_parsing=False).command is command
