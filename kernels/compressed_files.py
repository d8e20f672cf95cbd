"""Models with structured layers in .safetensors files, and the folder of finished layers of a compression.

A layer NAME is stored as the factors NAME.U, NAME.V ..., as its module names them; the metadata `lcma_structures` is a
JSON object that names its structure.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from ..errors import PlanError, SchemeFormatError
from ..home import write_atomic
from . import safetensors
from .arrays import Matrix
from .factor_files import readable
from .structured.block_low_rank import parse_structure
from .structured.chain import FactorChain
from .structured.decomposition import Decomposition

STRUCTURES = "lcma_structures"


def structures_in(path: Path) -> dict[str, FactorChain]:
    """Return the structures of the compressed layers of a file.

    Raises:
        SchemeFormatError: the file contains no compressed model.
        OSError: it cannot be read.
    """
    facts = safetensors.metadata(path)
    with readable(path, "holds layers that are not understood"):
        texts = json.loads(facts.get(STRUCTURES, "null"))
        if not isinstance(texts, dict):
            raise SchemeFormatError("holds no compressed layers; write it with lcma compress", path)
        return {name: parse_structure(str(text)) for name, text in texts.items()}


class FinishedLayers:
    """A folder with the factors of every finished layer, from which an interrupted compression resumes.

    A file is identified by the layer's name, its configuration and the bytes of its weight: if one changes, the
    layer is compressed again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key(self, name: str, config: str, weight: Matrix) -> str:
        """Return the name of a layer's file."""
        digest = hashlib.sha256(f"{name}\0{config}\0{weight.dtype}{weight.shape}\0".encode())
        digest.update(np.ascontiguousarray(weight).tobytes())
        return digest.hexdigest()[:32]

    def load(self, key: str) -> Decomposition | None:
        """Return the layer stored under a key; None if there is none, or the file is damaged."""
        path = self._file(key)
        try:
            facts, entries = safetensors.metadata(path), safetensors.entries(path)
            structure = parse_structure(facts["structure"])
            factors = tuple(np.array(safetensors.read(path, entry)) for entry in entries.values())
            return Decomposition(structure, factors, float(facts["error"]))
        except (OSError, SchemeFormatError, PlanError, KeyError, ValueError):
            return None

    def store(self, key: str, found: Decomposition) -> None:
        """Store the factors of a layer (float32 or float64 arrays).

        Raises:
            OSError: the folder cannot be written.
        """
        rows = {f"factor{place}": (safetensors.KINDS[x.dtype.name], x) for place, x in enumerate(found.factors, 1)}
        facts = {"structure": found.structure.text, "error": repr(found.error)}
        write_atomic(self._file(key), safetensors.chunks(rows, facts))

    def remove(self, keys: list[str]) -> None:
        """Delete these files, and the folder if it is empty then."""
        for key in keys:
            self._file(key).unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"
