"""Settings of runs that mean nothing are refused before a walk, each with its reason."""

import json
from pathlib import Path

import pytest

from lcma.errors import PlanError, TargetError
from lcma.schemes_db.resolve import resolve
from lcma.search import find

TABLE = json.loads(Path(__file__).with_name("refusals.json").read_text(encoding="utf-8"))
"""Settings, and what is changed in them with what the refusal says."""


@pytest.mark.parametrize(
    ("arguments", "message"), [({**common, **given}, message) for common, rows in TABLE for given, message in rows]
)
def test_what_does_not_fit_is_refused(arguments, message):
    if "start" in arguments:
        name, modulo_2, _ = arguments["start"].partition(" modulo 2")
        start = resolve(name)[0]
        arguments = {**arguments, "start": start.over_z2() if modulo_2 else start}
    with pytest.raises(PlanError, match=message):
        find(**arguments)


def test_an_unknown_target_is_refused():
    with pytest.raises(TargetError):
        find("2x2", rank=7)
