"""What `--help` shows beside the options: commands by user, examples, and the options that are listed first."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from importlib import resources
from inspect import getdoc
from typing import Any

import click
from click.shell_completion import CompletionItem

from .destination import FORCE
from .options import SCHEME, Group, declared
from .output import JSON, WIDE

GROUPS = {
    "Find": (
        *("search", "improve", "resume", "status", "merge", "lift", "additions", "recombine", "compose", "explore"),
        "solve",
    ),
    "Prove": ("verify", "same", "convert"),
    "Keep": ("list", "show", "add", "export", "rename", "remove"),
    "Run": ("run", "time", "plan", "suggest", "tune", "structure", "compress"),
    "Report": ("demo", "doctor", "bench", "analyse", "report", "site", "cache"),
}
"""The commands, by what a user wants to do."""

EXAMPLES = {
    "add": ("found.json --name mine", "*.exp --improved --source 'doi:10.1000/1'"),
    "additions": ("strassen", "3x3x3 --time 1m --out program.json"),
    "analyse": ("causal", "causal --scheme eca-stage1 --levels 2"),
    "bench": ("", "causal --budget 8m"),
    "cache": ("", "--clear"),
    "compose": ("8x8x8 --dry-run --explain", "12x12x12 --out scheme.json"),
    "compress": ("model.safetensors --dry-run", "model.safetensors --out small.safetensors --kind monarch"),
    "convert": ("scheme.txt scheme.json", "scheme.json - --to exp"),
    "demo": ("", "--size 1024 --rounds 3"),
    "doctor": ("", "--profile"),
    "explore": ("strassen --radius 3", "laderman --limit 5000 --out graph.svg"),
    "export": ("strassen", "--all --out schemes/"),
    "improve": ("4x4x4:tri-out --time 10m --out runs/tri", "5x5x5 --up-to --dry-run"),
    "lift": ("runs/a", "4x4x4-r47-mod2 --ring Q"),
    "list": ("3x3x3", "--where 'additions<=60' --where ternary"),
    "merge": ("runs/a runs/b", "runs/* --out finds.jsonl"),
    "plan": ("4096 4096 4096", "8192 8192 8192 --device cuda --dtype bfloat16 --explain"),
    "recombine": ("strassen winograd", "runs/a --time 5m"),
    "remove": ("mine", "0123456789ab"),
    "rename": ("mine yours", "0123456789ab mine"),
    "report": ("catalogue --out catalogue.md", "benchmarks --results docs/results --out benchmarks.md"),
    "resume": ("runs/a", "runs/a --time 2h --count 10"),
    "run": ("strassen a.npy b.npy --out c.npy", "auto a.npy b.npy --check"),
    "same": ("strassen winograd", "laderman found.json"),
    "search": ("3x3x3", "4x4x4:tri-out --rank 34 --time 10m --out runs/a"),
    "show": ("strassen", "3x3x3 --json"),
    "site": ("pages", "pages --results docs/results"),
    "solve": ("2x2x2 --rank 7", "2x2x2 --rank 6 --ring Z2 --prove"),
    "status": ("runs/a", "runs/* --json"),
    "structure": ("weight.npy", "model.safetensors:up --density 0.25 --device cuda"),
    "suggest": ("4096 4096 4096", "11008 4096 --density 0.25"),
    "time": ("strassen 2048", "auto 4096 1024 4096 --dtype float64"),
    "tune": ("4096 4096 4096", "--from shapes.csv --budget 8m"),
    "verify": ("scheme.json", "schemes/ --quiet --jobs 2"),
}
"""Two command lines a command, without `lcma` and its name."""

ARGUMENTS = {
    "A": "The left matrix: FILE.npy, or FILE.safetensors:TENSOR. With a K the matrix X.",
    "B": "The right matrix, as A. None with a K.",
    "DIR": "The folder of a run, as `lcma search --out` makes it.",
    "FILE": "A file with a scheme, in any format that `lcma verify` reads.",
    "FILE|FOLDER|-": "A file with schemes, a folder of them (read with what is below it), or - for stdin.",
    "IN": "The file to read, or - for stdin.",
    "K": "A factored matrix that `lcma.kronecker.save` or `lcma.block_low_rank.save` wrote.",
    "M K N": "The sizes of A (M x K) and B (K x N); one number for all three.",
    "MODEL.safetensors": "The state dict of a model.",
    "MxKxN": "The format to compose, such as 12x12x12.",
    "NAME": "The new name.",
    "OUT": "The file to write, or - for stdout.",
    "OUTPUTS INPUTS": "The sizes of a layer's weight.",
    "SCHEME": "A name, digest or target of the catalogue (strassen, 3x3x3, a product 2x2x2*3x3x3), or a file.",
    "site OUT": "The folder to write.",
    "SIZE": "One number: that many rows and columns.",
    "SUITE": "A suite of the list that `lcma bench` prints without one.",
    "TARGET": "The product to compute: a format (3x3x3), also with a structure (4x4x4:tri-out), or mask:FILE.",
    "W": "A weight: FILE.npy, or FILE.safetensors:TENSOR.",
    "auto": "The fastest plan for this machine.",
}
"""The words of usage lines."""

ANYWHERE = {"--json": JSON, "--wide": WIDE, "--force": FORCE}
"""The options that may stand anywhere, with their keys in the context."""

FIRST = {
    "bench": "patterns budget out device dry_run",
    "compress": "out what device dry_run",
    "improve": "seconds jobs device out dry_run",
    "plan": "device dtype scheme strategy explain",
    "run": "device dtype levels out check",
    "search": "rank ring seed seconds count jobs device out dry_run",
    "structure": "density batch device out",
    "suggest": "density dtype device top",
    "time": "levels device dtype rounds",
    "tune": "file device dtype budget",
    "verify": "methods ring target jobs quiet",
}
"""Of commands with many options, those that most users need, by the names of their parameters."""


def summary(name: str) -> str:
    """The first sentence of a command's help, from its source: to import all commands takes seconds."""
    tree = ast.parse((resources.files(__package__) / "commands" / f"{name}.py").read_text(encoding="utf-8"))
    found = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "command")
    return (
        " ".join(str(ast.get_docstring(found)).partition(".\n")[0].partition(". ")[0].split()).removesuffix(".") + "."
    )


def lcma_command(name: str, json: str | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command of `lcma` with the options that it declares; `json` says what it prints with --json."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        found = declared(function)
        groups = {key: one for key, one in found.items() if isinstance(one, Group)}

        @wraps(function)
        def call(**values: Any) -> Any:
            values |= {key: group.take(values) for key, group in groups.items()}
            return function(**values)

        call.json = json  # type: ignore[attr-defined]
        params = [param for one in found.values() for param in (one.parameters if isinstance(one, Group) else (one,))]
        return Command(name, params=params, callback=call, help=getdoc(function))

    return decorate


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
        first = FIRST.get(self.name or "", "").split()
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
        json = f"--json ({what} as JSON), " if (what := getattr(self.callback, "json", None)) else ""
        formatter.write_text(
            f"Anywhere: {json}--wide (all columns of tables), --force (replace files without a question)."
        )
        with formatter.section("Examples"):
            for arguments in EXAMPLES[self.name or ""]:
                formatter.write(f"{'':{formatter.current_indent}}lcma {self.name} {arguments}".rstrip() + "\n")
