"""`lcma rename`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog
from ..help import lcma_command
from ..options import argument


@lcma_command("rename")
def command(*, scheme: str = argument("SCHEME"), name: str = argument("NAME")) -> None:
    """Give one of your schemes, or an added name of any scheme, another name.

    Names are added by `lcma add --name` of a scheme that is there. Schemes that come with lcma retain their own.
    """
    with Catalog.open() as catalog:
        entry = catalog.rename(scheme, name)
    click.echo(f"{entry.digest[:12]} is now {entry.name}")
