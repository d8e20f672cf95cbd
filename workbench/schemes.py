"""SCHEME arguments: a name of the library, or a file that is proven before it is used."""

from __future__ import annotations

from pathlib import Path

from ..schemes_db import Certificate, Scheme
from ..schemes_db.resolve import resolve
from ..verify import certify, load


def scheme_argument(text: str) -> tuple[Scheme, Certificate]:
    """The certified scheme that an argument means; one without a kept certificate is proven now.

    Raises:
        LcmaError: nothing has that name, the file cannot be read, or the scheme is not valid.
    """
    if Path(text).is_file():
        return load(text)
    scheme, certificate = resolve(text)
    return scheme, certificate or certify(scheme)
