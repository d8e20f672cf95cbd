"""A sample of each scheme file format: Strassen's scheme where the format is written, else a file of the tests."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

import lcma
from lcma.errors import LcmaError
from lcma.schemes_db.formats import FORMATS, WRITERS, render

SAMPLES = Path(lcma.__file__).parent / "tests" / "schemes_db" / "samples"
LINES, WIDTH = 14, 110


def samples_page() -> str:
    """All formats that are read, each with a sample.

    Raises:
        LookupError: a format has none.
    """
    scheme = lcma.resolve("strassen")[0]
    found = _samples()
    parts = [
        "# A sample of each format\n\nThis page is generated: written formats show Strassen's scheme, the others a "
        "file of the tests. Long lines and files are cut (`...`). [Files and targets](../formats.md#formats)\n"
        "says what each is.\n"
    ]
    for name, format_ in FORMATS.items():
        if name in WRITERS:
            title, sample = f"strassen{format_.suffix}", _shown(render(scheme, name))
        elif name in found:
            title, sample = found[name].name, _shown(found[name].read_bytes())
        else:
            raise LookupError(f"no sample of the format {name} in {SAMPLES}")
        convention = format_.convention.replace("^T", "ᵀ")
        parts.append(f"## {name}\n\nThird factor by {convention}. `{title}`:\n\n```text\n{sample}\n```\n")
    return "\n".join(parts)


def _samples() -> dict[str, Path]:
    """The first file of the tests' samples in each format."""
    found: dict[str, Path] = {}
    for path in sorted(SAMPLES.iterdir()):
        try:
            reports = lcma.verify_file(path, allow_pickle=True)
        except LcmaError:
            continue  # a sample that needs a target, or one of the files that only fit together
        found.setdefault(str(reports[0].format), path)
    return found


def _shown(content: bytes) -> str:
    """The beginning of a text; the names and shapes of an archive's arrays."""
    if content.startswith(b"PK"):
        return _archive(content)
    if content.startswith(b"\x93NUMPY"):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        return f"array of {array.dtype}, shape {array.shape}"
    lines = content.decode().splitlines()
    cut = [line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..." for line in lines[:LINES]]
    return "\n".join([*cut, "..."] if len(lines) > LINES else cut)


def _archive(content: bytes) -> str:
    lines = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            header = io.BytesIO(archive.read(name))
            np.lib.format.read_magic(header)
            shape, _, dtype = np.lib.format.read_array_header_1_0(header)
            lines.append(f"{name.removesuffix('.npy')}: {dtype}, shape {shape}")
    return "\n".join(lines)
