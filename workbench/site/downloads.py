"""A scheme's files: one in every format that can hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import LcmaError
from ...schemes_db import Certificate, Scheme
from ...schemes_db.formats import WRITERS, lcma_json, render

EVERY_FORMAT_LIMIT = 1_000_000
"""Nonzeros up to which all formats are written; a larger scheme is written in our own alone."""


@dataclass(frozen=True)
class Download:
    """A file beside the page, or the reason why there is none."""

    format: str
    file: str
    convention: str
    content: bytes = b""
    refusal: str = ""


def downloads(scheme: Scheme, certificate: Certificate, stem: str) -> Iterator[Download]:
    """The files of a scheme; `stem` is what their names start with."""
    taken: set[str] = set()
    nonzeros = sum(factor.nnz for factor in scheme.factors)
    for name, format_ in WRITERS.items():
        file = f"{stem}{format_.SUFFIX}" if format_.SUFFIX not in taken else f"{stem}-{name}{format_.SUFFIX}"
        taken.add(format_.SUFFIX)
        if name == lcma_json.NAME:
            yield Download(name, file, format_.CONVENTION, lcma_json.render(scheme, certificate).encode())
        elif nonzeros > EVERY_FORMAT_LIMIT:
            yield Download(name, file, format_.CONVENTION, refusal=f"too large; use lcma export --format {name}")
        else:
            try:
                yield Download(name, file, format_.CONVENTION, render(scheme, name))
            except LcmaError as error:
                yield Download(name, file, format_.CONVENTION, refusal=str(error))
