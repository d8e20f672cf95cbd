"""Scheme files: found by their content or named, read into `Reading`s, written from schemes."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ...errors import LcmaError, SchemeFormatError
from ..ring import Ring
from ..scheme import Scheme
from ..target import Target
from . import equations, exp, fmm_json, lcma_json
from .reading import Reading

MAX_FILE_BYTES = 64 << 20


class Format(Protocol):
    """What a module of this folder offers."""

    NAME: str
    SUFFIX: str
    CONVENTION: str
    """The third factor as the format documents it: indexed by C, or by its transpose (C^T)."""

    def sniff(self, text: str) -> bool: ...

    def parse(self, text: str, target: Target | None = None, ring: Ring | None = None) -> list[Reading]: ...

    def render(self, scheme: Scheme) -> str: ...


FORMATS: dict[str, Format] = {module.NAME: module for module in (lcma_json, fmm_json, equations, exp)}
"""In the order in which they are tried on an unknown file."""


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        LcmaError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise LcmaError(f"format {name!r} is not known; choose one of {', '.join(FORMATS)}") from None


def parse_text(
    text: str, format: str | None = None, target: Target | None = None, ring: Ring | None = None
) -> list[Reading]:
    """Read the schemes of a text, its format found by content unless named.

    Raises:
        SchemeFormatError: no format fits, or the one that fits finds a fault.
    """
    if format is not None:
        return _parse(format_named(format), text, target, ring)
    for candidate in FORMATS.values():
        if candidate.sniff(text):
            return _parse(candidate, text, target, ring)
    raise SchemeFormatError(f"not a scheme in any known format ({', '.join(FORMATS)}); name one with --format")


def _parse(reader: Format, text: str, target: Target | None, ring: Ring | None) -> list[Reading]:
    try:
        return reader.parse(text, target, ring)
    except SchemeFormatError:
        raise
    except LcmaError as error:  # a size or a name in the file that means nothing
        raise SchemeFormatError(str(error)) from None
    except RecursionError:
        raise SchemeFormatError("parentheses nested too deep") from None


def read_file(
    path: str | Path, format: str | None = None, target: Target | None = None, ring: Ring | None = None
) -> list[Reading]:
    """Read the schemes of a file.

    Raises:
        SchemeFormatError: the file is missing, too large, not text, or not a scheme.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise SchemeFormatError("is a folder; name a file", path)
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror}", path) from None
    if len(raw) > MAX_FILE_BYTES:
        raise SchemeFormatError(f"is larger than {MAX_FILE_BYTES >> 20} MiB", path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemeFormatError("is not UTF-8 text", path) from None
    if not text.strip():
        raise SchemeFormatError("is empty", path)
    try:
        return parse_text(text, format, target, ring)
    except SchemeFormatError as error:
        raise error.located(path) from None


__all__ = ["FORMATS", "Format", "Reading", "format_named", "parse_text", "read_file"]
