"""`lcma cache`"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ...errors import LcmaError
from ...home import cache_folder
from ..help import lcma_command
from ..output import print_json


@lcma_command("cache", json="the result")
@click.option("--clear", is_flag=True, help="Delete it. Nothing is lost but the time to compile again.")
def command(clear: bool, as_json: bool) -> None:
    """Show or clear the compiled code that lcma keeps."""
    folder = cache_folder()
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    size = sum(path.stat().st_size for path in files)
    if clear:
        _delete(folder)
    if as_json:
        print_json({"folder": str(folder), "files": len(files), "bytes": size, "cleared": clear})
    else:
        click.echo(f"{folder}: {len(files)} files, {size / 1e6:.1f} MB{', cleared' if clear else ''}")


def _delete(folder: Path) -> None:
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
    except OSError as error:
        raise LcmaError(f"{folder} can't be cleared: {error.strerror}") from None
