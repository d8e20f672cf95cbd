"""`lcma resume`"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from ...search import resume, status
from ...search.improve.folder import is_improvement
from ...search.improve.run import resume_improvement
from ...search.runs.keep import refuse_unwritable
from ..help import lcma_command
from ..options import DURATION, POSITIVE, argument, option
from .improve import improved
from .search import report, watched


@lcma_command
def command(
    *,
    folder: Path = argument("DIR"),
    seconds: float | None = option("--time", type=DURATION),
    rounds: int | None = option(type=POSITIVE),
    count: int | None = option(type=POSITIVE),
    jobs: int = option(type=POSITIVE, default=1),
    address: str = option("--ray", default="", metavar="auto|local|HOST:PORT"),
    workers: int | None = option(type=POSITIVE),
) -> int:
    refuse_unwritable()
    ray: dict[str, Any] = {"address": address, "workers": workers or 0}
    if is_improvement(folder):
        if rounds or count:
            raise click.UsageError("--rounds and --count mean nothing to an improvement: give --time")
        return improved(partial(resume_improvement, folder, seconds=seconds, jobs=jobs, **ray), folder)
    config = status(folder).config
    limits: dict[str, Any] = {"rounds": rounds, "seconds": seconds, "count": count}
    result = watched(config, partial(resume, folder, jobs=jobs, **limits, **ray), count or config.count)
    return report(result, folder)
