"""Folder of a run, which only one process at a time writes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Self, TypeVar, get_type_hints

from ...errors import LcmaError
from ...home import write_atomic
from ...schemes_db.formats.strict_json import loads
from ...version import __version__

ROOT = Path(__file__).resolve().parents[2]

SOURCES = ("schemes_db", "search", "verify")


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the sha256 (16 hex digits) of names and contents of the Python files and tables that walks depend on.

    A run can be resumed only by the code that started it.
    """
    digest = hashlib.sha256()
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*")):
            if file.suffix in (".py", ".csv", ".toml"):
                digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


class RunFolderError(LcmaError):
    """A run folder that is locked, made by other code, damaged or full."""

    exit_code = 3


Config = TypeVar("Config")
Item = TypeVar("Item")


class LockedFolder(ABC, Generic[Config]):
    """An open folder of a run; `create` and `open` acquire its lock, `close` releases it.

    run.json has the settings and the hash of the code, written once; the `LINES` are files of JSON lines.
    """

    KIND: ClassVar[str]
    """The name in run.json of the format's number."""
    FORMAT: ClassVar[int]
    COMMAND: ClassVar[str]
    """The command that starts such a run."""
    OTHERWISE: ClassVar[str]
    """What to do with a folder at `path` that other code made."""
    LINES: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path, config: Config, lock: BinaryIO | None) -> None:
        self.path, self.config, self._lock = path, config, lock

    @classmethod
    def create(cls, path: str | Path, config: Config) -> Self:
        """Create a folder.

        Raises:
            RunFolderError: it contains a run already, or a file that a run would replace, or can't be written.
        """
        path = Path(path)
        if (path / "run.json").exists():
            raise RunFolderError(f"{path} holds a run already: go on with `lcma resume {path}`, or name another folder")
        for name in ("found.jsonl", "start.json", "starts.jsonl", "state.json", "state.npz"):
            # A run that was killed as it began leaves an empty list of finds.
            if (place := path / name).is_symlink() or (place.exists() and place.stat().st_size):
                raise RunFolderError(f"{path} holds {name}, which a run would replace: name another folder")
        with reported(path):
            path.mkdir(parents=True, exist_ok=True)
        folder = cls(path, config, locked(path))
        about = {cls.KIND: cls.FORMAT, "version": __version__, "code": code_hash()} | folder._about()
        with reported(path):
            for name in cls.LINES:
                (path / name).touch()
            write_atomic(path / "run.json", json.dumps(about, indent=1) + "\n")
        return folder

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the folder of a run to continue it.

        Raises:
            RunFolderError: it contains no run, was made by other code, or is locked by another process.
        """
        folder = cls.read(path)
        about = cls._read_about(folder.path)
        if about["code"] != code_hash():
            raise RunFolderError(
                f"{path} was made by other code (lcma {about['version']}, {about['code']}; this is {__version__}, "
                f"{code_hash()}): {cls.OTHERWISE.format(path=path)}"
            )
        folder._lock = locked(folder.path)
        for name in cls.LINES:
            # A crash leaves an incomplete last line: its round is repeated, which finds its scheme again.
            with reported(folder.path), (folder.path / name).open("r+b") as stream:
                stream.truncate(stream.read().rfind(b"\n") + 1)
        return folder

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open the folder of a run for reading, without the lock.

        Raises:
            RunFolderError: it contains no run, or its settings can't be read.
        """
        path = Path(path)
        about = cls._read_about(path)
        with intact(path / "run.json"):
            return cls(path, cls._config_of(path, about["config"]), None)

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """Return the rest of run.json, `config` at least, and write files that belong to it."""

    @classmethod
    @abstractmethod
    def _config_of(cls, path: Path, data: Any) -> Config:
        """Return the settings in run.json."""

    @classmethod
    def _read_about(cls, path: Path) -> dict[str, Any]:
        if not (path / "run.json").exists():
            raise RunFolderError(f"{path} holds no run: `{cls.COMMAND} TARGET --out {path}` starts one")
        with intact(path / "run.json"):
            data: dict[str, Any] = loads((path / "run.json").read_text())
            if data[cls.KIND] != cls.FORMAT:
                raise RunFolderError(f"{path} is a run folder of format {data[cls.KIND]}; this lcma knows {cls.FORMAT}")
            return {**data, "version": str(data["version"]), "code": str(data["code"])}

    def append_lines(self, name: str, lines: Sequence[str]) -> None:
        """Append lines to one of the `LINES`, synced to the disk, all or none.

        Raises:
            RunFolderError: the disk is full; the file is unchanged.
        """
        if not lines:
            return
        with reported(self.path), (self.path / name).open("r+b") as stream:
            end = stream.seek(0, os.SEEK_END)
            try:
                stream.write("".join(lines).encode())
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(stream.fileno(), end)
                raise

    def parsed_lines(self, name: str, parse: Callable[[str], Item]) -> Iterator[Item]:
        """Yield what is in the lines of one of the `LINES`; skip an incomplete last line, left by a crash.

        Raises:
            RunFolderError: a line can't be read.
        """
        with reported(self.path):
            content = (self.path / name).read_bytes()
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if line.endswith(b"\n"):
                with intact(Path(f"{self.path / name}:{number}")):
                    item = parse(line.decode())
                yield item

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def running(self) -> bool:
        """True if a process has locked the folder."""
        try:
            locked(self.path, sign=False).close()
        except RunFolderError:
            return True
        return False


def locked(path: Path, sign: bool = True) -> BinaryIO:
    """Open and lock the lock file; the system releases the lock when the process ends in any way.

    With `sign` this process's id is written to it, for the error message of a second process.

    Raises:
        RunFolderError: another process has locked it, or the folder can't be written.
    """
    import fcntl

    with reported(path):
        stream = (path / "lock").open("a+b")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.seek(0)
        holder = stream.read(64).decode(errors="replace").strip()
        stream.close()
        raise RunFolderError(f"{path} is in use by process {holder or 'unknown'}: wait for it, or stop it") from None
    if sign:
        with contextlib.suppress(OSError):
            stream.truncate(0)
            stream.write(str(os.getpid()).encode())
            stream.flush()
    return stream


MAX_INT = 1 << 62
"""Integers reach compiled code, where they have 64 bits."""


def check_field_types(kind: type, values: Mapping[str, object]) -> None:
    """Check the texts, numbers and flags among some values by the annotations of a dataclass or a NamedTuple.

    Values of other annotations are checked where they are read.

    Raises:
        TypeError: a value is of another type, or an integer is too large.
    """
    hints = get_type_hints(kind)
    for name, value in values.items():
        hint = hints.get(name)
        if hint not in (bool, int, int | None, float, float | None, str):
            continue
        allowed = hint | int if hint in (float, float | None) else hint
        if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
            wanted = hint.__name__ if isinstance(hint, type) else str(hint)
            raise TypeError(f"{name} must be {wanted}, not {str(value)[:40]!r}")
        if isinstance(value, int) and abs(value) > MAX_INT:
            raise TypeError(f"{name} is too large: {str(value)[:40]}")


UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error)
UNUSABLE = (LcmaError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions of what reads a file that is damaged, and of what uses values in it that cannot be."""


@contextlib.contextmanager
def intact(path: Path) -> Iterator[None]:
    """Convert the errors of reading and using a file's content to RunFolderError."""
    try:
        yield
    except RunFolderError:
        raise
    except (*UNREADABLE, *UNUSABLE) as error:
        fault = str(error).partition("\n")[0][:200] or type(error).__name__
        raise RunFolderError(f"{path} is damaged: {fault}") from None


@contextlib.contextmanager
def reported(path: Path) -> Iterator[None]:
    """Convert errors of the file system to RunFolderError, with the remedy."""
    try:
        yield
    except OSError as error:
        mend = "free some space, then " if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
        raise RunFolderError(
            f"{path} can't be written or read ({error.strerror}): {mend}`lcma resume {path}` continues the run; "
            f"what is recorded there is intact"
        ) from None
