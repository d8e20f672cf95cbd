"""Names of schemes: what may be one, and how text from outside is shown on one line."""

from __future__ import annotations

import re

from ..errors import CatalogError, SchemeFormatError

MAX_NAME = 120

MAX_STEM = 100
"""Characters of a name that go into a file's name: with digest and suffix that stays below 255 bytes."""


def checked_name(name: str) -> str:
    """The name itself, if it may be one: printable, on one line, not too long, and not a file's path or an option.

    Raises:
        SchemeFormatError: it may not.
    """
    if len(name) > MAX_NAME:
        raise SchemeFormatError(f"a name of {len(name)} characters; the longest has {MAX_NAME}")
    if bad := next((one for one in name if not one.isprintable()), ""):
        raise SchemeFormatError(f"'{visible(name)[:40]}' is no name for a scheme: it has {bad!r} in it")
    if name != name.strip() or name.startswith("-"):
        raise SchemeFormatError(f"'{name[:40]}' is no name for a scheme: it begins with '-', or has blanks at its ends")
    return name


def checked_new_name(name: str) -> str:
    """The name itself, if a scheme may be stored under it: as `checked_name`, and it means nothing else.

    Raises:
        SchemeFormatError: it may not be a name at all.
        CatalogError: it is a target, a target with a rank, the start of a digest, or an expression of schemes.
    """
    checked_name(name)
    if what := _other_meaning(name):
        raise CatalogError(f"the name {visible(name)[:40]!r} means {what}; choose another one, with --name")
    return name


def is_free_of_meaning(name: str) -> bool:
    """Return whether a name means nothing else where a scheme is asked for, as a target or a digest does."""
    return not _other_meaning(name)


def _other_meaning(name: str) -> str:
    if re.match(r"\d+x\d+x\d+(:|$)|(mask|tensor)[:(]", name, re.IGNORECASE):
        return "a target"
    if name == "auto" or "/" in name:
        return "the choice of the library" if name == "auto" else "a scheme for each level"
    return "the digest of a scheme" if is_start_of_digest(name) else ""


def is_start_of_digest(text: str) -> bool:
    """Return whether a text is enough of a digest to mean a scheme."""
    return re.fullmatch(r"[0-9a-f]{6,64}", text) is not None


def tidy_name(text: str) -> str:
    """A name made from any text, such as a file's: what may not stand in one becomes an underscore."""
    name = "".join(one if one.isprintable() else "_" for one in text)[:MAX_NAME].strip().lstrip("-")
    return name or "unnamed"


def file_stem(name: str, digest: str) -> str:
    """The stem of a scheme's file: its name as a file may have it, and the start of its digest, once."""
    start = digest[:12]
    stem = "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else "_" for one in name)
    stem = stem.removesuffix(f"-{start}")[:MAX_STEM].lstrip(".-") or "scheme"
    return f"{stem}-{start}"


def visible(text: str) -> str:
    """The text on one line, with control and direction characters written out, as \\x1b."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
