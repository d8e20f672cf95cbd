"""The searches of searches.toml."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lcma.schemes_db.resolve import resolve
from lcma.search import LadderPlan, find

SEARCHES = tomllib.loads(Path(__file__).with_name("searches.toml").read_text(encoding="utf-8"))


def searched(settings: dict[str, Any], **more: Any) -> Any:
    """Run a search of the table: its start is a name, its plan the fields of one."""
    settings = {**settings, **more}
    if "start" in settings:
        settings["start"] = resolve(settings["start"])[0]
    if "plan" in settings:
        settings["plan"] = LadderPlan(**settings["plan"])
    return find(**settings)


def searches(fast: str, slow: str) -> Any:
    """Parametrize over the searches of a table, and of another one in the slow suite."""
    rows = [pytest.param(SEARCHES[fast][name], id=name) for name in SEARCHES[fast]]
    rows += [pytest.param(SEARCHES[slow][name], id=name, marks=pytest.mark.slow) for name in SEARCHES[slow]]
    return pytest.mark.parametrize("settings", rows)
