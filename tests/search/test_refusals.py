"""Settings of runs that mean nothing are refused before a walk, each with its reason."""

import pytest

from lcma.errors import PlanError, TargetError
from lcma.schemes_db.resolve import resolve
from lcma.search import find

TABLES = [
    (
        {"target": "2x2x2", "rank": 7},
        [
            ({"rank": None}, "nothing limits"),
            ({"rank": 8}, "rank 8 already"),
            ({"target": "9x9x9", "rank": 500}, "at most"),
            ({"walk": "no"}, "choose one of flip"),
            ({"walks": -1}, "can't be negative"),
            ({"count": 0}, "at least 1"),
            ({"objective": "additions"}, "nothing limits a search for better additions"),
            ({"device": "abacus"}, "device 'abacus' is not known"),
            ({"target": "2x2x3", "start": "naive:2x2x2:tri-out"}, "the start computes"),
        ],
    ),
    (
        {"target": "3x3x4", "rank": 29},
        [
            ({"ladder": ("3x3",)}, "no step of a ladder"),
            ({"ladder": ("9x9x9",)}, "729 terms of 9x9x9 do not fit"),
            ({"ladder": ("17x17x17",)}, "write 17x17x17:RANK"),
            ({"walk": "flip-z3", "ring": "Z2"}, "does not lead to Z2, but to Z3 and by lifts to Z and Q"),
            ({"walk": "flip", "ring": "Z3"}, "does not lead to Z3: only flip-z3 does"),
            ({"ring": "ZT", "walk": "flip"}, "does not stay in"),
            ({"objective": "beauty"}, "choose one of rank"),
            ({"method": "luck"}, "choose one of walks, triples"),
        ],
    ),
    (
        {"target": "3x3x3", "rank": 12, "rounds": 1},
        [
            ({"policy": {"full": 3}}, "no half blocks"),
            ({"policy": {"chance": 0.5}}, "no half blocks"),
            ({"policy": {"chance": -1}, "target": "3x3x3:tri-out"}, "0 to 1"),
            ({"policy": {"nonzeros": 3}, "walk": "flip-c3"}, "knows no bounds"),
            ({"policy": {"keep": 2}}, "a lift to Z may change"),
            ({"policy": {"keep": 2}, "ring": "ZT", "ladder": ("2x2x3:11",)}, "format to format"),
            ({"policy": {"keep": 27}, "ring": "ZT"}, "none would be left"),
            ({"policy": {"patience": 2}}, "a policy has no patience"),
        ],
    ),
    (
        {"target": "2x3x3", "rank": 14, "seconds": 1.0, "method": "triples"},
        [
            ({"target": "3x3x3"}, "a side of 2"),
            ({"target": "2x2x2:tri-left"}, "a side of 2"),
            ({"target": "1x2x3"}, "no smaller one"),
            ({"target": "2x9x9", "rank": 162}, "rank 162 already"),
            ({"target": "2x4x17"}, "n up to 16"),
            ({"rank": 11}, "ask for 12 or more"),
            ({"ring": "Z3"}, "over Z or Z2"),
            ({"device": "cuda"}, "on this CPU"),
            ({"walk": "flip-c3"}, "neither walks nor starts"),
            ({"policy": {"nonzeros": 3}}, "neither walks nor starts"),
            ({"start": "2x3x3-r15"}, "neither walks nor starts"),
        ],
    ),
    (
        {"target": "2x2x2", "rank": 7, "method": "least-squares"},
        [
            ({"rank": None, "rounds": 1}, "a rank that is wanted"),
            ({"ring": "Z2"}, "over Z or Q"),
            ({"walk": "flip-c3"}, "no walks"),
            ({"device": "tpu"}, "not on tpu"),
            ({"start": "strassen"}, "has rank 7 already"),
        ],
    ),
    (
        {"target": "2x2x2", "seconds": 1, "objective": "groups:1x2x2"},
        [
            ({"objective": "groups:"}, "needs the format"),
            ({"objective": "groups:1x1x1"}, "saves anything"),
            ({"objective": "groups:1x2x17"}, "sides up to 16"),
            ({"rank": 7}, "method and rank out"),
            ({"ring": "Z2"}, "over Z"),
            ({"objective": "group"}, "groups:MxKxN"),
            ({"target": "2x2x17", "rounds": 1, "seconds": None}, "32"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("arguments", "message"), [({**common, **given}, message) for common, rows in TABLES for given, message in rows]
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
