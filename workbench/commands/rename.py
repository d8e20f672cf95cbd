"""`lcma rename`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog
from ..help import lcma_command
from ..options import argument


@lcma_command
def command(*, scheme: str = argument("SCHEME"), name: str = argument("NAME")) -> None:
    with Catalog.open() as catalog:
        entry = catalog.rename(scheme, name)
    click.echo(f"{entry.digest[:12]} is now {entry.name}")
