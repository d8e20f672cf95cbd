"""SCHEME arguments: a name of the library, or a file that is proven before it is used; for pools, run folders, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import LcmaError, SchemeFormatError, UnknownSchemeError
from ..schemes_db import Certificate, Scheme
from ..schemes_db.resolve import resolve
from ..search import status
from ..verify import certify, load

AUTO = "auto"


def scheme_argument(text: str) -> tuple[Scheme, Certificate]:
    """The scheme that an argument means, proven now, with the kept certificate if there is one.

    Raises:
        LcmaError: nothing has that name, the file cannot be read, or the scheme is not valid.
    """
    if Path(text).is_file():
        return load(text)
    try:
        scheme, certificate = resolve(text)
    except UnknownSchemeError as error:
        if Path(text).suffix:
            raise SchemeFormatError("there is no such file, and no scheme of that name", text) from None
        raise _levels_given(text) or error from None
    proven = certify(scheme)
    return scheme, certificate or proven


def pool_argument(texts: Iterable[str], *, origins: bool = False) -> list[Scheme]:
    """The certified schemes that names, files and run folders mean, each once, in that order.

    With `origins` the schemes over Z2 that the finds of a folder were lifted from are taken, and
    those that did not lift.

    Raises:
        LcmaError: one of them means nothing, or is not valid.
    """
    schemes: dict[str, Scheme] = {}
    for text in texts:
        for scheme in _schemes(text, origins):
            schemes.setdefault(scheme.digest, scheme)
    return list(schemes.values())


def _schemes(text: str, origins: bool) -> list[Scheme]:
    if (Path(text) / "run.json").is_file():
        standing = status(text)
        if not origins:
            return [found.scheme for found in standing.finds]
        return [*(found.origin for found in standing.finds), *(lost.origin for lost in standing.unlifted)]
    return [scheme_argument(text)[0]]


def _levels_given(text: str) -> UnknownSchemeError | None:
    """The refusal of SCHEME/SCHEME where one scheme is wanted; None if the parts are no schemes."""
    parts = text.split("/")
    try:
        for part in parts:
            resolve(part)
    except LcmaError:
        return None
    return UnknownSchemeError(
        f"{text} names a scheme for each level; write {'*'.join(parts)} for one scheme of all levels"
    )


def planned_scheme(text: str, causal: bool = False) -> str | tuple[Scheme, Certificate] | Sequence[Any]:
    """Return the `scheme` argument of `lcma.kernels` for a text: "auto", a certified scheme, or SCHEME/SCHEME by level.

    Raises:
        LcmaError: as `scheme_argument`.
    """
    if text == AUTO or (causal and not Path(text).is_file()):
        return text  # two levels of a triangular product have names of their own
    if "/" in text and not Path(text).is_file():
        return [scheme_argument(part) for part in text.split("/")]
    return scheme_argument(text)
