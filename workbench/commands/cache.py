"""`lcma cache`"""

from __future__ import annotations

import shutil

from ...errors import LcmaError
from ...home import cache_folder
from ..help import lcma_command
from ..options import option
from ..output import answer


@lcma_command
def command(*, clear: bool = option()) -> None:
    folder = cache_folder()
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    size = sum(path.stat().st_size for path in files)
    if clear and folder.is_dir():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise LcmaError(f"{folder} can't be cleared: {error.strerror}") from None
    answer(
        {"folder": str(folder), "files": len(files), "bytes": size, "cleared": clear},
        f"{folder}: {len(files)} files, {size / 1e6:.1f} MB{', cleared' if clear else ''}",
    )
