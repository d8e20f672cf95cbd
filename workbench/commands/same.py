"""`lcma same`"""

from __future__ import annotations

from ...schemes_db.invariants import relation
from ..help import lcma_command
from ..options import argument
from ..output import answer
from ..schemes import scheme_argument

_MEANING = {
    "identical": "the same products but for their order, signs and scale",
    "same but for roles": "a rotation or transposition of A, B and C turns one into the other",
    "different": "no change of basis and no permutation of roles turns one into the other",
    "not told apart": "all invariants agree; they may be the same in another basis, or not",
}


@lcma_command
def command(*, first: str = argument("SCHEME"), second: str = argument("SCHEME")) -> int:
    schemes = [scheme_argument(text)[0] for text in (first, second)]
    verdict = relation(*schemes)
    data = {"relation": verdict, "digests": [scheme.digest for scheme in schemes]}
    answer(data, f"{verdict}: {_MEANING[verdict]}")
    return int(verdict == "different")
