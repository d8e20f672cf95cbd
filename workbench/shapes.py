"""Files of shapes: products by m, k, n and, where the columns are there, dtype and causal."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import SchemeFormatError
from .products import Sizes, causal_name

MOST_SHAPES = 100_000
"""A longer file is not read: nobody measures so many."""

NEEDED, KNOWN = ("m", "k", "n"), ("m", "k", "n", "dtype", "causal")


@dataclass(frozen=True)
class ShapeRow:
    """One product; None where the file leaves a column to the command's options."""

    sizes: Sizes
    dtype: str | None = None
    causal: str | None = None


def read_shapes(path: Path) -> list[ShapeRow]:
    """The products of a CSV file with a header.

    Raises:
        SchemeFormatError: the file cannot be read, lacks a column, or a row is no product.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or ()]
            missing, unknown = set(NEEDED) - set(columns), set(columns) - set(KNOWN)
            if missing or unknown:
                fault = (
                    f"lacks the column {min(missing)}" if missing else f"has an unknown column {min(unknown)[:40]!r}"
                )
                raise SchemeFormatError(f"{fault}; the first line must be m,k,n[,dtype,causal]", path, 1)
            reader.fieldnames = columns
            found: list[ShapeRow] = []
            for row in reader:
                if len(found) == MOST_SHAPES:
                    raise SchemeFormatError(f"has more than {MOST_SHAPES} products", path)
                found.append(_row(row, path, reader.line_num))
    except OSError as error:
        raise SchemeFormatError(f"can't be read: {error.strerror or error}", path) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SchemeFormatError(f"is no CSV file: {error}", path) from None
    if not found:
        raise SchemeFormatError("names no product", path)
    return found


def _row(row: Mapping[str | None, str | None], path: Path, line: int) -> ShapeRow:
    texts = [(row.get(name) or "").strip() for name in NEEDED]
    if None in row or not all(text.isascii() and text.isdigit() and 1 <= int(text) < 1 << 31 for text in texts):
        raise SchemeFormatError("m, k and n must be whole numbers from 1", path, line)
    m, k, n = map(int, texts)
    dtype, causal = ((row.get(name) or "").strip() or None for name in ("dtype", "causal"))
    if causal is not None and causal_name(causal.lower()) is None:
        raise SchemeFormatError(f"causal is {causal[:20]!r}; write qk, pv, dv, dp, dq or dk", path, line)
    return ShapeRow((m, k, n), dtype, causal and causal.lower())
