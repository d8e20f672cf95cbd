"""Schemes in three files beside each other, whose names differ in the factor: `x_L.sms`, `U.csv`, `s_a_222.txt`."""

from __future__ import annotations

import re
from pathlib import Path

_ROLES = (("L", "R", "P"), ("U", "V", "W"), ("alpha", "beta", "gamma"), ("A", "B", "C"))
PART_SUFFIXES = frozenset((".sms", ".slp"))
"""Suffixes of files that are never whole schemes: one of three."""

HOW = "put the three factors into one file, or into three beside each other, such as U.csv, V.csv, W.csv, or x_L.sms"


def companions(path: Path) -> list[Path]:
    """The three files of a scheme, of which one is given, or the folder of just three; empty if there are none."""
    if path.is_dir():
        members = sorted(entry for entry in path.iterdir() if companions_of_file(entry))
        found = companions_of_file(members[0]) if members else []
        return found if set(found) == set(members) else []
    return companions_of_file(path)


def companions_of_file(path: Path) -> list[Path]:
    tokens = re.split(r"([_.-])", path.stem)
    for at, token in enumerate(tokens):
        for roles in _ROLES:
            if (roles[0] == "L") != (path.suffix in PART_SUFFIXES) or (roles[0] == "L" and at + 1 < len(tokens)):
                continue
            spelled = roles if token in roles else tuple(role.lower() for role in roles)
            if token in spelled:
                names = ("".join((*tokens[:at], role, *tokens[at + 1 :])) for role in spelled)
                found = [path.with_name(f"{name}{path.suffix}") for name in names]
                if all(file.is_file() for file in found):
                    return found
    return []


def is_later_part(path: Path) -> bool:
    """Return whether a file is the second or third of three that are one scheme, by their names alone."""
    found = companions_of_file(path)
    return (
        bool(found)
        and path != found[0]
        and (path.suffix in PART_SUFFIXES or not re.search(r"(?i)(?:^|[_.-])[abc](?:[_.-]|$)", path.stem))
    )
