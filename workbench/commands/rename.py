"""`lcma rename`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog


@click.command("rename")
@click.argument("scheme", metavar="SCHEME")
@click.argument("name", metavar="NAME")
def command(scheme: str, name: str) -> None:
    """Give one of your schemes, or a name that `lcma add --name` gave to any, another name.

    Schemes that come with lcma keep their own.
    """
    with Catalog.open() as catalog:
        entry = catalog.rename(scheme, name)
    click.echo(f"{entry.digest[:12]} is now {entry.name}")
