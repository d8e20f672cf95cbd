"""numba.njit with a disk cache that is never stale, never fatal, and in our own cache folder.

numba's own cache looks only at the file of the function itself: a changed helper in another file
leaves wrong machine code behind. It dies on a corrupt entry, and it raises where no folder is
writable. Here an entry is stamped with every source file of the function's folder, and an entry
that cannot be read or written is the same as none.

Modules that use this are imported only by the functions that need compiled code: importing numba
takes a quarter of a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from .home import cache_folder, writable


@functools.lru_cache(maxsize=64)
def _folder_stamp(folder: Path, deep: bool) -> str:
    hasher = hashlib.sha256(numba.__version__.encode())
    for path in sorted(folder.rglob("*.py") if deep else folder.glob("*.py")):
        hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()[:24]


@functools.lru_cache(maxsize=1)
def _cache_root() -> Path:
    folder = cache_folder() / "numba"
    with contextlib.suppress(OSError):  # then every entry fails to be written, which is the same as no cache
        return writable(folder)
    return folder


class _Locator(caching._CacheLocator):
    """Places the entries of a function in a folder named by the stamp of its sources."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._line = py_func.__code__.co_firstlineno
        covered = getattr(py_func, "stamped_folder", None)
        self._stamp = _folder_stamp(covered or Path(py_file).parent, covered is not None)

    def get_cache_path(self) -> str:
        return str(_cache_root() / self._stamp)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        return cls(py_func, py_file) if Path(py_file).is_file() else None


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  # numba's own attribute


class _Cache(caching.FunctionCache):
    """A function cache whose failures mean "compile again", never an error."""

    _impl_class = _Implementation

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            # Whatever a damaged or unwritable entry raises (unpickling can raise anything), the
            # function is compiled as if there were none. An empty index makes room for a new one.
            with contextlib.suppress(Exception):
                self.flush()


def njit(function: Callable[..., Any] | None = None, /, *, stamped: Path | None = None, **options: Any) -> Any:
    """`numba.njit(cache=True)` with the cache above.

    Helpers must be in the same folder, or in or below the folder `stamped`.
    """
    if function is None:
        return functools.partial(njit, stamped=stamped, **options)
    if stamped is not None:
        function.stamped_folder = stamped  # type: ignore[attr-defined]
    dispatcher = numba.njit(**options)(function)
    if hasattr(dispatcher, "enable_caching"):  # absent under NUMBA_DISABLE_JIT
        with contextlib.suppress(RuntimeError):  # no source file: run without a cache
            dispatcher._cache = _Cache(function)
    return dispatcher
