"""Storage of profiles: folder, reading, writing, and lookup by name."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from ...errors import LcmaError, SchemeFormatError, unknown_name
from ...home import home, write_atomic
from .cache import plan_cache
from .profile import Profile


def profiles_folder() -> Path:
    """Return the folder of measured profiles and wisdom; deleting it costs a new measurement."""
    return home() / "profiles"


def stored_profile(name: str) -> Profile | None:
    """Return the stored profile of this name; None if it is missing or damaged (measuring rewrites it)."""
    path = profiles_folder() / f"{name}.json"
    with contextlib.suppress(OSError):
        return _stored(path, path.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=16)
def _stored(path: Path, stamp: int) -> Profile | None:
    try:
        return read_profile(path)
    except (LcmaError, OSError):
        return None


def read_profile(path: Path) -> Profile:
    """Read the profile in a file.

    Raises:
        SchemeFormatError: the file is no profile.
        OSError: it cannot be read.
    """
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise SchemeFormatError("not a machine profile: not a text", path) from None
    except SchemeFormatError as error:
        raise error.located(path) from None


def keep_profile(profile: Profile) -> Path:
    """Write a profile atomically, for `stored_profile` to find; plans based on another one are dropped.

    Raises:
        OSError: the folder cannot be written.
    """
    path = profiles_folder() / f"{profile.id}.json"
    write_atomic(path, profile.to_json())
    forget_profiles()
    return path


def forget_profiles() -> None:
    """Drop cached profiles and plans."""
    _stored.cache_clear()
    plan_cache.clear()


@lru_cache(maxsize=1)
def published() -> dict[str, Profile]:
    """Return the profiles shipped with the package, by name: machines of papers, and one NVIDIA H200."""
    folder = files("lcma.kernels.planning") / "data" / "machines"
    profiles = [Profile.from_json(entry.read_text(encoding="utf-8")) for entry in folder.iterdir()]
    return {profile.id: profile for profile in sorted(profiles, key=lambda profile: profile.id)}


def find_profile(name: str) -> Profile:
    """Return a published machine by its name, or the profile in a file.

    Raises:
        PlanError: there is no such machine and no such file.
        SchemeFormatError: the file is no profile.
    """
    if name in published():
        return published()[name]
    try:
        return read_profile(Path(name))
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise SchemeFormatError(f"can't be read: {error.strerror or error}", name) from None
        raise unknown_name("profile", name, [*published(), "a file"]) from None
