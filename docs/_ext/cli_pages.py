"""The command-line reference as Markdown, from click's own commands."""

from __future__ import annotations

import re

import click

from lcma.workbench.cli import COMMANDS, cli
from lcma.workbench.help import Command, examples, grouped, summary


def cli_pages() -> dict[str, str]:
    """A page for each command and `index`, by name."""
    return {"index": _index(), **{name: _page(name) for name in COMMANDS}}


def _index() -> str:
    rows = "\n".join(
        f"| {title} | [lcma {name}]({name}.md) | {summary(name)} |"
        for title, commands in grouped().items()
        for name in commands
    )
    tree = "\n".join(COMMANDS)
    return (
        f"# Command line\n\n{_text(cli.help or '')}\n\n"
        "Options of `lcma` itself: `-V`, `--version`, `-h`, `--help`.\n\n"
        f"| to | command | what it does |\n| --- | --- | --- |\n{rows}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def _page(name: str) -> str:
    context = click.Context(cli, info_name="lcma")
    command = cli.get_command(context, name)
    if command is None:
        raise LookupError(name)
    context = click.Context(command, info_name=f"lcma {name}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    parts = [f"# lcma {name}", f"```text\n{usage}\n```", _text(command.help or "")]
    params = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    options = [record for param in params if (record := param.get_help_record(context))]
    lines = "\n".join(f"lcma {name} {arguments}".rstrip() for arguments in examples(name))
    parts.append(f"## Examples\n\n```text\n{lines}\n```")
    arguments = command.arguments(context) if isinstance(command, Command) else []
    for title, records in (("Arguments", arguments), ("Options", options)):
        if records:
            parts += [f"## {title}", "\n\n".join(f"`{names}`\n: {_line(text)}" for names, text in records)]
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """A docstring of click as Markdown; `\\b` starts a block whose lines stay as they are."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.replace("\f", "").strip()):
        if block.lstrip().startswith("\b"):
            blocks.append(f"```text\n{block.lstrip().removeprefix(chr(8)).strip(chr(10))}\n```")
        else:
            blocks.append(_line(block))
    return "\n\n".join(blocks)


def _line(text: str) -> str:
    """One paragraph on one line: options as code, and what Markdown would read as markup escaped outside code."""
    text = re.sub(r"`[^`]*`|(?<![\w-])--?[a-z][\w-]*", lambda found: f"`{found[0].strip('`')}`", " ".join(text.split()))
    parts = text.split("`")
    return "`".join(part if place % 2 else re.sub(r"([*_<>\[\]|])", r"\\\1", part) for place, part in enumerate(parts))
