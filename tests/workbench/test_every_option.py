"""Every option of every command is explained in the documentation and used by a test."""

import ast
import itertools
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest

import lcma
from lcma.workbench.cli import ANYWHERE, COMMANDS, cli

TABLES = "mistakes", "commands"
TESTS = Path(lcma.__file__).resolve().parent / "tests"


@cache
def words_of_tests() -> tuple[frozenset[str], ...]:
    """The words of the strings of each file of tests but this one, without docstrings, and of each line of a table."""
    mistakes, commands = (tomllib.loads((TESTS / "workbench" / f"{name}.toml").read_text("utf-8")) for name in TABLES)
    pages = (path.read_text("utf-8").splitlines() for path in (TESTS / "workbench" / "sessions").glob("*.md"))
    sessions = (line for line in itertools.chain(*pages) if line.startswith("$ "))
    listed = (commands[name] for name in ("writing", "replacing", "tables"))
    tables = *mistakes.values(), *listed, commands["long"].values(), sessions
    found = [frozenset(re.split(r"[\s=]+", line)) for line in itertools.chain(*tables)]
    for path in sorted(TESTS.rglob("*.py")):
        if path.name == Path(__file__).name:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = (
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare
        )
        modules = (
            name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lcma.workbench.commands")
            for name in ((node.module or "").split(".")[-1], *(alias.name for alias in node.names))
        )
        found.append(frozenset([*modules, *(word for text in texts for word in re.split(r"[\s=]+", text))]))
    return tuple(found)


def options_of(name: str) -> list[click.Option]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [one for one in command.params if isinstance(one, click.Option)]


def is_explained(option: click.Option) -> bool:
    """Return whether the reference has a line on an option."""
    return bool((option.help or "").strip())


def is_tested(command: str, option: click.Option, files: tuple[frozenset[str], ...]) -> bool:
    """Return whether a file of tests has both the command and the option."""
    names = {*option.opts, *option.secondary_opts}
    return any(command in words and not names.isdisjoint(words) for words in files)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_and_used_by_a_test(command):
    assert [one.opts[0] for one in options_of(command) if not is_explained(one)] == []
    assert [one.opts[0] for one in options_of(command) if not is_tested(command, one, words_of_tests())] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_two_examples_that_parse(run, name):
    command = cli.get_command(click.Context(cli), name)
    text = run(name, "--help")[1]
    lines = text.partition("\nExamples:\n")[2].splitlines()
    assert len(lines) == 2
    for line in lines:
        program, called, *arguments = (one for one in shlex.split(line) if one not in ANYWHERE)
        assert (program, called) == ("lcma", name)
        command.make_context(name, arguments)
    assert {param.name for param in command.params} >= set(COMMANDS[name]["common"].split())
    assert run("help", name) == (0, text, "")


def test_an_option_that_nobody_knows_is_found():
    unknown = click.Option(["--frobnicate"])
    assert not is_explained(unknown)
    assert not is_tested("plan", unknown, words_of_tests())
    assert not is_tested("frobnicate", click.Option(["--device"]), words_of_tests())
