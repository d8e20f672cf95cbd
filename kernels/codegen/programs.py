"""The straight-line program that runs a certified scheme: kept beside it, made before, or made now."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from ...errors import LcmaError
from ...home import cache_folder, write_atomic
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ...schemes_db.shipped import kept_program, shipped_names
from ...schemes_db.straightline import program_of

REMEMBERED = 512
"""Programs that a process holds."""

_known: dict[str, Program] = {}


def key_of(scheme: Scheme) -> str:
    """A hash (hex) of the coefficients as they stand; the digest is one for many of them."""
    hasher = hashlib.sha256(f"{scheme.target.name} {scheme.ring.name}".encode())
    for factor in scheme.factors:
        hasher.update(f" {factor.denominator} ".encode())
        for array in (factor.indptr, factor.indices, factor.values):
            hasher.update(array.tobytes())
    return hasher.hexdigest()[:32]


def program_for(scheme: Scheme) -> Program:
    """The program of a certified scheme.

    A program with few additions that is kept beside the scheme is taken before one whose shared
    sums are found on the spot. Either is stored under the cache folder, because sharing sums takes
    up to a second. What comes from a file is proven to be this scheme's before it is used.

    Raises:
        PlanError: a coefficient is not real.
    """
    key = key_of(scheme)
    program = stored_program(key, scheme.digest)
    if program is None:
        program = _remembered(key, _made(scheme))
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            write_atomic(_path(key), json.dumps(program.to_json(), separators=(",", ":")))
    return program


def stored_program(key: str, digest: str) -> Program | None:
    """The program of the scheme with this key and digest if it was made before; None where the file is not that."""
    if key in _known:
        return _known[key]
    try:
        program = Program.from_json(json.loads(_path(key).read_text(encoding="utf-8")))
        return _remembered(key, program) if is_of(program, digest) else None
    except (OSError, ValueError, LcmaError):
        return None


def _remembered(key: str, program: Program) -> Program:
    if len(_known) >= REMEMBERED:
        _known.clear()
    return _known.setdefault(key, program)


def is_of(program: Program, digest: str) -> bool:
    """Whether the sums of a program, multiplied out, are the scheme of this digest."""
    from ...verify.program import scheme_of

    return scheme_of(program).digest == digest


def _made(scheme: Scheme) -> Program:
    kept = kept_program(scheme.name) if scheme.name in shipped_names() else None
    if kept is not None and kept.ring == scheme.ring and is_of(kept, scheme.digest):
        return kept
    return program_of(scheme)


def _path(key: str) -> Path:
    return cache_folder() / "programs" / f"{key}.json"
