"""`lcma remove`"""

from __future__ import annotations

import click

from ...schemes_db.catalog import Catalog
from ..help import lcma_command
from ..options import argument


@lcma_command
def command(*, schemes: tuple[str, ...] = argument("SCHEME...")) -> None:
    with Catalog.open() as catalog:
        for scheme in schemes:
            entry = catalog.remove(scheme)
            what = f"{entry.name or entry.digest[:12]} <{entry.target}:{entry.rank} over {entry.ring}>"
            stays = any(one.digest == entry.digest for one in catalog.entries(target=entry.target))
            click.echo(f"removed the name {what}; the scheme stays" if stays else f"removed {what}")
