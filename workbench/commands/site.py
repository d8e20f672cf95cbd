"""`lcma site`"""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import LcmaError
from ...schemes_db.catalog import Catalog
from ..help import lcma_command
from ..options import argument, option
from ..output import answer
from ..progress import Progress
from ..site import build_site


@lcma_command
def command(
    *,
    out: str = argument("OUT"),
    results: Path | None = option(metavar="DIR"),
) -> int:
    if results is not None and not results.is_dir():
        raise LcmaError(f"{results} is no folder; name the one with the rows of lcma bench")
    with Catalog.open() as catalog, Progress("site") as progress:
        built = build_site(Path(out), catalog, progress.update, results)
    index = built.out / "index.html"
    facts = {"index": str(index), "schemes": built.schemes, "files": built.files, "bytes": built.bytes}
    facts |= {"largest_page_bytes": built.largest_page, "damaged": list(built.damaged)}
    answer(
        facts,
        f"{index}: {built.schemes} schemes, {built.files} files, {built.bytes / 1e6:.1f} MB, "
        f"largest page {built.largest_page / 1000:.0f} kB",
    )
    for fault in built.damaged:
        click.echo(f"lcma: {fault}", err=True)
    return int(bool(built.damaged))
