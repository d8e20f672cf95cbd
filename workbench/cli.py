"""The command `lcma`: commands are found by name and imported when used; errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from ..errors import LcmaError
from ..schemes_db.names import visible
from ..version import __version__
from .environment import prepare
from .interrupts import insist

COMMANDS = {
    "add": "Verify schemes from files and store them in the catalogue.",
    "additions": "Find a program with few additions.",
    "analyse": "Count the savings and costs of schemes in causal attention.",
    "bench": "Run a suite of benchmarks: interleaved, checked first, stored as rows.",
    "cache": "Show or clear the compiled code that lcma keeps.",
    "compose": "Compose the best scheme for a size from those of the catalogue.",
    "compress": "Replace the linear weights of a stored model by structured ones, and report every layer.",
    "convert": "Verify a scheme file and write it in another format.",
    "demo": "Find, prove, store and run a scheme, in about a minute.",
    "doctor": "Show processor, libraries and folders of this machine, and prove the shipped schemes again.",
    "explore": "Show the flip graph around schemes, modulo 2.",
    "export": "Write schemes of the catalogue as text.",
    "improve": "Improve the catalogue: ranks behind the best known ones, fronts of structured targets.",
    "lift": "Lift schemes from Z2 or Z3 to the integers or the rationals.",
    "list": "List the schemes of the catalogue.",
    "merge": "Merge the finds of several searches.",
    "plan": "Show how a product would be run, and why.",
    "recombine": "Combine the products of several schemes into the cheapest scheme.",
    "remove": "Remove your own schemes from the catalogue, by name or by the start of their digest.",
    "rename": "Give one of your schemes, or an added name of any scheme, another name.",
    "report": "Write schemes, benchmarks and figures as pages and pictures.",
    "resume": "Continue a search or an improvement from its folder.",
    "run": "Multiply the matrices of two files by a certified scheme, or by the fastest plan.",
    "same": "Compare two schemes up to change of basis and permutation of roles.",
    "search": "Search for schemes of low rank; finds are certified and stored in the catalogue.",
    "show": "Show a scheme: equations, costs, certificate, provenance.",
    "site": "Write the catalogue as static pages into the folder OUT.",
    "solve": "Solve the Brent equations of a tiny target, or prove that they have no solution.",
    "status": "Show the progress of searches and improvements.",
    "structure": "Approximate a weight by Kronecker-sparse factors: error and predicted speed by pattern.",
    "suggest": "List the schemes that should be fastest for a size, or Kronecker-sparse patterns for a layer.",
    "time": "Time a scheme, or the planner's choice, against the vendor's product: interleaved, checked first.",
    "tune": "Measure the best candidates for a product, and use the measured times in later plans.",
    "verify": "Prove or refute the schemes in files.",
}

COMPUTING = {"bench", "compress", "demo", "doctor", "plan", "run", "structure", "suggest", "time", "tune"}
"""The commands that multiply matrices or plan products."""

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

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name in COMPUTING:
            prepare()
        command: click.Command = import_module(f".commands.{name}", __package__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lcma")
def cli() -> None:
    """Find lower-complexity matrix algorithms, prove them, keep them, and run them on real matrices.

    A SCHEME is a name (strassen), a target (3x3x3: the best one shipped; 4x4x4:47: one of rank 47), the
    start of a digest, naive:MxKxN, a composition 'strassen*laderman', or a scheme file.

    A file that exists is replaced with --force, or after a question at a terminal; an input never is.
    With --json stdout is the result for scripts; the same --seed gives the same random choices.

    Exit codes: 0 fine, 1 not a valid scheme, 2 usage, 3 refused, 65 unreadable input, 70 internal
    error, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing a user does ends in a traceback."""
    code = _run(arguments)
    if (error := _flush()) is None:
        return code
    return EXIT_PIPE_CLOSED if error.errno == errno.EPIPE else code or _refused(error, "stdout")


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = cli.main(args=arguments, prog_name="lcma", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LcmaError as error:
        click.echo(f"lcma: {visible(str(error))}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("lcma: interrupted", err=True)
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:
            return 0  # as the shell's completion ends
        # The reader of our output has gone, as `head` does (click turns that into an exit with 1,
        # which here would read as "not valid").
        return EXIT_PIPE_CLOSED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_FAULT_OF_OURS:
            return _refused(error, error.filename or "stdout or a file")
        traceback.print_exc()
        click.echo("lcma: internal error; please report the lines above", err=True)
        return EXIT_INTERNAL


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
    insist()
    code = main()
    if code == EXIT_INTERRUPTED:
        # What is kept is stored; threads that are still at work (a lift, a solver) would hold up a usual exit.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
