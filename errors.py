"""Errors that lcma raises for a user's mistake; each has the exit code of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class LcmaError(Exception):
    """Base of every error that lcma raises on purpose: one line with the cause and the remedy."""

    exit_code = 2


class ArgumentError(LcmaError, TypeError):
    """An argument of another type than a function takes, or out of its range."""


class TargetError(LcmaError, ValueError):
    """A target or ring name that is unknown, or that describes something impossible."""


class SchemeFormatError(LcmaError, ValueError):
    """A file that cannot be read as a scheme, a program, a certificate or a matrix."""

    exit_code = 65

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None) -> None:
        self.message, self.file, self.line = message, file, line
        where = ":".join(str(part) for part in (file, line) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)

    def located(self, file: str | Path) -> SchemeFormatError:
        """Return the same error with the file named, for a parser that read only text."""
        return self if self.file is not None else SchemeFormatError(self.message, file, self.line)


class VerificationError(LcmaError):
    """A scheme or a program that does not compute its target."""

    exit_code = 1


class PlanError(LcmaError):
    """A request that no certified scheme and no strategy can execute; the message gives the reason."""

    exit_code = 3


class UnknownNameError(PlanError):
    """A name that means nothing: of a walk, a strategy, a method, a suite of benchmarks and the like."""

    exit_code = 2


class RankError(PlanError):
    """A rank that a weight cannot have: the arguments are invalid for every strategy."""

    exit_code = 2


class VerifyOnlyError(LcmaError):
    """A proven scheme that is neither stored nor run: coefficients beyond int64, or programs that are not expanded."""

    exit_code = 3


class CatalogError(LcmaError):
    """A catalogue that cannot be opened, or that lacks the requested entry."""

    exit_code = 3


class UnknownSchemeError(CatalogError):
    """A name, a target or the start of a digest that means no scheme of the catalogue, or several."""

    exit_code = 2


class DamagedRowError(CatalogError):
    """A row of the catalogue whose data are not the scheme that it is the row of."""

    exit_code = 1


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the choices that resemble a name, or nothing if none does."""
    from difflib import get_close_matches

    by_lower = {choice.lower(): choice for choice in choices}
    near = [by_lower[match] for match in get_close_matches(name.lower(), by_lower)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def unknown_name(what: str, name: str, choices: Iterable[str]) -> UnknownNameError:
    """Return the error of a name that is none of `choices`, with those that resemble it; `what` is what it names."""
    known = list(choices)
    hint = did_you_mean(name, known) or f"; choose one of {', '.join(known)}"
    return UnknownNameError(f"{what} {name[:60]!r} is not known{hint}")
