"""The command `lcma`: commands are found by name and imported when used; errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click
from click.exceptions import NoArgsIsHelpError

from ..errors import LcmaError, unknown_name
from ..schemes_db.names import visible
from ..version import __version__
from . import interrupts
from .help import ANYWHERE, COMMANDS, TEXTS, grouped, summary
from .output import JSON

EXIT_REFUSED = 3
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # as a shell reports a process that SIGPIPE ended

NO_FAULT_OF_OURS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE}
)
"""Errors of the system for a disk that is full, broken or read-only, and for limits of the user's."""


class _LazyGroup(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta.update({key: option in args for option, key in ANYWHERE.items()})
        return super().parse_args(ctx, [one for one in args if one not in ANYWHERE])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if COMMANDS[name]["computes"]:
            # Threads of OpenMP sleep when their work is done: spinning, they take the cores from other libraries. A
            # value that the user has set stays. numpy's OpenBLAS has read the environment already:
            # `kernels.cpu.blas_threads` sets how long its threads spin.
            os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        return import_module(f".commands.{name}", __package__).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":
            args = [*args[1:2], "--help"]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown_name("command", args[0], COMMANDS)
        name, command, rest = super().resolve_command(ctx, args)
        if ctx.meta[JSON] and name and not COMMANDS[name]["json"]:
            raise click.UsageError(f"{name} has no --json", ctx)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in grouped().items():
            with formatter.section(title):
                formatter.write_dl([(name, summary(name)) for name in commands])


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=_LazyGroup, context_settings=_SETTINGS, help=TEXTS["lcma"])
@click.option("--json", is_flag=True, expose_value=False, help="The result as JSON on stdout. May stand anywhere.")
@click.option("--wide", is_flag=True, expose_value=False, help="Show all columns of tables. May stand anywhere.")
@click.option("--force", is_flag=True, expose_value=False, help="Replace files without a question. May stand anywhere.")
@click.version_option(__version__, "-V", "--version", prog_name="lcma")
def cli() -> None:
    """The command `lcma`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing a user does ends in a traceback."""
    code = _run(arguments)
    if (error := _flush()) is None:
        return code
    return EXIT_PIPE_CLOSED if error.errno == errno.EPIPE else code or _refused(error, "stdout")


def _run(arguments: Sequence[str] | None) -> int:
    interrupts.raised = False
    try:
        result = cli.main(args=arguments, prog_name="lcma", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        see = f" (see `{context.command_path} --help`)" if context else ""
        click.echo(f"lcma: {visible(' '.join(error.format_message().split()))}{see}", err=True)
        return error.exit_code
    except LcmaError as error:
        if interrupts.raised:  # a library made an ImportError of it, and we a line on what to install
            return _interrupted()
        click.echo(f"lcma: {visible(str(error))}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:
            return 0  # as the shell's completion ends
        # The reader of our output has gone, as `head` does (click turns that into an exit with 1,
        # which here would read as "not valid").
        return EXIT_PIPE_CLOSED
    except Exception as error:
        if interrupts.raised:  # on its way a library made another exception of it
            return _interrupted()
        if isinstance(error, OSError) and error.errno in NO_FAULT_OF_OURS:
            return _refused(error, error.filename or "stdout or a file")
        traceback.print_exc()
        click.echo("lcma: internal error; please report the lines above", err=True)
        return EXIT_INTERNAL


def _interrupted() -> int:
    click.echo("lcma: interrupted", err=True)
    return EXIT_INTERRUPTED


def _refused(error: OSError, where: str) -> int:
    """Print the reason that the system gave, and return the exit code."""
    click.echo(f"lcma: {visible(f'{where} cannot be read or written: {error.strerror}')}", err=True)
    return EXIT_REFUSED


def _flush() -> OSError | None:
    """Flush stdout; where that fails, return the error and discard what was not written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try again as it exits, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def run() -> None:
    """The console script."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        # The next file that is opened would get the number of a stream that the caller closed.
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == descriptor and name != "stdin":
            setattr(sys, name, os.fdopen(descriptor, mode))
    interrupts.insist()
    code = main()
    if code == EXIT_INTERRUPTED:
        # What is kept is stored; threads that are still at work (a lift, a solver) would hold up a usual exit.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
