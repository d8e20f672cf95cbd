"""`lcma same`"""

from __future__ import annotations

from ...schemes_db.invariants import relation
from ..help import lcma_command
from ..options import argument
from ..output import answer, data_rows
from ..schemes import scheme_argument

_MEANING = {row["relation"]: row["meaning"] for row in data_rows("relations")}


@lcma_command
def command(*, first: str = argument("SCHEME"), second: str = argument("SCHEME")) -> int:
    schemes = [scheme_argument(text)[0] for text in (first, second)]
    verdict = relation(*schemes)
    data = {"relation": verdict, "digests": [scheme.digest for scheme in schemes]}
    answer(data, f"{verdict}: {_MEANING[verdict]}")
    return int(verdict == "different")
