"""The profile of this machine: where it is kept, and what it is known by."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path

from ...errors import LcmaError, PlanError, SchemeFormatError
from ...home import home, write_atomic
from ..planning.profile import Profile, unmeasured

_LIBRARIES = ("numpy", "numba", "torch")


def profiles_folder() -> Path:
    """Where measured profiles are kept; deleting it costs a new measurement."""
    return home() / "profiles"


@lru_cache(maxsize=1)
def hardware() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """What the rates depend on beside the processor: libraries, and settings that choose their kernels."""
    found = []
    for library in _LIBRARIES:
        try:
            found.append((library, metadata.version(library)))
        except metadata.PackageNotFoundError:
            continue
    for name in ("OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS"):
        if name in os.environ:
            found.append((name, os.environ[name]))
    return tuple(found)


@lru_cache(maxsize=16)
def machine_id(threads: int) -> str:
    """The name of this machine's profile with so many threads."""
    text = repr((hardware(), threads, versions()))
    return f"cpu-{threads}t-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def machine_profile() -> Profile:
    """The stored profile of this machine with the present number of threads, else the unmeasured one.

    A file that cannot be read or is damaged counts as none: measuring writes it anew.
    """
    from .threads import thread_count

    return _stored(profiles_folder(), machine_id(thread_count()))


@lru_cache(maxsize=16)
def _stored(folder: Path, name: str) -> Profile:
    try:
        return read_profile(folder / f"{name}.json")
    except (LcmaError, OSError):
        return unmeasured()


def read_profile(path: Path) -> Profile:
    """The profile in a file.

    Raises:
        SchemeFormatError: it is none.
        OSError: it cannot be read.
    """
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise SchemeFormatError("not a machine profile: not a text", path) from None
    except SchemeFormatError as error:
        raise error.located(path) from None


def keep_profile(profile: Profile) -> Path:
    """Write a profile whole or not at all, for `machine_profile` to find.

    Raises:
        OSError: the folder cannot be written.
    """
    path = profiles_folder() / f"{profile.id}.json"
    write_atomic(path, profile.to_json())
    _stored.cache_clear()
    return path


@lru_cache(maxsize=1)
def published() -> dict[str, Profile]:
    """The machines of papers, by name: figures that others published, none of them measured by us."""
    folder = files("lcma.kernels.planning") / "data" / "machines"
    profiles = [Profile.from_json(entry.read_text(encoding="utf-8")) for entry in folder.iterdir()]
    return {profile.id: profile for profile in sorted(profiles, key=lambda profile: profile.id)}


def find_profile(name: str) -> Profile:
    """A published machine by its name, or the profile in a file.

    Raises:
        PlanError: there is no such machine and no such file.
        SchemeFormatError: the file is no profile.
    """
    if name in published():
        return published()[name]
    try:
        return read_profile(Path(name))
    except OSError as error:
        known = ", ".join(published())
        raise PlanError(f"profile {name}: {error.strerror or error}; name a file, or one of {known}") from None
