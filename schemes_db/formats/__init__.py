"""Scheme files: found by their content or named, read into `Reading`s, written from schemes.

Readers of all formats are imported with the first file: products need one format alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import names_on_first_use

if TYPE_CHECKING:
    from .reading import Reading as Reading
    from .reading import UnknownFormatError as UnknownFormatError
    from .registry import FORMATS as FORMATS
    from .registry import MAX_FILE_BYTES as MAX_FILE_BYTES
    from .registry import WRITERS as WRITERS
    from .registry import format_for as format_for
    from .registry import format_named as format_named
    from .registry import parse_bytes as parse_bytes
    from .registry import parse_text as parse_text
    from .registry import read_file as read_file
    from .registry import render as render
    from .registry import write_file as write_file

__getattr__, __dir__ = names_on_first_use(__name__)
