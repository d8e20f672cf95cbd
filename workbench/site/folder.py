"""The folder of a site: built aside, then swapped in whole; a folder that is not ours is never touched."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ...errors import LcmaError

MARKER = "lcma-site.json"
"""The list of a site's files; its presence says that the folder is a site of ours."""


class SiteError(LcmaError):
    """A site that can't be built where it should be, or with what is installed."""

    exit_code = 3


class Folder:
    """A new site's folder while it is filled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.sizes: dict[str, int] = {}
        """Bytes by file, the path relative to the site."""

    def write(self, name: str, content: str | bytes) -> None:
        """Add a file; text that UTF-8 can't hold (half a surrogate pair) becomes question marks."""
        payload = content.encode("utf-8", "replace") if isinstance(content, str) else content
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(payload)
        self.sizes[name] = len(payload)


@contextlib.contextmanager
def replaced(out: Path) -> Iterator[Folder]:
    """A folder to fill, which becomes `out` when the block ends and vanishes when the block fails.

    Raises:
        SiteError: `out` is a file, or holds files that are not of a site of ours.
        OSError: nothing can be written there.
    """
    out = out.expanduser().resolve()
    _refuse_foreign(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        fresh.mkdir()
        folder = Folder(fresh)
        yield folder
        files = sorted([*folder.sizes, MARKER])
        folder.write(MARKER, json.dumps({"lcma_site": 1, "files": files}, indent=1) + "\n")
        _refuse_foreign(out)
        if out.exists():
            os.rename(out, old)
        try:
            os.rename(fresh, out)
        except OSError:
            if old.exists():
                os.rename(old, out)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _refuse_foreign(out: Path) -> None:
    """Raise unless `out` is missing, empty, or holds a site and nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise SiteError(f"{out} is a file; name a folder")
    present = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir() or path.is_symlink()}
    if not present:
        return
    foreign = sorted(present - _files_of_site(out / MARKER))
    if foreign:
        raise SiteError(
            f"{out} holds {foreign[0]!r}, which is not of a site that lcma built; name another folder or move it away"
        )


def _files_of_site(marker: Path) -> set[str]:
    try:
        data = json.loads(marker.read_text(encoding="utf-8"))
        return set(data["files"]) if data["lcma_site"] == 1 else set()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()
