"""The straight-line program that runs a certified scheme: shipped with it, cached, or computed now."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from ...errors import LcmaError
from ...home import cache_folder, write_atomic
from ...schemes_db.formats.strict_json import loads
from ...schemes_db.program import Program
from ...schemes_db.scheme import Scheme
from ...schemes_db.shipped import kept_program, shipped_names
from ...schemes_db.straightline import program_of

REMEMBERED = 512
"""Maximum number of programs that a process caches."""

_known: dict[str, Program] = {}


def key_of(scheme: Scheme) -> str:
    """Return a hash (hex) of the exact coefficients; different coefficients can share a digest."""
    hasher = hashlib.sha256(f"{scheme.target.name} {scheme.ring.name}".encode())
    for factor in scheme.factors:
        hasher.update(f" {factor.denominator} ".encode())
        for array in (factor.indptr, factor.indices, factor.values):
            hasher.update(array.tobytes())
    return hasher.hexdigest()[:32]


def program_for(scheme: Scheme) -> Program:
    """Return the program of a certified scheme.

    A program with few additions that is shipped with the scheme is preferred to one whose shared
    sums are found now. Either is stored in the cache folder, because finding shared sums takes
    up to a second. Programs from files are proven to be this scheme's before they are used.

    Raises:
        PlanError: a coefficient is not real.
    """
    key = key_of(scheme)
    program = stored_program(key, scheme.digest)
    if program is None:
        program = _remembered(key, _made(scheme))
        with contextlib.suppress(OSError):  # an unwritable cache costs only time
            write_atomic(_path(key), json.dumps(program.to_json(), separators=(",", ":")))
    return program


def stored_program(key: str, digest: str) -> Program | None:
    """Return the stored program of the scheme with this key and digest; None if it is missing or invalid."""
    if key in _known:
        return _known[key]
    try:
        program = Program.from_json(loads(_path(key).read_text(encoding="utf-8")))
        return _remembered(key, program) if is_of(program, digest) else None
    except (OSError, ValueError, LcmaError):
        return None


def _remembered(key: str, program: Program) -> Program:
    if len(_known) >= REMEMBERED:
        _known.clear()
    return _known.setdefault(key, program)


def is_of(program: Program, digest: str) -> bool:
    """Return whether a program has one level, whose expanded sums are the scheme of this digest, of its kinds."""
    from ...verify.program import scheme_of, undue_half

    scheme = scheme_of(program)
    return not program.inner and scheme.digest == digest and not undue_half(program, scheme)


def _made(scheme: Scheme) -> Program:
    kept = kept_program(scheme.name) if scheme.name in shipped_names() else None
    if kept is not None and kept.ring == scheme.ring and is_of(kept, scheme.digest):
        return kept
    return program_of(scheme)


def _path(key: str) -> Path:
    return cache_folder() / "programs" / f"{key}.json"
