"""What `--help` shows beside the options: commands by user, examples, and the options that are listed first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any

import click
from click.shell_completion import CompletionItem

from .destination import FORCE
from .options import SCHEME, Group, declared
from .output import JSON, WIDE, data_rows, sections

COMMANDS: Mapping[str, Mapping[str, str]] = {row["command"]: row for row in data_rows("commands")}
"""The commands in order: the group by what a user wants to do, whether it multiplies matrices or plans products
(`computes`), what it prints with --json (nothing: it has none), two command lines without `lcma` and its name, and of
one with many options those that most users need (`common`, the names of their parameters)."""

TEXTS = sections("commands")
"""The help of `lcma` and of the commands."""

ARGUMENTS = {row["word"]: row["meaning"] for row in data_rows("arguments")}
"""The words of usage lines."""

ANYWHERE = {"--json": JSON, "--wide": WIDE, "--force": FORCE}
"""The options that may stand anywhere, with their keys in the context."""


def summary(name: str) -> str:
    """The first sentence of a command's help."""
    return re.split(r"\.\s", f"{TEXTS[name]}\n", maxsplit=1)[0].replace("\n", " ") + "."


def grouped() -> dict[str, list[str]]:
    """The commands by group."""
    found: dict[str, list[str]] = {}
    for name, row in COMMANDS.items():
        found.setdefault(row["group"], []).append(name)
    return found


def examples(name: str) -> tuple[str, str]:
    """Two command lines of a command, without `lcma` and its name."""
    return COMMANDS[name]["example"], COMMANDS[name]["another"]


def lcma_command(function: Callable[..., Any]) -> click.Command:
    """Make a function the command of `lcma` that its module is named after, with the options that it declares."""
    name = function.__module__.rpartition(".")[2]
    groups = {key: one.default for key, one in signature(function).parameters.items()}

    @wraps(function)
    def call(**values: Any) -> Any:
        values |= {key: one.take(name, values) for key, one in groups.items() if isinstance(one, Group)}
        return function(**values)

    return Command(name, params=list(declared(function, name)), callback=call, help=TEXTS[name])


class Command(click.Command):
    """A command whose help has the common options first and ends with examples; the shell completes schemes."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for param in self.params:
            if re.search("SCHEME|TARGET", str(param.metavar)) and param.type is click.STRING:
                param.type = SCHEME

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            near = [*(error.possibilities or ()), *get_close_matches(error.option_name, ANYWHERE)]
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        anywhere = ANYWHERE if incomplete.startswith("-") else ()
        found = super().shell_complete(ctx, incomplete)
        return [*found, *(CompletionItem(one) for one in anywhere if one.startswith(incomplete))]

    def arguments(self, ctx: click.Context) -> list[tuple[str, str]]:
        """The words of the usage line, each with its meaning."""
        found: dict[str, str] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument):
                name = (param.metavar or param.make_metavar(ctx)).strip("[]").removesuffix("...")
                parts = [name] if name in ARGUMENTS else name.split("|")
                if isinstance(param.type, click.Choice):
                    found[str(param.name).upper()] = f"One of {', '.join(param.type.choices)}."
                else:
                    found |= {one: ARGUMENTS.get(f"{self.name} {one}") or ARGUMENTS[one] for one in parts}
        return list(found.items())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if arguments := self.arguments(ctx):
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        common: list[tuple[str, str]] = []
        rest: list[tuple[str, str]] = []
        first = COMMANDS[self.name or ""]["common"].split()
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                (common if not first or param.name in (*first, "help") else rest).append(record)
        for title, records in (("Options", common), ("More options", rest)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        json = f"--json ({what} as JSON), " if (what := COMMANDS[self.name or ""]["json"]) else ""
        formatter.write_text(
            f"Anywhere: {json}--wide (all columns of tables), --force (replace files without a question)."
        )
        with formatter.section("Examples"):
            for arguments in examples(self.name or ""):
                formatter.write(f"{'':{formatter.current_indent}}lcma {self.name} {arguments}".rstrip() + "\n")
