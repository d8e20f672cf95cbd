"""Options and arguments, each declared once: as the default of the parameter of a command that gets the value."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..errors import did_you_mean
from ..schemes_db import parse_ring, parse_target
from .output import data_rows

HELP = {(command, row["option"]): row["help"] for row in data_rows("options") for command in row["commands"].split()}
"""The texts of options by command and name; commands whose options are alike share one."""


class Choice(click.Choice[str]):
    """One of some words; the error of another word names those that resemble it."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        hint = did_you_mean(str(value), self.choices)
        return f"{value!r} is not known{hint}" if hint else super().get_invalid_choice_message(value, ctx)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Meaning(click.ParamType[Any]):
    """A text that a function parses; it raises click.BadParameter, or an error of ours."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._parse(value) if isinstance(value, str) else value


class SchemeName(Meaning):
    """A name of a scheme or a target, or a file; the shell completes them."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from ..schemes_db.catalog import Catalog

        with Catalog.open() as catalog:
            rows = catalog.entries()
        targets = "TARGET" in str(param.metavar)
        names = dict.fromkeys(row.target if targets else row.name or row.target for row in rows)
        files = [] if targets else [CompletionItem(incomplete, type="file")]
        return [*(CompletionItem(name) for name in names if name.startswith(incomplete)), *files]


def seconds_of(text: str) -> float:
    """Seconds, or a number with s, m or h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match:
        raise click.BadParameter(f"{text!r} is not a duration; write 90, 90s, 10m or 2h")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]


DURATION = Meaning("duration", seconds_of)

RING, TARGET, SCHEME = Meaning("ring", parse_ring), SchemeName("target", parse_target), SchemeName("scheme", str)

POSITIVE = click.IntRange(1)

TYPES: dict[str, Any] = {"Path": click.Path(path_type=Path), "int": int, "float": float}
"""The types of values by the annotation of their parameter, where a declaration states none."""


@dataclass(frozen=True)
class Declared:
    """An option or an argument of click: its names, if they differ from the parameter's, and its settings."""

    kind: type[click.Parameter]
    names: tuple[str, ...]
    settings: Mapping[str, Any]

    def parameter(self, name: str, annotation: str, command: str) -> click.Parameter:
        """Return click's parameter. What is not stated follows from the annotation and HELP, and a default is shown.

        A bool is a flag. A tuple is of an option that may be given more than once, or of all the words of an argument,
        which is required unless its word stands in brackets.
        """
        several = annotation.startswith("tuple[")
        settings: dict[str, Any] = {"type": TYPES.get(annotation.removeprefix("tuple[").split(" ")[0].split(",")[0])}
        if self.kind is click.Argument:
            settings |= {"nargs": -1 if several else 1, "required": not str(self.settings["metavar"]).startswith("[")}
            return click.Argument([name], **{**settings, **self.settings})
        if annotation == "bool" and not any("/" in one for one in self.names):
            settings["is_flag"] = True
        shown = self.settings.get("default") not in (None, "")
        names = self.names or (f"--{name.replace('_', '-')}",)
        long = next(one for one in names if one.startswith("--")).partition("/")[0]
        settings |= {"multiple": several, "show_default": shown, "help": HELP.get((command, long))}
        return click.Option([*names, name], **{**settings, **self.settings})


def option(*names: str, **settings: Any) -> Any:
    """Declare an option by what `click.Option` takes."""
    return Declared(click.Option, names, settings)


def argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declare an argument by its word in the usage line, if it has one, and what `click.Argument` takes."""
    return Declared(click.Argument, (), {"metavar": metavar, **settings})


@dataclass(frozen=True)
class Group:
    """Options that a command gets as one object: the defaults of a dataclass's fields; those `without` are None."""

    made: Callable[..., Any]
    without: tuple[str, ...] = ()

    def parameters(self, command: str) -> Iterator[click.Parameter]:
        """Yield click's parameters of a command."""
        return (one for one in declared(self.made, command) if one.name not in self.without)

    def take(self, command: str, values: dict[str, Any]) -> Any:
        """Remove the values of these options and return the object."""
        own = {str(one.name): values.pop(str(one.name)) for one in self.parameters(command)}
        return self.made(**dict.fromkeys(self.without), **own)


def declared(function: Callable[..., Any], command: str) -> Iterator[click.Parameter]:
    """Yield the options and arguments that are defaults of a function's parameters, those of groups too, in order."""
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(parameter.default, Declared):
            yield parameter.default.parameter(name, str(parameter.annotation), command)
        elif isinstance(parameter.default, Group):
            yield from parameter.default.parameters(command)


def group(made: Callable[..., Any], *without: str) -> Any:
    """Declare the options of a dataclass as the default of a parameter that gets its object; see `Group`."""
    return Group(made, without)


SEED = option("--seed", type=click.IntRange(0), default=0)

RAY, WORKERS = option("--ray", metavar="auto|local|HOST:PORT"), option("--workers", type=POSITIVE)


def command_line() -> str:
    """This process's command, as provenance states it."""
    return shlex.join(["lcma", *sys.argv[1:]])


def cluster_settings(address: str | None, workers: int | None) -> dict[str, Any]:
    """The settings `address` and `workers` of a configuration.

    Raises:
        click.UsageError: --workers is given without --ray.
    """
    if address is None and workers:
        raise click.UsageError("--workers are of a cluster: give --ray auto, local or HOST:PORT, too")
    return {"address": address, "workers": workers or 0} if address else {}
